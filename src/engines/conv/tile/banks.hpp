// Shared memory's banks: what a warp's access costs.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

// How many accesses of shared memory a warp's read takes in which each lane reads one word (words:
// their indices). Each of 32 banks gives one word an access, to any number of lanes.
std::int64_t bank_accesses(const std::array<std::int64_t, 32>& words);

}  // namespace kiln
