// Forward propagation from a source with few channels (an image) on the tensor cores. The reduction
// runs along lines of the source; all filters of a tile stay in shared memory.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/source_lines.hpp"

namespace kiln {

// A tile of M rows (filters) x N pixels, laid on a problem
// (kernel_sources/conv/few_input_channels/tile.cuh).
struct FewInputChannelsTile {
  FragmentShape shape;
  std::int64_t rows = 0, columns = 0;    // rows and columns of output pixels in a band
  std::int64_t bands = 0;                // bands in an image
  SourceLines lines;                     // the source in shared memory
  std::int64_t run_words = 0, runs = 0;  // the reduction: `runs` lines of `run_words` words

  bool split = false;  // 3xTF32

  std::int64_t fragments() const;                      // fragments (32 bytes) of the reduction
  std::int64_t row_tiles(const Gather& gather) const;  // tiles along the rows, of all groups
  std::int64_t shared_memory() const;                  // bytes
};

extern const Recipe<FewInputChannelsTile> few_input_channels_mma;
// The same with wgmma on Hopper; pixels are operand A.
extern const Recipe<FewInputChannelsTile> few_input_channels_wgmma_swap;

// "96x128, 6x16 a thread, 128 threads, bands of 1x118"
std::string describe(const FewInputChannelsTile& tile);

}  // namespace kiln
