// How an implicit matrix product maps to memory: the order of its reduction and columns, and which
// results are contiguous.
#pragma once

#include <cstdint>

#include "engines/conv/gather.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln::implicit_gemm {

// Whether tiles hold the same pixel of many images. They then skip the taps that lie outside the
// source at that pixel.
bool images_inner(const Gather& gather);

// How many contiguous columns of a row such a tile holds: at most a memory sector, and so few that
// at most 5% more taps are visited. It is 1 if that gives fewer than four, because too many images
// would be read at a time.
int columns_together(const Gather& gather);

// Whether there is one phase whose tiles hold pixels image by image and visit every tap.
bool fixed_geometry(const Gather& gather);

// The filter's offset is k * step, step > 0, if its strides nest in the order of the reduction
// index; else 0.
std::int64_t filter_step(const Gather& gather);

// Whether neighbouring rows of the product are contiguous in the output.
bool output_rows_inner(const Gather& gather);
// Whether runs of `vector` results (rows or pixels) are contiguous in the output.
bool output_runs(const Gather& gather, int vector);

// Whether offsets within the images of a tile, or within the filter, need 64 bits. Offsets of taps
// in the padding count as well, because they are computed too.
struct Widths {
  bool source, out;
};
Widths wide_offsets(const Gather& gather, const GemmTile& tile, const Dims& z_strides);

// Whether neighbouring lanes load along the reduction, for pixels and for the filter. If a tile
// holds the same pixel of many images, lanes along the pixels would read far apart, while
// neighbouring taps are contiguous.
bool pixel_lanes_on_k(const Gather& gather);
bool row_lanes_on_k(const Gather& gather);

}  // namespace kiln::implicit_gemm
