// Forward convolution of a source of few channels on the tensor cores: an implicit matrix product
// whose reduction runs along lines of the source (few_channels_tile.cuh), where other kernels would
// fill most of a step of channels with zeros.
//
// A block keeps TILE_M filters in shared memory, whole, and computes band after band of pixels.
// While one is multiplied, the lines of the next are loaded beside it.
#include "conv/few_channels_tile.cuh"
#include "target/shared_memory.cuh"

constexpr int LINES_AT = FILTER_BYTES;
constexpr int TABLE_AT = LINES_AT + 2 * X_BYTES;
constexpr int FLAG_AT = TABLE_AT + REDUCTION_WORDS * 8;
static_assert(SLICES == 1 && !PROMOTE_LOCAL && PROMOTE % 2 == 0);

using Reader = WordReader<FILTER_PITCH, false, FILLED_UP && !SPLIT, 0, 0>;

// The whole reduction in f32 by fused multiply-adds: slow, and right where infinities are about.
device_inline void add_fused(Sums& sums, const byte_t* filters, const byte_t* lines,
                             const ReductionWord* table, Position position) {
#pragma unroll 1
  for (int number = 0; number < RUNS * RUN_WORDS; ++number) {
    const ReductionWord word = table[number];
    float rows[THREAD_M];
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
      rows[i] = *reinterpret_cast<const float*>(
          filters + kept_row(position.m + row_step(i)) * FILTER_PITCH + number * 4);
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const float pixel = float_of(word.read(lines + pixel_place(position.n + column_step(j))));
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) sums.sum[i][j] += rows[i] * pixel;
    }
  }
}

KILN_KERNEL(few_channels, THREADS, MIN_BLOCKS, GatherParams, params) {
  byte_t* const memory = shared_array<byte_t, FLAG_AT + 16>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
  for (int i = thread_x(); i < REDUCTION_WORDS; i += THREADS) table[i] = RunWord(i).entry();

  // Blocks in order: tiles of rows, groups, and as many bands at once as there are blocks for.
  const u32 rest = DIVIDE(DIV_TILES_M, block_x());
  const int first_row = static_cast<int>(block_x() - rest * DIV_TILES_M) * TILE_M;
  const u32 first_band = DIVIDE(DIV_GROUPS, rest);
  const u32 group = rest - first_band * DIV_GROUPS;
  const u32 stride = grid_x() / (DIV_TILES_M * DIV_GROUPS);
  const u32 bands = static_cast<u32>(params.tiles);

  load_filters(static_cast<const element_t*>(params.w) + W_FIRST[0] +
                   static_cast<i64>(group) * W_STRIDE_GROUP,
               first_row, memory);
  LineLoader<BandLines> loader(
      static_cast<const element_t*>(params.source) +
          static_cast<i64>(group) * (static_cast<i64>(CHANNELS) * SOURCE_STRIDE_C),
      X_PLANES, memory);
  int lines = LINES_AT;  // of the band at hand
  const auto start = [&](u32 number, int place) {
    const Band band(number);
    loader.start(band.image, TOP + band.first_p * STRIDE_H,
                 (LEFT + band.first_q * STRIDE_W) * PIXEL_ELEMENTS, place);
  };
  const auto land = [&] {
    async_commit();
    async_wait<0>();
    block_barrier();
  };

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const Position warp{position.m - lane / LANES_N * RUN_M, position.n - lane % LANES_N * RUN_N};
  Reader reader(memory, warp.m, lane, table);
#pragma unroll
  for (int j = 0; j < PRODUCTS_N; ++j)
    reader.set_column(j, pixel_place(Reader::column(warp.n, lane, j)));

  start(first_band, lines);
  loader.finish();
  land();
#pragma unroll 1
  for (u32 number = first_band; number < bands; number += stride) {
    const int next_lines = 2 * LINES_AT + X_BYTES - lines;
    if (bands - number > stride) start(number + stride, next_lines);

    FragmentSums sums;
#pragma unroll 1
    do {
      if (SPLIT && sums.guarded) {
        add_fused(sums, memory, memory + lines, table, position);
        continue;
      }
      // A fragment is read while the one before is multiplied; the last one reads the first again.
      Fragments fragments[2];
      const auto read = [&](Fragments& to, int fragment) {
        reader.load(to, 0, memory + lines, fragment, Reader::ALL_WORDS);
      };
      read(fragments[0], 0);
      fragments[0].take_apart();
      const auto multiply = [&](int turn, int fragment) {
        read(fragments[1 - turn], fragment + 1 < FRAGMENTS ? fragment + 1 : 0);
        sums.multiply_fragments(fragments[turn]);
        fragments[1 - turn].take_apart();
        if (loader.pending()) loader.step();
      };
      // Promotions stay out of the innermost loop, where they would be in the products' way.
      int k = 0;
#pragma unroll 1
      while (k < FRAGMENTS) {
        const int stop = PROMOTE > 0 && k + PROMOTE < FRAGMENTS ? k + PROMOTE : FRAGMENTS;
#pragma unroll 1
        for (;;) {
          multiply(0, k);
          if (++k == stop) break;
          multiply(1, k);
          if (++k == stop) break;
        }
        if (PROMOTE > 0 && k < FRAGMENTS) sums.promote();
      }
    } while (sums.finish(reinterpret_cast<compute_t*>(memory + FLAG_AT)));

    const Band band(number);
    store_lines(sums, TileStore(band, position, first_row, band.image, group, params));
    loader.flush();
    land();  // the next band has landed for all; this one has been read by all
    lines = next_lines;
  }
}
