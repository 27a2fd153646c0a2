// Shared memory's banks: what a warp's access costs.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

// Accesses in which a warp reads a word a lane, given by their numbers in shared memory: each of 32
// banks gives one word at a time, to any number of lanes.
std::int64_t bank_accesses(std::array<std::int64_t, 32> words);

}  // namespace kiln
