// The tile of few output channels, as it lies on a problem.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/few_output_channels/united.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {

// Places M x pairs N, on a problem; a line is an output channel of one phase along the height
// (kernel_sources/conv/few_output_channels/tile.cuh).
struct FewOutputChannelsTile {
  FragmentShape shape;
  std::int64_t element = 0;                 // bytes
  std::int64_t copy_bytes = 0;              // of the source: 16, or an element
  std::int64_t chunk_steps = 0;             // of 32 bytes of channels, in a stage
  std::int64_t taps = 0, taps_in_row = 0;   // rows of taps; taps of one
  std::int64_t planes_of_taps = 0;          // along the depth
  std::int64_t lines = 0, line_groups = 0;  // of a tile; tiles that have all lines
  std::int64_t pairs = 0;                   // lines times taps of a row
  std::int64_t rows = 0, columns = 0;       // of pixels; of the source
  std::int64_t tiles = 0;                   // of rows, in a plane
  std::int64_t strips = 0, strip_step = 0;  // of columns, and from one to the next
  std::int64_t halo_rows = 0;
  std::int64_t exchange_lines = 0;  // whose sums go out together
  std::int64_t load_fragments = 0;  // from one share of a stage's copies to the next
  double live_taps = 0;  // of a tile, on average: rows of taps that some pixel has inside
  bool planes = false;   // of the filter, for products of warpgroups
  bool split = false;    // f32 in three products

  std::int64_t chunk_channels() const { return 32 * chunk_steps / element; }
  std::int64_t halo_pixels() const { return halo_rows * columns; }
  std::int64_t filter_bytes() const;
  std::int64_t halo_bytes() const;
  std::int64_t exchange_bytes(std::int64_t of_lines) const;
  std::int64_t stage_bytes() const;
  std::int64_t shared_memory() const;  // bytes

  // Of a stage, of its halo and of its filter.
  struct Copies {
    std::int64_t halo, filter;
  };
  Copies copies() const;
};

// Pairs of a tile, at most: whose sums, and operands, a warp's registers bear. Warpgroups, whose
// right operand stays in shared memory, bear more of 16 bits where phases make that many.
inline constexpr std::int64_t most_pairs = 64, most_warpgroup_pairs = 96;
// Pairs of a line and a tap of the filter's row.
std::int64_t few_output_channels_pairs(const UnitedGather& united);
// Whether vectors of channels lie side by side in every pixel.
bool vectors_of_channels(const ConvolutionProblem& problem, const Gather& gather);

// The tiles that fit, with the strips and rows that waste least.
std::vector<FewOutputChannelsTile> few_output_channels_tiles(const ConvolutionProblem& problem,
                                                             const UnitedGather& united,
                                                             bool by_warpgroups,
                                                             const DeviceDescription& device);

// "512x40, 8x10 a thread, 256 threads, places 4x120 of 8 channels"
std::string describe(const FewOutputChannelsTile& tile);

}  // namespace kiln
