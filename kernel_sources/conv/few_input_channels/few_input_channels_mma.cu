// Forward convolution of a source with few channels on the tensor cores: an implicit matrix product
// whose reduction runs along lines of the source (tile.cuh). A reduction over channels would fill
// most of each step with zeros.
#include "conv/few_input_channels/bands.cuh"
#include "conv/mma/word_reader.cuh"
#include "conv/store/register_store.cuh"
#include "target/shared_memory.cuh"

// Bytes from one filter to the next in shared memory; the reduction is contiguous.
constexpr int FILTER_PITCH = REDUCTION_WORDS * 4 + 16;
constexpr int LINES_AT = TILE_M * FILTER_PITCH;
constexpr int TABLE_AT = LINES_AT + 2 * X_BYTES;
constexpr int MEMORY_BYTES = TABLE_AT + REDUCTION_WORDS * 8;
static_assert(PROMOTE % 2 == 0);

using Reader = WordReader<FILTER_PITCH, false, FILLED_UP && !SPLIT, 0, 0>;

KILN_KERNEL(few_input_channels_mma, THREADS, MIN_BLOCKS, GatherParams, params) {
  FragmentSums sums;
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
  fill_table(table);

  const BlockBands bands(params);
  const auto filter = [&](int m, int number) {
    return memory + kept_row(m) * FILTER_PITCH + number * 4;
  };
  load_filters(filters_of(bands.group, params), bands.first_row, filter);
  BandLoader loader(bands.group, params, memory);
  int lines = LINES_AT;  // offset of the current band's lines

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const Position warp{position.m - lane / LANES_N * RUN_M, position.n - lane % LANES_N * RUN_N};
  Reader reader(memory, warp.m, lane, table);
#pragma unroll
  for (int j = 0; j < PRODUCTS_N; ++j)
    reader.set_column(j, pixel_place(Reader::column(warp.n, lane, j)));

  loader.start_band(bands.first, lines);
  loader.finish();
  land();
#pragma unroll 1
  for (u32 number = bands.first; number < bands.end; number += bands.stride) {
    const int next_lines = 2 * LINES_AT + X_BYTES - lines;
    if (bands.end - number > bands.stride) loader.start_band(number + bands.stride, next_lines);

    sums.start();
    // Each fragment is read while the previous one is multiplied; the last read repeats the first
    // one.
    Fragments fragments[2];
    const auto read = [&](Fragments& to, int fragment) {
      reader.load(to, 0, memory + lines, fragment, Reader::ALL_WORDS);
    };
    read(fragments[0], 0);
    fragments[0].split_tf32();
    const auto multiply = [&](int turn, int fragment) {
      read(fragments[1 - turn], fragment + 1 < FRAGMENTS ? fragment + 1 : 0);
      sums.multiply_fragments(fragments[turn]);
      fragments[1 - turn].split_tf32();
      if (loader.pending()) loader.step();
    };
    int fragment = 0;
    multiply_in_turns<1>(
        sums, FRAGMENTS, [&](int turn) { multiply(turn, fragment++); }, [] {});

    const Band band(number);
    store_lines(sums,
                TileStore(band, band, position, bands.first_row, band.image, bands.group, params));
    loader.flush();
    land();  // the next band has landed, and all threads have read this one
    lines = next_lines;
  }
}
