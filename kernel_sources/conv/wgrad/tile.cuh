// A tile of a filter gradient: TILE_M filters x TILE_N columns of dw. Its reduction runs over the
// pixels of dy, image by image. A column is a channel and a tap, numbered like the reduction in
// gather_index.cuh.
#pragma once

#include "conv/geometry/gather_index.cuh"
#include "conv/geometry/gradient_sum.cuh"
#include "conv/geometry/tile_sums.cuh"
#include "conv/geometry/wgrad_params.h"
#include "conv/mma/scaled_sums.cuh"
#include "conv/store/epilogue.cuh"

// The pixel with a given number, counted from image 0 on.
device_inline Pixel pixel_at(u32 index) { return PixelOrigin{0, 0, 0, 0}.decode(index); }

// The same pixel in image 0. Offsets within an image fit into 32 bits; offsets of images may not.
device_inline Pixel in_first_image(Pixel pixel) {
  pixel.image = 0;
  return pixel;
}

device_inline TapBox all_taps() { return taps_of_tile(PixelOrigin{0, 0, 0, 0}, 0, 0); }

// A tile. Block numbers count parts of the reduction fastest, then tiles of columns, tiles of
// filters and groups.
struct WgradTile {
  u32 group;
  int first_filter, first_column;

  device_inline explicit WgradTile(u32 tile) {
    const u32 filter_tile = DIVIDE(DIV_TILES_N, tile);
    first_column = static_cast<int>(tile - filter_tile * DIV_TILES_N) * TILE_N;
    group = DIVIDE(DIV_TILES_M, filter_tile);
    first_filter = static_cast<int>(filter_tile - group * DIV_TILES_M) * TILE_M;
  }

  // The addresses of the operands at the tile's group.
  device_inline const element_t* x(const WgradParams& params) const {
    return static_cast<const element_t*>(params.x) +
           static_cast<i64>(group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C);
  }
  device_inline const element_t* dy(const WgradParams& params) const {
    return static_cast<const element_t*>(params.dy) +
           static_cast<i64>(group) * (static_cast<i64>(ROWS) * OUT_STRIDE_ROW);
  }
  device_inline Epilogue epilogue(const WgradParams& params) const {
    Epilogue epilogue;
    epilogue.out = static_cast<output_t*>(params.dw) + static_cast<i64>(group) * W_STRIDE_GROUP;
    epilogue.z = epilogue.out;
    epilogue.bias = nullptr;
    epilogue.alpha = static_cast<compute_t>(params.alpha);
    epilogue.beta = static_cast<compute_t>(params.beta);
    epilogue.coef = {};
    return epilogue;
  }
};

// Stores a tile's sums. A line is a filter; its elements are columns, of which RUN at a time are
// contiguous and aligned in dw.
template <int RUN>
struct GradientStore {
  using Taken = OwnSums;

  Epilogue epilogue;
  int first_filter, first_column;
  offset_t along[LINE / RUN];
  u64 lost = 0;  // bit i: piece i has a lost sum, which has to be computed again
  const TapBox& taps;
  const WgradTile& tile;
  const WgradParams& params;
  static_assert(LINE_RUN % RUN == 0 && !LINES_ALONG_M && LINE <= 32);
  static_assert(LINES * PIECES <= 64 || !CHECKED);

  device_inline GradientStore(const WgradTile& of, Position position, const TapBox& all,
                              const WgradParams& execution)
      : epilogue(of.epilogue(execution)),
        first_filter(from_here(of.first_filter + position.m)),
        first_column(from_here(of.first_column + position.n)),
        taps(all),
        tile(of),
        params(execution) {
#pragma unroll
    for (int i = 0; i < LINE; i += RUN) along[i / RUN] = filter_offset(taps.decode(column_of(i)));
  }

  device_inline int column_of(int i) const { return first_column + column_step(i); }

  // Stores a piece of line `index`, from element `first` on.
  device_inline void operator()(compute_t (&piece)[PIECE], int index, int first) {
    const int filter = first_filter + row_step(index);
    if (filter >= ROWS) return;
    u32 existing = 0;
#pragma unroll
    for (int i = 0; i < PIECE; ++i)
      existing |= static_cast<u32>(column_of(first + i) < REDUCTION) << i;
    if (!scale_back(piece, existing)) {
      lost |= u64(1) << (index * PIECES + first / PIECE);
      return;
    }
    offset_t from[PIECE / RUN];
    take_piece<RUN>(from, along, first);
    const i64 base = static_cast<i64>(filter) * W_STRIDE_ROW;
#pragma unroll
    for (int i = 0; i < PIECE; i += RUN) {
      const i64 at = base + from[i / RUN];
      if (!(existing >> i & 1)) continue;
      if constexpr (RUN == 1) {
        epilogue.store_one(at, at, piece[i], compute_t(0));
      } else {
        const compute_t no_bias[RUN] = {};
        compute_t values[RUN];
#pragma unroll
        for (int j = 0; j < RUN; ++j) values[j] = piece[i + j];
        epilogue.store_vector(at, values, no_bias);
      }
    }
  }

  // Called after all pieces: computes the lost sums again. All lanes of a warp compute each sum
  // together, because it runs over many pixels.
  device_inline void finish() const {
    if constexpr (!CHECKED) return;
    u32 of_any = lost != 0;
#pragma unroll 1
    for (u32 mask = 16; mask > 0; mask /= 2) of_any |= warp_shuffle_xor(of_any, mask);
    if (of_any == 0) return;
    const u32 lane = thread_x() % 32;
#pragma unroll 1
    for (u32 owner = 0; owner < 32; ++owner) {
      const u64 theirs = warp_shuffle(static_cast<u32>(lost), owner) |
                         static_cast<u64>(warp_shuffle(static_cast<u32>(lost >> 32), owner)) << 32;
      if (theirs == 0) continue;
      const int filter = warp_shuffle(first_filter, owner);
      const int column = warp_shuffle(first_column, owner);
#pragma unroll 1
      for (int i = 0; i < LINES * LINE; ++i) {
        if ((theirs >> (i / PIECE) & 1) == 0) continue;
        recompute_sum(filter + row_step(i / LINE), column + column_step(i % LINE), lane);
      }
    }
  }

 private:
  device_inline void recompute_sum(int filter, int column, u32 lane) const {
    if (column >= REDUCTION) return;
    const Tap tap = taps.decode(column);
    compute_t sum = gradient_sum<offset_t, 32, true>(
        tile.x(params) + static_cast<i64>(tap.c) * SOURCE_STRIDE_C,
        tile.dy(params) + static_cast<i64>(filter) * OUT_STRIDE_ROW, tap.t, tap.r, tap.s,
        params.pixels / DIV_OPQ, lane);
#pragma unroll 1
    for (u32 mask = 16; mask > 0; mask /= 2) sum += warp_shuffle_xor(sum, mask);
    if (lane != 0) return;
    const i64 at = static_cast<i64>(filter) * W_STRIDE_ROW + filter_offset(tap);
    epilogue.store_one(at, at, sum, compute_t(0));
  }
};
