// The tile of the engines for few output channels, laid on a problem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/few_output_channels/united.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {

// M pixels of the source x N pairs of a line and a tap of the filter's row. A line is an output
// channel of one phase along the height (kernel_sources/conv/few_output_channels/tile.cuh).
struct FewOutputChannelsTile {
  FragmentShape shape;
  std::int64_t element = 0;                 // bytes of an element
  std::int64_t copy_bytes = 0;              // bytes of a copy of the source: 16, or an element
  std::int64_t chunk_steps = 0;             // 32-byte fragments of channels in a stage
  std::int64_t taps = 0, taps_in_row = 0;   // rows of taps; taps of a row
  std::int64_t planes_of_taps = 0;          // taps along the depth
  std::int64_t lines = 0, line_groups = 0;  // lines of a tile; tiles that share all lines
  std::int64_t pairs = 0;                   // lines times taps of a row
  std::int64_t rows = 0, columns = 0;       // rows of output pixels; columns of the source
  std::int64_t tiles = 0;                   // tiles along the rows of a plane
  std::int64_t strips = 0, strip_step = 0;  // strips of columns; columns from one to the next
  std::int64_t image_tiles = 0;             // tiles of an image, of all its planes and groups
  std::int64_t halo_rows = 0;
  std::int64_t exchange_lines = 0;  // lines whose sums pass through shared memory together
  std::int64_t load_fragments = 0;  // fragments from one share of a stage's copies to the next
  double live_taps = 0;  // rows of taps inside the source for some pixel, averaged over the tiles
  bool planes = false;   // the filter is stored as planes, for wgmma
  bool split = false;    // 3xTF32

  std::int64_t chunk_channels() const { return 32 * chunk_steps / element; }
  std::int64_t halo_pixels() const { return halo_rows * columns; }
  std::int64_t filter_bytes() const;
  std::int64_t halo_bytes() const;
  std::int64_t exchange_bytes(std::int64_t of_lines) const;
  std::int64_t stage_bytes() const;
  std::int64_t shared_memory() const;  // bytes

  // Copies of a stage.
  struct Copies {
    std::int64_t halo, filter;
  };
  Copies copies() const;
};

// The most pairs of a tile whose sums and operands fit in registers. wgmma reads operand B from
// shared memory, so it has room for more pairs of 16 bits, which strided gradients need.
inline constexpr std::int64_t most_pairs = 64, most_warpgroup_pairs = 96;
// All pairs of a line and a tap of the filter's row.
std::int64_t few_output_channels_pairs(const UnitedGather& united);
// Whether the channels of every pixel of the source can be copied in vectors of 16 bytes.
bool vectors_of_channels(const ConvolutionProblem& problem, const Gather& gather);

// One tile for each shape that fits, with the strips and rows of lowest estimate.
std::vector<FewOutputChannelsTile> few_output_channels_tiles(const ConvolutionProblem& problem,
                                                             const UnitedGather& united,
                                                             bool by_warpgroups,
                                                             const DeviceDescription& device);

// "512x40, 8x10 a thread, 256 threads, places 4x120 of 8 channels"
std::string describe(const FewOutputChannelsTile& tile);

}  // namespace kiln
