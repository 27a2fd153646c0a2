// Fresh random operands, the same for the same seed on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/tensor/operand.hpp"

namespace kiln::cli {

// A hash of `counter` under `seed`, uniform over 64 bits (SplitMix64: Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014): random numbers by number, in any order.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t counter);

// Memory of an operand: its elements are uniform in [-1, 1), or positive ones in [0.25, 2.25),
// rounded to the type. Bytes between
// them, which a kernel must not use, are 0xFF (NaN in every type).
std::vector<std::byte> random_operand(const Operand& operand, DataType type, std::uint64_t seed);

// Memory of the same size, all bytes 0xFF.
std::vector<std::byte> poisoned_operand(const Operand& operand, DataType type);

}  // namespace kiln::cli
