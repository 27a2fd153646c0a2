// What the depthwise engines share whose threads have two channels or one of channels-last tensors.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/seen.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The reason, a clause, why a gather is not theirs; "" if it is: one source channel a group, in
// three dimensions or in no vectors of 16 bytes.
Refusal narrow_channels_refusal(const Seen& seen);

// Channels of a thread: two or one.
std::int64_t narrow_vector(const Seen& seen);
// Channels of the source of such a thread.
std::int64_t narrow_inputs(const Gather& gather, std::int64_t vector);

// How many rows (dimension 1) or columns (2) of the source so many pixels read.
std::int64_t places_read(const Gather& gather, std::size_t dimension, std::int64_t pixels,
                         std::int64_t taps);

// Threads of a block along pixels, beside so many along channels: as many as leave few lanes of the
// last warp idle.
std::int64_t narrow_runs(std::int64_t lanes);

// How many blocks of so many threads share a multiprocessor.
std::int64_t narrow_resident(std::int64_t threads, std::int64_t registers,
                             std::int64_t shared_memory, const DeviceDescription& device);

// Loops are unrolled: the most multiply-adds of a kernel's text. The most lanes of a block;
// registers for addresses and indices; the most registers of a thread.
inline constexpr std::int64_t narrow_products = 4096, narrow_lanes = 64;
inline constexpr std::int64_t narrow_addresses = 36, narrow_registers = 240;

}  // namespace kiln
