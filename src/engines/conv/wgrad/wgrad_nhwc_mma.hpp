// Filter gradient of channels-last tensors on the tensor cores, with 16-byte copies.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// A tile of M filters x N columns (channels and taps) of dw. A warp computes 8 thread_m x 4
// thread_n of it.
struct WgradTile {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int fragments = 2;               // fragments (32 bytes of pixels) in a stage
  int stages = 4;                  // stages in shared memory
  int min_blocks = 1;              // resident blocks of a multiprocessor
  int element = 2;                 // bytes of an element
  bool split = false;              // 3xTF32

  int threads() const { return m / thread_m * (n / thread_n); }
  std::int64_t stage_pixels() const;
  std::uint32_t shared_memory() const;
};

// "128x256, 8x16 a thread, 256 threads, 4 stages of 32 pixels"
std::string describe(const WgradTile& tile);

extern const Recipe<WgradTile> wgrad_nhwc_mma;

}  // namespace kiln
