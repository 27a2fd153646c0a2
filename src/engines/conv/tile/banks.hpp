// Bank conflicts of shared memory.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

// The number of wavefronts of a warp's read in which each lane reads one word of 4 bytes. words:
// the index of each lane's word. In a wavefront, each of the 32 banks gives one word to any number
// of lanes.
std::int64_t bank_accesses(const std::array<std::int64_t, 32>& words);

}  // namespace kiln
