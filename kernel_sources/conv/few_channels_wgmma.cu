// few_channels.cu on Hopper's warpgroup products. Their right operand, which they read from shared
// memory where it lies, is the filters: it is taken apart once, for all bands. Their left operand
// is the pixels, whose words a lane reads from the lines into registers, wherever they lie there.
// So 16 pixels of 8 words cost a warp four reads of a lane, for products with all filters of the
// tile.
#include "conv/few_channels_bands.cuh"
#include "conv/promoted_sums.cuh"
#include "target/shared_memory.cuh"
#include "target/wgmma.cuh"

// Filters lie in planes of 16 bytes of the reduction, a plane's one behind the other. One plane is
// 16 bytes longer, so that lanes which write neighbouring planes write to different banks.
constexpr int FILTER_PLANE = TILE_M * 16 + 16;
constexpr int FILTER_BYTES = REDUCTION_WORDS / 4 * FILTER_PLANE;
constexpr int FILTER_REST = SPLIT ? FILTER_BYTES : 0;  // from an element's whole to its rest
constexpr int LINES_AT = FILTER_BYTES + FILTER_REST;
constexpr int TABLE_AT = LINES_AT + 2 * X_BYTES;
constexpr int FLAG_AT = TABLE_AT + REDUCTION_WORDS * 8;
static_assert(PIXELS_LEFT && PROMOTE % 2 == 0 && WARP_M == TILE_M && RUN_M % 2 == 0);

// A thread's rows are RUN_M side by side in the output, two of each product: which column of the
// products row m of the tile is.
device_inline int filter_column(int m) {
  constexpr int ROUND = LANES_M * RUN_M;
  return (m / ROUND * (RUN_M / 2) + m % RUN_M / 2) * 8 + m % ROUND / RUN_M * 2 + m % 2;
}

// Of a thread's first sum: a warp has all rows of its columns.
device_inline Position position_of(int thread) {
  const int lane = thread % 32;
  return {lane % LANES_M * RUN_M, thread / 32 * WARP_N + lane / LANES_M * RUN_N};
}

// Once they have landed: filters become what products read, wholes and rests.
device_inline void take_filters_apart(byte_t* filters) {
  struct alignas(16) Four {
    float element[4];
  };
#pragma unroll 2
  for (int i = thread_x(); i < REDUCTION_WORDS / 4 * TILE_M; i += THREADS) {
    byte_t* const at = filters + i / TILE_M * FILTER_PLANE + i % TILE_M * 16;
    Four whole = *reinterpret_cast<const Four*>(at), rest;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const Parts parts = split(whole.element[j]);
      whole.element[j] = parts.whole, rest.element[j] = parts.rest;
    }
    *reinterpret_cast<Four*>(at) = whole;
    *reinterpret_cast<Four*>(at + FILTER_REST) = rest;
  }
}

// A lane's pixels, 32 bytes of the reduction, as left operands of products.
struct PixelFragments {
  u32 whole[PRODUCTS_N][4], rest[SPLIT ? PRODUCTS_N : 1][4];
};

// Where a lane finds them.
struct PixelReader {
  const ReductionWord* words;  // of the reduction, from the lane's first one on
  int pixels[THREAD_N];        // their places in the lines, in bytes

  device_inline PixelReader(const ReductionWord* table, Position position)
      : words(table + thread_x() % 4) {
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) pixels[j] = pixel_place(position.n + column_step(j));
  }
  device_inline void load(PixelFragments& to, const byte_t* lines, int fragment) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ReductionWord word = words[fragment * FRAGMENT_WORDS + half * (FRAGMENT_WORDS / 2)];
      // f32 in three products comes to the fused multiply-adds where it is not finite.
      if (SPLIT || !FILLED_UP) word.mask = ~0u;
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j)
        to.whole[j / 2][half * 2 + j % 2] = word.read(lines + pixels[j]);
    }
    if constexpr (SPLIT) {
#pragma unroll
      for (int i = 0; i < PRODUCTS_N; ++i)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const Parts parts = split(float_of(to.whole[i][c]));
          to.whole[i][c] = bits_of(parts.whole), to.rest[i][c] = bits_of(parts.rest);
        }
    }
  }
};

KILN_KERNEL(few_channels_wgmma, THREADS, MIN_BLOCKS, GatherParams, params) {
  byte_t* const memory = shared_array<byte_t, FLAG_AT + 16>(0);
  ReductionWord* const table = reinterpret_cast<ReductionWord*>(memory + TABLE_AT);
  fill_table(table);

  const BlockBands bands(params);
  const auto filter = [&](int m, int number) {
    return memory + number / 4 * FILTER_PLANE + filter_column(m) * 16 + number % 4 * 4;
  };
  BandLoader loader(bands.group, params, memory);
  int lines = LINES_AT;  // of the band at hand
  loader.start_band(bands.first, lines);
  loader.finish();

  const Position position = position_of(thread_x());
  const PixelReader reader(table, position);
  const SharedMatrix filters(memory, FILTER_PLANE, 128);
  enum class Filters { none, multiplied, exact } there = Filters::none;  // as products read them
#pragma unroll 1
  for (u32 number = bands.first; number < bands.end; number += bands.stride) {
    const int next_lines = 2 * LINES_AT + X_BYTES - lines;
    if (bands.end - number > bands.stride) loader.start_band(number + bands.stride, next_lines);

    PromotedSums sums;
#pragma unroll 1
    do {
      const Filters wanted = SPLIT && sums.guarded ? Filters::exact : Filters::multiplied;
      if (there != wanted) {
        load_filters(filters_of(bands.group, params), bands.first_row, filter);
        land();
        if (SPLIT && wanted == Filters::multiplied) take_filters_apart(memory);
        show_to_tensor_cores();
        block_barrier();
        there = wanted;
      }
      if (wanted == Filters::exact) {
        add_fused(sums, filter, memory + lines, table, position);
        continue;
      }
      WarpgroupProducts<element_t, PRODUCTS_RIGHT, PRODUCTS_LEFT> products;
      // A fragment is read while the one before is multiplied; the last one reads the first again.
      PixelFragments pixels[2];
      reader.load(pixels[0], memory + lines, 0);
      const auto multiply = [&](int turn, int fragment) {
        const SharedMatrix right = filters.moved(fragment * (2 * FILTER_PLANE));
        const PixelFragments& left = pixels[turn];
        products.begin();
#pragma unroll
        for (int i = 0; i < PRODUCTS_LEFT; ++i) {
          if constexpr (SPLIT) {
            products.multiply(sums.part[i], left.rest[i], right);
            products.multiply(sums.part[i], left.whole[i], right.moved(FILTER_REST));
          }
          products.multiply(sums.part[i], left.whole[i], right);
        }
        products.commit();
        // What follows runs beside the products.
        if (loader.pending()) loader.step();
        products.template wait<1>(sums.part);  // the registers of those before are free
        reader.load(pixels[1 - turn], memory + lines, fragment + 1 < FRAGMENTS ? fragment + 1 : 0);
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
        products.template wait<0>(sums.part);
        if (PROMOTE > 0 && k < FRAGMENTS) sums.promote();
      }
    } while (sums.finish(reinterpret_cast<compute_t*>(memory + FLAG_AT)));

    const Band band(number);
    store_lines(sums, TileStore(band, position, bands.first_row, band.image, bands.group, params));
    loader.flush();
    land();  // the next band has landed for all; this one has been read by all
    lines = next_lines;
  }
}
