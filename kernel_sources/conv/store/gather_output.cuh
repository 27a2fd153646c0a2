// The outputs of a gather: their addresses, and their values by definition.
#pragma once

#include "conv/geometry/gather_sum.cuh"
#include "conv/geometry/output_place.cuh"
#include "conv/geometry/tile_sums.cuh"
#include "conv/mma/scaled_sums.cuh"
#include "conv/store/epilogue.cuh"

// The epilogue for outputs from image `image` and from the first row of a group on.
device_inline Epilogue epilogue_at(const GatherParams& params, i64 image, i64 group, int phase) {
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.out) + image * OUT_STRIDE_N +
                 group * OUT_STRIDE_GROUP + OUT_FIRST[phase];
  epilogue.z = static_cast<const output_t*>(params.z) + image * Z_STRIDE_N +
               group * Z_STRIDE_GROUP + Z_FIRST[phase];
  epilogue.bias = static_cast<const output_t*>(params.bias) + group * BIAS_STRIDE_GROUP;
  epilogue.alpha = static_cast<compute_t>(params.alpha);
  epilogue.beta = static_cast<compute_t>(params.beta);
  epilogue.coef = coefficients_of<compute_t>(params);
  return epilogue;
}

// The offset of the residual for pixel `n` of a row; `at` is the offset of the result. pixels.at(n)
// gives the pixel.
template <class Pixels>
device_inline out_offset_t residual_place(const Pixels& pixels, int row, int n, out_offset_t at) {
  if constexpr (Z_LIKE_OUT) return at;
  return static_cast<out_offset_t>(row) * Z_STRIDE_ROW + residual_offset(pixels.at(n));
}

// Computes outputs of a group, from image `image` on, by their definition.
struct GatherSums {
  const GatherParams& params;
  i64 image, group;
  int phase;

  // The sum of one output; pixel.image is counted from `image`.
  device_inline compute_t add_up(const Pixel& pixel, int row) const {
    return gather_sum<offset_t, true>(params, from_here(image + pixel.image), from_here(group),
                                      from_here(row), phase, from_here(pixel.o), from_here(pixel.p),
                                      from_here(pixel.q));
  }
};

// The output offsets of a tile's pixels, each computed once for all threads of the block, in TILE_N
// entries of shared memory; -1: no pixel.
struct PlacesInShared {
  out_offset_t* first;

  // tile.inside(n) tells whether the tile has a pixel n, and tile.at(n) which one.
  template <class Tile>
  device_inline void put(const Tile& tile) const {
#pragma unroll 1
    for (int n = thread_x(); n < TILE_N; n += THREADS)
      first[n] = tile.inside(n) ? output_offset(tile.at(n)) : -1;
  }
  device_inline bool inside(int n) const { return first[n] >= 0; }
  device_inline out_offset_t place(int n) const { return first[n]; }
};
