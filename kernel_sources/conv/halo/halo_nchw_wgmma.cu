// Forward convolution and data gradient in NCHW by wgmma: halo_nhwc_wgmma.cu with loaders that
// transpose while they copy.
//
// wgmma reads both operands from shared memory, so threads only start products. While one tap is
// multiplied they gather what the next taps need, element by element. The blocks of a cluster may
// share one tile: each takes some of the groups of taps.
//
// 3xTF32 (SPLIT) elements are split while they are copied: the planes of the hi parts of a halo, or
// of a tap, are followed by those of the lo parts.
#include "conv/halo/planar_stages.cuh"
#include "conv/halo/warpgroup_tile.cuh"
#include "conv/load/tile_operands.cuh"
#include "conv/mma/warpgroup_sums.cuh"
#include "conv/store/staged_store.cuh"
#include "target/shared_memory.cuh"

// The layout that SharedMatrix reads: planes of 16 bytes of channels, four words.
struct PlanarPlanes {
  static constexpr int PIXELS = HALO_PIXELS, TAPS = TAPS_R * TAPS_S, WIDTH = TAPS_S;
  static constexpr int FILTER_PART = TILE_M * 16;  // bytes from one plane of a tap to the next
  static constexpr int HALO_LO = SPLIT ? HALO_BYTES : 0;
  static constexpr int TAP_LO = SPLIT ? CHUNK_STEPS * 2 * FILTER_PART : 0;
  // 16 bytes between taps, because neighbouring lanes write neighbouring taps.
  static constexpr int HALO = HALO_BYTES + HALO_LO;
  static constexpr int TAP = CHUNK_STEPS * 2 * FILTER_PART + TAP_LO + 16, ROW = 16;
  device_inline static constexpr int halo_word(int pixel, int word) {
    return word / 4 * PLANE_BYTES + pixel * 16 + word % 4 * 4;
  }
  device_inline static constexpr int tap_word(int word) {
    return word / 4 * FILTER_PART + word % 4 * 4;
  }
};
using Stages = PlanarStages<PlanarPlanes>;
// Where copies pass through registers, products keep running over a group's end: the previous
// group's memory is written only after all warps have multiplied it. Asynchronous copies lose more
// by starting that late than they gain.
constexpr bool RUNS_ON = Stages::WAIT;

constexpr int FILTERS_AT = 2 * PlanarPlanes::HALO;
constexpr int TABLE_AT = FILTERS_AT + 2 * Stages::GROUP;
static_assert(STAGES == 2 && HALO_STAGES == 2);
static_assert(STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);
static_assert(PRODUCTS_M == 1);

KILN_KERNEL(halo_nchw_wgmma, THREADS, MIN_BLOCKS, GatherParams, params) {
  WarpgroupSums sums;
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);

  PixelTile tile(cluster_number(), params);
  tile.keep();
#pragma unroll 1
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  PlanarHaloLoader<PlanarPlanes> halo_loader(source_of(tile, params), memory, table);
  PlanarFilterLoader<PlanarPlanes> filter_loader(filter_of(tile, params), tile.first_row, memory);
  const StepShare groups(CHUNKS * (tile.taps() / TAP_GROUP));

  const SharedMatrix pixels = pixel_matrix(memory);
  const SharedMatrix filters(memory + FILTERS_AT + warpgroup_m() * (64 * 16),
                             PlanarPlanes::FILTER_PART, 128);
  const Position position = warpgroup_position();
  const auto land = [] {
    async_commit();
    async_wait<0>();
    fence_proxy_async();
    block_barrier();
  };

  sums.start();
  Stages stages(tile, halo_loader, filter_loader, FILTERS_AT, groups.begin, groups.end);
  const int steps = stages.groups_left * TAP_GROUP;
  stages.fill<false>(land);
  const auto tap_at = [&] {
    return stages.halo_at + PixelTile::tap(stages.step.r, stages.step.s) * 16;
  };

  WarpgroupProducts<element_t, PRODUCTS_M, PRODUCTS_N> products;
  // Promotions stay out of the innermost loop, where they would delay products. Each warpgroup
  // promotes at a different time, while another one's products go on.
  constexpr int GROUPS = THREADS / 128;
  int k = 0, stop = (static_cast<int>(thread_x()) / 128 + 1) * PROMOTE / GROUPS;
#pragma unroll 1
  while (k < steps) {
    if (PROMOTE == 0 || stop > steps) stop = steps;
#pragma unroll 1
    for (; k < stop; ++k) {
      const bool group_begins = stages.tap == 0;
      const SharedMatrix filter = filters.moved(stages.filter_at), of_tap = pixels.moved(tap_at());
      products.begin();
#pragma unroll
      for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment) {
        const SharedMatrix left = filter.moved(fragment * (2 * PlanarPlanes::FILTER_PART));
        const SharedMatrix right = of_tap.moved(fragment * (2 * PLANE_BYTES));
        const bool add = fragment > 0 || !sums.fresh;
        if constexpr (SPLIT) {
          products.template multiply<false, 0>(sums.registers, left.moved(PlanarPlanes::TAP_LO),
                                               right, add);
          products.template multiply<false, 0>(sums.registers, left,
                                               right.moved(PlanarPlanes::HALO_LO));
        }
        products.template multiply<false, 0>(sums.registers, left, right, SPLIT || add);
      }
      products.commit();
      sums.fresh = false;
      // From here on, instructions overlap with the products.
      if (RUNS_ON && group_begins) {
        products.template wait<1>();
        block_barrier();
      }
      stages.load();
      stages.end_step([&] {
        if (!RUNS_ON) products.template wait<0>();
        land();
      });
      products.template wait<1>();
    }
    products.template wait<0>();
    sums.end_run(k < steps);
    stop += PROMOTE;
  }
  sums.finish();
  block_barrier();
  stage_and_store(sums, position, tile, params, reinterpret_cast<compute_t*>(memory));
}
