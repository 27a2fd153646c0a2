// halo_nchw_mma.cu by wgmma, for f32, with swapped operands. Operand B, which wgmma reads from
// shared memory, is the filter; 3xTF32 splits it there, once for each group of taps. Operand A is
// the pixels, whose words lanes read from the halo into registers, wherever the tap is. So a tile
// has no idle columns, unlike halo_nchw_wgmma.cu's, and the halo is copied asynchronously and
// unchanged.
#include "conv/halo/halo_tile.cuh"
#include "conv/halo/planar_stages.cuh"
#include "conv/load/tile_operands.cuh"
#include "conv/mma/left_words.cuh"
#include "conv/mma/right_planes.cuh"
#include "conv/store/staged_store.cuh"
#include "target/shared_memory.cuh"

static_assert(sizeof(element_t) == 4 && RUN_M == 2);

// A channel's pixels are contiguous, and the next channel's begin 8 banks further: a lane reads one
// of 8 pixels and of 4 channels.
constexpr int HALO_PLANE = (HALO_PIXELS + 23) / 32 * 32 + 8;  // words
constexpr int TAP_BYTES = CHUNK_STEPS * 2 * RIGHT_PLANE;

struct PlanarWords {
  static constexpr int PIXELS = HALO_PIXELS, TAPS = TAPS_R * TAPS_S, WIDTH = TAPS_S;
  static constexpr int HALO = CHUNK_WORDS * HALO_PLANE * 4;
  // 16 bytes between taps, because neighbouring lanes write neighbouring taps.
  static constexpr int TAP = TAP_BYTES + 16, ROW = 16;
  static constexpr int HALO_LO = 0, TAP_LO = 0;  // both operands are split after they have landed
  device_inline static constexpr int halo_word(int pixel, int word) {
    return (word * HALO_PLANE + pixel) * 4;
  }
  device_inline static constexpr int tap_word(int word) { return right_place(0, word); }
};
using Stages = PlanarStages<PlanarWords>;

constexpr int FILTERS_AT = 2 * PlanarWords::HALO;
constexpr int LO_AT = FILTERS_AT + 2 * Stages::GROUP;  // lo parts of the current group
constexpr int TABLE_AT = LO_AT + (SPLIT ? Stages::GROUP : 0);
static_assert(STAGES == 2 && HALO_STAGES == 2);
static_assert(STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);

// The offset of a tap from a pixel's topmost, leftmost one, in bytes of the halo.
device_inline int tap_at(const Step& step) {
  return tap_place<DISTANCE_H * HALO_COLUMNS, DISTANCE_W>(step.r, step.s) * 4;
}

// Reads a lane's pixels.
struct PixelReader {
  const byte_t* pixels[THREAD_N];  // addresses of the lane's first channel in the first halo

  device_inline PixelReader(const HaloTile& tile, Position position, const byte_t* halos) {
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j)
      pixels[j] = halos + PlanarWords::halo_word(tile.place(position.n + column_step(j)),
                                                 static_cast<int>(thread_x()) % 4);
  }
  // tap: the offset of the step's tap from the first halo, in bytes.
  device_inline void load(LeftFragments& to, int tap, int fragment) const {
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        to.word(j, half) = *reinterpret_cast<const u32*>(
            pixels[j] + tap + PlanarWords::halo_word(0, fragment * 8 + half * 4));
    to.split_tf32();
  }
};

KILN_KERNEL(halo_nchw_wgmma_swap, THREADS, MIN_BLOCKS, GatherParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);

  const HaloTile tile(cluster_number(), params);
#pragma unroll 1
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  PlanarHaloLoader<PlanarWords> halo_loader(source_of(tile, params), memory, table);
  PlanarFilterLoader<PlanarWords> filter_loader(filter_of(tile, params), tile.first_row, memory);
  const StepShare groups(CHUNKS * (tile.taps() / TAP_GROUP));

  const Position position = left_position(thread_x());
  const PixelReader reader(tile, position, memory);
  const SharedMatrix filters(memory + FILTERS_AT, RIGHT_PLANE, 128);

  sums.start();
  Stages stages(tile, halo_loader, filter_loader, FILTERS_AT, groups.begin, groups.end);
  const auto land = [&] {
    async_commit();
    async_wait<0>();
    if (!SPLIT) fence_proxy_async();
    block_barrier();
    if (SPLIT) {
      split_tf32<2 * CHUNK_STEPS, TAP_GROUP, PlanarWords::TAP>(
          memory + FILTERS_AT + stages.filter_at, memory + LO_AT);
      fence_proxy_async();
      block_barrier();
    }
  };
  const int steps = stages.groups_left * TAP_GROUP;
  stages.fill<false>(land);

  LeftProducts products;
  // A fragment is read while the one before is multiplied.
  LeftFragments pixels[2];
  const auto read = [&](LeftFragments& to, int fragment) {
    reader.load(to, stages.halo_at + tap_at(stages.step), fragment);
  };
  if (steps > 0) read(pixels[0], 0);
  // turn: the set that holds the step's first fragment.
  const auto multiply_step = [&](int turn) {
#pragma unroll
    for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
      const bool last = fragment + 1 == CHUNK_STEPS;
      start_products<false>(products, sums, pixels[(turn + fragment) % 2],
                            filters.moved(stages.filter_at + fragment * (2 * RIGHT_PLANE)),
                            LO_AT - FILTERS_AT - stages.group_at());
      // From here on, instructions overlap with the products.
      if (last) {
        stages.load();
        stages.end_step([&] {
          products.template wait<0>();  // the next copies overwrite what the products read
          land();
        });
      }
      products.template wait<1>();  // the previous products' registers are free
      read(pixels[(turn + fragment + 1) % 2], last ? 0 : fragment + 1);
    }
  };
  multiply_in_turns<CHUNK_STEPS>(sums, steps, multiply_step, [&] { products.template wait<0>(); });
  sums.finish();

  // Computed again, because keeping it from the beginning would take registers.
  const HaloTile stored(from_here(cluster_number()), params);
  block_barrier();
  stage_and_store(sums, left_position(from_here(thread_x())), stored, params,
                  reinterpret_cast<compute_t*>(memory));
}
