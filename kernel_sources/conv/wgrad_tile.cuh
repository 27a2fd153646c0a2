// A tile of a filter gradient, TILE_M filters x TILE_N columns of dw, and the pixels of dy that its
// sums run over, image by image. A column is a channel and a tap, numbered as gather_index.cuh
// numbers its reduction.
#pragma once

#include "conv/epilogue.cuh"
#include "conv/gather_index.cuh"
#include "conv/tile_sums.cuh"
#include "conv/wgrad_params.h"

constexpr int COLUMNS = REDUCTION;

// Pixels counted from image 0 on.
device_inline Pixel pixel_at(u32 index) { return PixelOrigin{0, 0, 0, 0}.decode(index); }

// The same pixel in image 0: an image is a 64-bit step, a place within it need not be.
device_inline Pixel in_first_image(Pixel pixel) {
  pixel.image = 0;
  return pixel;
}

device_inline TapBox all_taps() { return taps_of_tile(PixelOrigin{0, 0, 0, 0}, 0, 0); }

// Blocks in order: parts of the reduction, tiles of columns, tiles of filters, groups.
struct WgradTile {
  u32 group;
  int first_filter, first_column;

  device_inline explicit WgradTile(u32 block) {
    const u32 tile = block / cluster_size();
    const u32 filter_tile = DIVIDE(DIV_TILES_N, tile);
    first_column = static_cast<int>(tile - filter_tile * DIV_TILES_N) * TILE_N;
    group = DIVIDE(DIV_TILES_M, filter_tile);
    first_filter = static_cast<int>(filter_tile - group * DIV_TILES_M) * TILE_M;
  }

  // The operands at the tile's group.
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
    epilogue.out = static_cast<element_t*>(params.dw) + static_cast<i64>(group) * W_STRIDE_GROUP;
    epilogue.z = epilogue.out;
    epilogue.bias = nullptr;
    epilogue.alpha = static_cast<compute_t>(params.alpha);
    epilogue.beta = static_cast<compute_t>(params.beta);
    epilogue.coefficient = 0;
    return epilogue;
  }
};

// Where a thread's sums go: a line is a filter, its elements are columns, of which RUN at a time
// lie side by side in dw, aligned to their own size.
template <int RUN>
struct GradientStore {
  int first_filter, first_column;
  offset_t along[LINE / RUN];
  static_assert(LINE_RUN % RUN == 0);

  device_inline GradientStore(const WgradTile& tile, Position position, const TapBox& taps)
      : first_filter(tile.first_filter + position.m), first_column(tile.first_column + position.n) {
#pragma unroll
    for (int i = 0; i < LINE; i += RUN) along[i / RUN] = filter_offset(taps.decode(column_of(i)));
  }

  device_inline int column_of(int i) const { return first_column + column_step(i); }

  device_inline void store(const compute_t (&line)[LINE], int index,
                           const Epilogue& epilogue) const {
    const int filter = first_filter + row_step(index);
    if (filter >= ROWS) return;
    const i64 base = static_cast<i64>(filter) * W_STRIDE_ROW;
#pragma unroll
    for (int i = 0; i < LINE; i += RUN) {
      const i64 at = base + along[i / RUN];
      if (column_of(i) >= COLUMNS) continue;
      if constexpr (RUN == 1) {
        epilogue.store_one(at, at, line[i], compute_t(0));
      } else {
        const compute_t no_bias[RUN] = {};
        compute_t values[RUN];
#pragma unroll
        for (int j = 0; j < RUN; ++j) values[j] = line[i + j];
        epilogue.store_vector(at, values, no_bias);
      }
    }
  }
};
