// few_input_channels_mma.cu on Hopper's warpgroup products. Their right operand, which they read
// from shared memory where it lies, is the filters: it is taken apart once, for all bands. Their
// left operand is the pixels, whose words a lane reads from the lines into registers, wherever they
// lie there. So 16 pixels of 8 words cost a warp four reads of a lane, for products with all
// filters of the tile.
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

// A thread's rows are RUN_M side by side in the output, two of each product: which column of the
// products row m of the tile is.
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
  int lines = LINES_AT;  // of the band at hand
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
    // A fragment is read while the one before is multiplied; the last one reads the first again.
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
      // What follows runs beside the products.
      if (loader.pending()) loader.step();
      products.template wait<1>();  // the registers of those before are free
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
    land();  // the next band has landed for all; this one has been read by all
    lines = next_lines;
  }
}
