// The data gradient of a locally connected layer of one or two dimensions. A block computes TILE_H
// whole rows of dx, in TILE_CHANNELS channels of a group and IMAGES images, and visits the output
// pixels that read them. Each weight belongs to one element of dx, so one block reads it, once.
//
// A warp takes one output pixel at a time, and the taps of its filter whose rows of dx are in the
// block's tile, in the order of memory. A lane has SLOTS of these columns; for each it sums dy
// times weight over the filters of the group, and adds the sum to the warp's own tile in shared
// memory. The pixel's dy is in shared memory, too, ROW_CHUNK filters at a time as [filter][image].
// At the end the block adds up its warps' tiles in order, so results are bit-identical.
#include "common/vector.cuh"
#include "local/geometry.cuh"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = WARPS * 32;
constexpr int WIDTH = static_cast<int>(IN[2]), TAPS_W = static_cast<int>(FILTER[2]);
constexpr int PLANE = TILE_CHANNELS * TILE_H * WIDTH;  // one image: [channel][row][column]
constexpr int TILE = IMAGES * PLANE;
constexpr int COLUMNS =
    TILE_CHANNELS * TAPS_H * TAPS_W;  // TAPS_H: that one output row has in a tile

// A column of a lane: a channel of the tile and a tap, its row counted from the tile's first one.
struct Column {
  int channel, r, s;
  device_inline explicit Column(int number) {
    int tap;
    if constexpr (TAPS_INNER) {
      channel = number / (TAPS_H * TAPS_W);
      tap = number - channel * (TAPS_H * TAPS_W);
    } else {
      tap = number / TILE_CHANNELS;
      channel = number - tap * TILE_CHANNELS;
    }
    r = tap / TAPS_W;
    s = tap - r * TAPS_W;
  }
};

