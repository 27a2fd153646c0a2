// Filter gradient on the tensor cores of an x whose rows lie as lines: of tensors whose channels
// lie apart (NCHW), and of few channels side by side, which are columns of one row as the taps are.
// An implicit matrix product over the pixels of dy.
//
// A thread block computes a TILE_M (filters) x TILE_N (columns: channels and taps) tile of dw, band
// by band of pixels (wgrad_band.cuh). While the fragments of one stage are multiplied, the next one
// is loaded beside them. Filters are read by ldmatrix, columns of x word by word, each at its own
// place (word_reader.cuh). The reduction is long, and the tiles are few: the blocks of a cluster
// share it.
#include "conv/wgrad_planar_loader.cuh"
#include "target/shared_memory.cuh"

constexpr int TABLE_AT = 2 * STAGE_BYTES;
constexpr int MEMORY_BYTES =
    TABLE_AT + STAGE_WORDS * 8 > THREADS* LINE * 4 ? TABLE_AT + STAGE_WORDS * 8 : THREADS* LINE * 4;
static_assert(STAGES == 2 && SLICES == 1 && (FILTERS_INNER ? TRANSPOSABLE : RUN_M == 1));
static_assert(PROMOTE % 2 == 0, "fragments take turns");

using Reader = WordReader<GRADIENT_PITCH, FILTERS_INNER, FILLED_UP && !SPLIT, ROW_HALVES,
                          STRIDE_H * X_ROW * 4>;
constexpr int FILTER_PLACE = FILTERS_INNER ? 4 : GRADIENT_PITCH;  // of f32, in a stage
constexpr int PIXEL_PLACE = FILTERS_INNER ? GRADIENT_PITCH : 4;

// A stage of f32 by fused multiply-adds: slow, and right where infinities are about.
device_inline void add_fused(Sums& sums, const byte_t* stage, const ReductionWord* table,
                             int pixels, const WgradTile& tile, const TapBox& taps,
                             int first_channel, Position position) {
#pragma unroll 1
  for (int pixel = 0; pixel < pixels; ++pixel) {
    const ReductionWord word = table[pixel];
    float filters[THREAD_M];
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
      filters[i] = *reinterpret_cast<const float*>(
          stage + (position.m + row_step(i)) * FILTER_PLACE + pixel * PIXEL_PLACE);
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const int column = tile.first_column + position.n + column_step(j);
      if (column >= COLUMNS) continue;
      const float value = float_of(
          word.read(stage + GRADIENT_BYTES + column_place(taps.decode(column), first_channel)));
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) sums.sum[i][j] += filters[i] * value;
    }
  }
}

KILN_KERNEL(wgrad_planar, THREADS, MIN_BLOCKS, WgradParams, params) {
  byte_t* const memory = shared_array<byte_t, MEMORY_BYTES>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
  for (int i = thread_x(); i < STAGE_WORDS; i += THREADS) table[i] = pixel_entry(i);

  // A block's part of the reduction is a run of bands.
  const u32 images = DIVIDE(DIV_OPQ, static_cast<u32>(params.pixels));
  const u32 all_bands = images * BANDS;
  const u32 a_part = (all_bands + cluster_size() - 1) / cluster_size();
  const u32 begin = cluster_rank() * a_part;
  const u32 left = begin < all_bands ? all_bands - begin : 0;
  const u32 bands = left < a_part ? left : a_part;

  const WgradTile tile(block_x());
  const TapBox taps = all_taps();
  const int first_channel = taps.decode(tile.first_column).c;
  StageLoader loader(tile, params, first_channel, memory);

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const Position warp{position.m - lane / LANES_N * RUN_M, position.n - lane % LANES_N * RUN_N};
  Reader reader(memory, warp.m, lane, table);
#pragma unroll
  for (int j = 0; j < PRODUCTS_N; ++j) {
    const int column = tile.first_column + Reader::column(warp.n, lane, j);
    const bool exists = COLUMNS % TILE_N == 0 || column < COLUMNS;
    reader.set_column(
        j, column_place(taps.decode(exists ? column : tile.first_column), first_channel));
  }

  FragmentSums sums;
#pragma unroll 1
  do {
    u32 next = 0;             // band to be loaded, of the part
    int pixels_of_next = 0;   // words of them
    int stage = STAGE_BYTES;  // at hand, in shared memory
    int pixels = 0;
    const auto start_next = [&] {
      if (next >= bands) return;
      const Band band(begin + next);
      pixels_of_next = band.words;
      loader.start(band, STAGE_BYTES - stage);
      ++next;
    };
    const auto end_stage = [&] {
      async_commit();
      async_wait<0>();
      block_barrier();  // the next stage has landed for all; this one has been read by all
      stage = STAGE_BYTES - stage;
      pixels = pixels_of_next;
      start_next();
    };
    start_next();
    loader.load_all();
    end_stage();
    // A stage's last share is stored a step after it was loaded: so this one, too, has as many
    // steps as it takes.
    loader.load_step();

    if (SPLIT && sums.guarded) {
#pragma unroll 1
      for (u32 band = 0; band < bands; ++band) {
        loader.load_all();
        add_fused(sums, memory + stage, table, pixels, tile, taps, first_channel, position);
        end_stage();
      }
      continue;
    }

    // A fragment is read while the one before is multiplied.
    Fragments fragments[2];
    const auto read = [&](Fragments& to, int fragment) {
      reader.load(to, stage, memory + stage + GRADIENT_BYTES, fragment,
                  FILLED_UP ? pixels : Reader::ALL_WORDS);
    };
    if (bands > 0) {
      read(fragments[0], 0);
      fragments[0].take_apart();
    }
    int fragment = 0;  // of the stage, at hand
    const auto multiply = [&](int turn) {
      const bool ends = ++fragment == STAGE_FRAGMENTS;
      if (ends) end_stage(), fragment = 0;
      read(fragments[1 - turn], fragment);
      sums.multiply_fragments(fragments[turn], [&](int row) { loader.load_among(row); });
      fragments[1 - turn].take_apart();
      loader.end_step();
    };
    // Promotions stay out of the innermost loop, where they would be in the products' way.
    const u32 count = bands * STAGE_FRAGMENTS;
    u32 k = 0;
#pragma unroll 1
    while (k < count) {
      const u32 stop = count - k > PROMOTE ? k + PROMOTE : count;
#pragma unroll 1
      for (;;) {
        multiply(0);
        if (++k == stop) break;
        multiply(1);
        if (++k == stop) break;
      }
      if (k < count) sums.promote();
    }
  } while (sums.finish(reinterpret_cast<compute_t*>(memory)));

  const Epilogue epilogue = tile.epilogue(params);
  const GradientStore<DW_RUN> target(tile, position, taps);
  reduce_and_store<MEMORY_BYTES / 4>(
      sums, reinterpret_cast<compute_t*>(memory),
      [&](const compute_t(&line)[LINE], int index) { target.store(line, index, epilogue); });
}
