// few_input_channels_mma.cu by wgmma on Hopper. Operand B, in shared memory, is the filters; for
// 3xTF32 they are split into hi and lo parts once for all bands. Operand A, in registers, is the
// pixels: a lane reads their words from the lines at any offset. Four reads of a lane for 16 pixels
// of 8 words serve the products with all filters of the tile.
#include "conv/few_input_channels/bands.cuh"
#include "conv/mma/left_words.cuh"
#include "conv/mma/right_planes.cuh"
#include "conv/store/register_store.cuh"
#include "target/shared_memory.cuh"

constexpr int PLANES = REDUCTION_WORDS / 4;
constexpr int FILTER_BYTES = PLANES * RIGHT_PLANE;
constexpr int LINES_AT = FILTER_BYTES * (SPLIT ? 2 : 1);
constexpr int TABLE_AT = LINES_AT + 2 * X_BYTES;
constexpr int MEMORY_BYTES = TABLE_AT + REDUCTION_WORDS * 8;
static_assert(PROMOTE % 2 == 0 && RUN_M % 2 == 0);

// The column of the products for row m of the tile. A thread's two rows of each product are placed
// so that it has RUN_M contiguous rows of the output.
device_inline int filter_column(int m) {
  constexpr int ROUND = LANES_M * RUN_M;
  return (m / ROUND * (RUN_M / 2) + m % RUN_M / 2) * 8 + m % ROUND / RUN_M * 2 + m % 2;
}

KILN_KERNEL(few_input_channels_wgmma_swap, THREADS, MIN_BLOCKS, GatherParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
  fill_table(table);

  const BlockBands bands(params);
  const auto filter = [&](int m, int number) {
    return memory + right_place(filter_column(m), number);
  };
  load_filters(filters_of(bands.group, params), bands.first_row, filter);
  BandLoader loader(bands.group, params, memory);
  int lines = LINES_AT;  // offset of the current band's lines
  loader.start_band(bands.first, lines);
  loader.finish();
  land();
  if (SPLIT) split_tf32<PLANES>(memory, memory + FILTER_BYTES);
  fence_proxy_async();
  block_barrier();

  const Position position = left_position(thread_x());
  LeftReader<FILLED_UP> reader(table);
#pragma unroll
  for (int j = 0; j < THREAD_N; ++j) reader.columns[j] = pixel_place(position.n + column_step(j));
  const SharedMatrix filters(memory, RIGHT_PLANE, 128);
#pragma unroll 1
  for (u32 number = bands.first; number < bands.end; number += bands.stride) {
    const int next_lines = 2 * LINES_AT + X_BYTES - lines;
    if (bands.end - number > bands.stride) loader.start_band(number + bands.stride, next_lines);

    sums.start();
    LeftProducts products;
    // Each fragment is read while the previous one is multiplied; the last read repeats the first
    // one.
    LeftFragments pixels[2];
    const auto read = [&](LeftFragments& to, int fragment) {
      reader.load(to, memory + lines, fragment, fragment + 1 < FRAGMENTS ? fragment + 1 : 0,
                  reader.ALL_WORDS);
    };
    reader.fetch(0);
    read(pixels[0], 0);
    const auto multiply = [&](int turn, int fragment) {
      start_products<false>(products, sums, pixels[turn],
                            filters.moved(fragment * (2 * RIGHT_PLANE)), FILTER_BYTES);
      // The following copies and reads overlap the products.
      if (loader.pending()) loader.step();
      products.template wait<1>();  // until the previous products no longer read their registers
      read(pixels[1 - turn], fragment + 1 < FRAGMENTS ? fragment + 1 : 0);
    };
    int fragment = 0;
    multiply_in_turns<1>(
        sums, FRAGMENTS, [&](int turn) { multiply(turn, fragment++); },
        [&] { products.template wait<0>(); });

    const Band band(number);
    store_lines(sums,
                TileStore(band, band, position, bands.first_row, band.image, bands.group, params));
    loader.flush();
    land();  // the next band has landed, and all threads have read this one
    lines = next_lines;
  }
}
