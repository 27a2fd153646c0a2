// How an implicit matrix product lies on its operands: what its reduction and its columns run
// along, and what of the results lies side by side.
#pragma once

#include <cstdint>

#include "engines/conv/gather.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln::implicit_gemm {

// Whether tiles hold one place of many images, and skip the taps that lie outside the source there.
bool images_inner(const Gather& gather);

// Columns of a row that such a tile keeps together, where they lie side by side: at most what lies
// in a sector of memory, and so few that next to no tap is walked for some of them alone. Of fewer
// than four, too many images would be read from at a time; neighbouring taps of one column are
// better then.
int columns_together(const Gather& gather);

// Whether there is one phase, of which tiles hold the pixels image by image and walk every tap.
bool fixed_geometry(const Gather& gather);

// The filter's offset is k * step, step > 0, if its strides nest in the order of the reduction
// index; else 0.
std::int64_t filter_step(const Gather& gather);

// Whether neighbouring rows of the product are neighbours in the output.
bool output_rows_inner(const Gather& gather);
// Whether runs of `vector` results lie side by side in the output, of rows or of pixels.
bool output_runs(const Gather& gather, int vector);

// Whether offsets within the images of a tile, or within the filter, need 64 bits. A tap outside
// the source may lie up to the padding before its first element, so the reach of that counts as
// well.
struct Widths {
  bool source, out;
};
Widths wide_offsets(const Gather& gather, const GemmTile& tile, const Dims& z_strides);

// Whether neighbouring lanes load neighbours along the reduction, of pixels and of the filter.
// Images far apart are reached along the reduction, where neighbouring taps are side by side.
bool pixel_lanes_on_k(const Gather& gather);
bool row_lanes_on_k(const Gather& gather);

}  // namespace kiln::implicit_gemm