KILN_KERNEL(local_dgrad_fma, WARPS * 32, MIN_BLOCKS, LocalParams, params) {
  compute_t* const tiles = shared_array<compute_t, WARPS * TILE>(0);
  compute_t* const factors = shared_array<compute_t, WARPS * ROW_CHUNK * IMAGES>(FACTORS_OFFSET);

  u32 rest = block_x();
  u32 next = rest / static_cast<u32>(ROW_TILES);
  const i64 first_h = static_cast<i64>(rest - next * static_cast<u32>(ROW_TILES)) * TILE_H;
  rest = next;
  next = rest / static_cast<u32>(CHANNEL_TILES);
  const int first_channel =
      static_cast<int>(rest - next * static_cast<u32>(CHANNEL_TILES)) * TILE_CHANNELS;
  rest = next;
  next = rest / static_cast<u32>(GROUPS);
  const i64 group = static_cast<i64>(rest - next * static_cast<u32>(GROUPS));
  const i64 first_image = static_cast<i64>(next) * IMAGES;
  const i64 left = params.images - first_image;
  const int images = left < IMAGES ? static_cast<int>(left) : IMAGES;

  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
  compute_t* const tile = tiles + warp * TILE;
  compute_t* const factor = factors + warp * (ROW_CHUNK * IMAGES);
#pragma unroll 1
  for (int i = lane; i < TILE; i += 32) tile[i] = 0;

  const element_t* const dy = static_cast<const element_t*>(params.dy) + first_image * Y_STRIDE[0] +
                              product(group * ROWS, Y_STRIDE[1]);
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             first_image * OUTER_STRIDE[0] + product(group * ROWS, W_STRIDE[0]) +
                             product(first_channel, W_STRIDE[1]);

  // The output rows with taps in the tile.
  const i64 last_h = first_h + TILE_H < IN[1] ? first_h + TILE_H : IN[1];
  const i64 reach = product(FILTER[1] - 1, DILATION[1]);
  i64 p = first_h + PAD[1] - reach;
  p = p <= 0 ? 0 : (p + STRIDE[1] - 1) / STRIDE[1];
#pragma unroll 1
  for (; p < OUT[1]; ++p) {
    const i64 top = product(p, STRIDE[1]) - PAD[1];  // the row of its first tap
    if (top >= last_h) break;
    const int first_tap =
        top >= first_h ? 0 : static_cast<int>((first_h - top + DILATION[1] - 1) / DILATION[1]);

    // For a lane's existing columns: offsets of their weights, and of their elements of the tile.
    i64 weight_at[SLOTS];
    int element_at[SLOTS], column_at[SLOTS];
    bool exists[SLOTS];
#pragma unroll
    for (int i = 0; i < SLOTS; ++i) {
      const Column column(lane + i * 32);
      const int r = first_tap + column.r;
      const i64 h = top + product(r, DILATION[1]);
      exists[i] = lane + i * 32 < COLUMNS && first_channel + column.channel < CHANNELS &&
                  r < FILTER[1] && h < last_h;
      weight_at[i] = product(column.channel, W_STRIDE[1]) + tap_offset(0, r, column.s);
      element_at[i] = (column.channel * TILE_H + static_cast<int>(h - first_h)) * WIDTH;
      column_at[i] = column.s;
    }

#pragma unroll 1
    for (i64 q = warp; q < OUT[2]; q += WARPS) {
      const i64 from_left = product(q, STRIDE[2]) - PAD[2];
      const Place pixel{{0, p, q}};
      const element_t* const weights = w + pixel_offset(pixel);
      const element_t* const gradient = dy + y_offset(pixel);
      i64 v[SLOTS];
      bool met[SLOTS];
      compute_t sums[SLOTS][IMAGES];
#pragma unroll
      for (int i = 0; i < SLOTS; ++i) {
        v[i] = from_left + product(column_at[i], DILATION[2]);
        met[i] = exists[i] && v[i] >= 0 && v[i] < WIDTH;
#pragma unroll
        for (int image = 0; image < IMAGES; ++image) sums[i][image] = 0;
      }
#pragma unroll 1
      for (int begin = 0; begin < ROWS; begin += ROW_CHUNK) {
        warp_barrier();  // all lanes have read the previous factors and updated the tile
#pragma unroll
        for (int i = 0; i < ROW_CHUNK * IMAGES; i += 32) {
          const int number = i + lane, image = number / ROW_CHUNK, k = number - image * ROW_CHUNK;
          const bool there = number < ROW_CHUNK * IMAGES;
          const bool read = there && begin + k < ROWS && image < images;
          const compute_t value =
              read ? to_compute(
                         gradient[product(image, Y_STRIDE[0]) + product(begin + k, Y_STRIDE[1])])
                   : compute_t(0);
          if (there) factor[k * IMAGES + image] = value;
        }
        warp_barrier();
#pragma unroll UNROLLED
        for (int k = 0; k < ROW_CHUNK; k += ROW_VECTOR) {
          compute_t weight[SLOTS][ROW_VECTOR];
#pragma unroll
          for (int i = 0; i < SLOTS; ++i) {
#pragma unroll
            for (int e = 0; e < ROW_VECTOR; ++e) weight[i][e] = 0;
            if (met[i] && begin + k < ROWS)
              load_vector(weights + weight_at[i] + product(begin + k, W_STRIDE[0]), true,
                          weight[i]);
          }
#pragma unroll
          for (int e = 0; e < ROW_VECTOR; ++e)
#pragma unroll
            for (int image = 0; image < IMAGES; ++image) {
              const compute_t value = factor[(k + e) * IMAGES + image];
#pragma unroll
              for (int i = 0; i < SLOTS; ++i) sums[i][image] += weight[i][e] * value;
            }
        }
      }
#pragma unroll
      for (int i = 0; i < SLOTS; ++i) {
        if (!met[i]) continue;
        compute_t* const element = tile + element_at[i] + v[i];
#pragma unroll
        for (int image = 0; image < IMAGES; ++image) element[image * PLANE] += sums[i][image];
      }
    }
  }

  block_barrier();
#pragma unroll 1
  for (int i = static_cast<int>(thread_x()); i < TILE; i += THREADS) {
    compute_t sum = tiles[i];
#pragma unroll
    for (int other = 1; other < WARPS; ++other) sum += tiles[other * TILE + i];
    const int image = i / PLANE, in_plane = i - image * PLANE;
    const int line = in_plane / WIDTH, v = in_plane - line * WIDTH;
    const int channel = line / TILE_H;
    const i64 h = first_h + (line - channel * TILE_H);
    if (image >= images || first_channel + channel >= CHANNELS || h >= IN[1]) continue;
    const i64 c = group * CHANNELS + first_channel + channel;
    store_result(
        params,
        (first_image + image) * X_STRIDE[0] + product(c, X_STRIDE[1]) + x_offset({{0, h, v}}), sum,
        compute_t(0));
  }
}
