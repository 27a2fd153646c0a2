// Forward convolution and data gradient of tensors whose channels lie apart, on Hopper's warpgroup
// products: halo_wgmma.cu with loaders that transpose on the way.
//
// The tensor cores read both operands where they lie, and need a thread for no more than to start
// them: beside the products of one tap the threads gather what the taps to come need, element by
// element. A cluster of blocks may share one tile: each takes a part of the groups of taps.
#include "conv/planar_stages.cuh"
#include "conv/promoted_sums.cuh"
#include "conv/staged_store.cuh"
#include "conv/tile_operands.cuh"
#include "conv/warpgroup_tile.cuh"
#include "target/shared_memory.cuh"

// As SharedMatrix reads it: planes of 16 bytes of channels, four words.
struct PlanarPlanes {
  static constexpr int PIXELS = HALO_PIXELS, TAPS = TAPS_R * TAPS_S, WIDTH = TAPS_S;
  static constexpr int FILTER_PART = TILE_M * 16;  // bytes from one plane of a tap to the next
  // A tap 16 bytes further, for neighbouring lanes write neighbouring taps.
  static constexpr int HALO = HALO_BYTES, TAP = CHUNK_STEPS * 2 * FILTER_PART + 16, ROW = 16;
  device_inline static constexpr int halo_word(int pixel, int word) {
    return word / 4 * PLANE_BYTES + pixel * 16 + word % 4 * 4;
  }
  device_inline static constexpr int tap_word(int word) {
    return word / 4 * FILTER_PART + word % 4 * 4;
  }
};
using Stages = PlanarStages<PlanarPlanes>;

constexpr int FILTERS_AT = 2 * HALO_BYTES;
constexpr int TABLE_AT = FILTERS_AT + 2 * Stages::GROUP;
static_assert(STAGES == 2 && HALO_STAGES == 2);
static_assert(STAGED_BYTES <= SHARED_BYTES);
static_assert(TABLE_AT + 4 * HALO_PIXELS <= SHARED_BYTES);
static_assert(PRODUCTS_M == 1 && !SPLIT);

KILN_KERNEL(halo_wgmma_planar, THREADS, MIN_BLOCKS, GatherParams, params) {
  byte_t* const memory = shared_array<byte_t, SHARED_BYTES>(0);
  int* const table = reinterpret_cast<int*>(memory + TABLE_AT);

  const PixelTile tile(block_x(), params);
  for (int i = thread_x(); i < HALO_PIXELS; i += THREADS) table[i] = tile.source_offset(i);
  block_barrier();

  PlanarHaloLoader<PlanarPlanes> halo_loader(source_of(tile, params), memory, table);
  PlanarFilterLoader<PlanarPlanes> filter_loader(filter_of(tile, params), tile.first_row, memory);
  const StepShare groups(CHUNKS * (tile.taps() / TAP_GROUP));
  Stages stages(tile, halo_loader, filter_loader, FILTERS_AT, groups.begin, groups.end);

  const SharedMatrix pixels = pixel_matrix(memory);
  const SharedMatrix filters(memory + FILTERS_AT + warpgroup_m() * (64 * 16),
                             PlanarPlanes::FILTER_PART, 128);

  const int steps = stages.groups_left * TAP_GROUP;
  const auto land = [] {
    async_commit();
    async_wait<0>();
    show_to_tensor_cores();
    block_barrier();
  };
  stages.fill(land);

  PromotedSums sums;
  WarpgroupProducts<element_t, PRODUCTS_N> products;
  // Promotions stay out of the innermost loop, where they would be in the products' way.
  int k = 0;
#pragma unroll 1
  while (k < steps) {
    const int stop = PROMOTE > 0 && k + PROMOTE < steps ? k + PROMOTE : steps;
#pragma unroll 1
    for (; k < stop; ++k) {
      const SharedMatrix filter = filters.moved(stages.filter_at);
      const SharedMatrix of_tap =
          pixels.moved(stages.halo_at + PixelTile::tap(stages.step.r, stages.step.s) * 16);
      products.begin();
#pragma unroll
      for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment)
        products.template multiply<false>(sums.part[0],
                                          filter.moved(fragment * (2 * PlanarPlanes::FILTER_PART)),
                                          of_tap.moved(fragment * (2 * PLANE_BYTES)));
      products.commit();
      stages.load();  // beside the products
      stages.end_step([&] {
        products.template wait<0>(sums.part[0]);
        land();
      });
      products.template wait<1>(sums.part[0]);
    }
    products.template wait<0>(sums.part[0]);
    if (PROMOTE > 0 && k < steps) sums.promote();
  }
  compute_t* const stage = reinterpret_cast<compute_t*>(memory);
  sums.finish(stage);
  block_barrier();
  stage_and_store(sums, warpgroup_position(), tile, params, stage);
}
