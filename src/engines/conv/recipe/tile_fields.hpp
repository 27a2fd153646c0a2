// Fields of recipes whose tiles know their threads and their bytes of shared memory.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/seen.hpp"

namespace kiln {

template <class Tile>
int threads_of(const Tile& tile) {
  return static_cast<int>(tile.threads());
}

template <class Tile>
std::uint32_t shared_memory_of(const Tile& tile, const Seen& /*seen*/) {
  return static_cast<std::uint32_t>(tile.shared_memory);
}

}  // namespace kiln
