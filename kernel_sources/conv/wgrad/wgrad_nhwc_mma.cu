// Filter gradient of channels-last tensors on the tensor cores: an implicit matrix product over the
// pixels of dy.
//
// A thread block computes a TILE_M (filters) x TILE_N (columns: channels and taps) tile of dw. A
// stage in shared memory has STAGE_PIXELS pixels of both operands, with contiguous filters or
// channels as in global memory; reads into registers transpose them. STAGES stages are in flight.
// The reduction is long and tiles are few, so the blocks of a cluster share it.
#include "conv/mma/fragments.cuh"
#include "conv/wgrad/nhwc_loader.cuh"
#include "conv/wgrad/tile.cuh"
#include "target/shared_memory.cuh"

static_assert(TRANSPOSABLE && SLICES == 1 && STAGE_FRAGMENTS % 2 == 0);

// The offsets of a lane's operands in a stage.
struct FragmentReader {
  const byte_t *m, *n;

  device_inline FragmentReader(const byte_t* stages, Position warp, int lane)
      : m(stages + warp.m * static_cast<int>(sizeof(element_t)) +
          transposed_place_m<PITCH_M>(lane)),
        n(stages + STAGE_M + warp.n * static_cast<int>(sizeof(element_t)) +
          transposed_place_n<PITCH_N>(lane)) {}

  device_inline void load(Fragments& to, int slot, int fragment) const {
    load_transposed_m<PITCH_M>(to, m + slot * STAGE + fragment * (FRAGMENT_K * PITCH_M));
    load_transposed_n<PITCH_N>(to, n + slot * STAGE + fragment * (FRAGMENT_K * PITCH_N));
  }
};

KILN_KERNEL(wgrad_nhwc_mma, THREADS, MIN_BLOCKS, WgradParams, params) {
  FragmentSums sums;
  byte_t* const stages = shared_array<byte_t, STAGES * STAGE>(0);

  // A block's part of the pixels is a range of consecutive steps, each of one stage.
  const u32 pixels = static_cast<u32>(params.pixels);
  const u32 all_steps = (pixels + STAGE_PIXELS - 1) / STAGE_PIXELS;
  const u32 a_part = cluster_share(all_steps);
  const u32 begin = cluster_rank() * a_part;
  const u32 left = begin < all_steps ? all_steps - begin : 0;
  const u32 steps = left < a_part ? left : a_part;
  const u32 end = left <= a_part ? pixels : (begin + a_part) * STAGE_PIXELS;

  const WgradTile tile(cluster_number());
  const TapBox taps = all_taps();
  const ColumnLoader columns(tile.x(params), taps, tile.first_column, end);
  const GradientLoader gradients(tile.dy(params), tile.first_filter, end);
  // Also called beyond the part's last step, where it loads only zeros: without a branch, the
  // compiler can move the copies between the products.
  const auto load = [&](u32 step, int slot) {
    const u32 first = (begin + step) * STAGE_PIXELS;
    gradients.load(first, stages + slot * STAGE);
    columns.load(first, stages + slot * STAGE + STAGE_M);
  };

  const int lane = thread_x() % 32;
  const Position position = thread_position(thread_x());
  const Position warp{position.m - lane / LANES_N * RUN_M, position.n - lane % LANES_N * RUN_N};
  const FragmentReader reader(stages, warp, lane);

  constexpr int AHEAD = STAGES - 1;  // steps in flight
  sums.start();
#pragma unroll 1
  for (u32 step = 0; step < AHEAD; ++step) {
    load(step, static_cast<int>(step));
    async_commit();
  }
  async_wait<AHEAD - 1>();
  block_barrier();

  int slot = 0;
  const auto load_ahead = [&](u32 step) {
    load(step + AHEAD, slot == 0 ? AHEAD : slot - 1);  // into the slot that was read last
    async_commit();
  };
  const auto end_stage = [&] {
    async_wait<AHEAD - 1>();
    block_barrier();  // the next stage has landed, and all have read this one
    slot = slot + 1 == STAGES ? 0 : slot + 1;
  };
  // Each fragment is read while the previous one is multiplied. A stage's last fragment is
  // multiplied after the barrier that ends the stage, so that its products hide the read of the
  // next stage's first one.
  Fragments fragments[2] = {};
  reader.load(fragments[0], slot, 0);
  // Promotions stay out of the innermost loop, where they would delay products.
  u32 step = 0;
#pragma unroll 1
  while (step < steps) {
    const u32 stop = steps - step > PROMOTE ? step + PROMOTE : steps;
#pragma unroll 1
    for (; step < stop; ++step) {
      sums.multiply_fragments(fragments[1]);
      fragments[0].split_tf32();
#pragma unroll
      for (int fragment = 0; fragment + 1 < STAGE_FRAGMENTS; ++fragment) {
        reader.load(fragments[(fragment + 1) % 2], slot, fragment + 1);
        if (fragment == 0) load_ahead(step);
        sums.multiply_fragments(fragments[fragment % 2]);
        fragments[(fragment + 1) % 2].split_tf32();
      }
      end_stage();
      reader.load(fragments[0], slot, 0);
    }
    if (step == steps) sums.multiply_fragments(fragments[1]);
    sums.end_run(step < steps);
  }
  async_wait<0>();

  constexpr int EXCHANGE = STAGES * STAGE / static_cast<int>(sizeof(compute_t));
  reduce_and_store<EXCHANGE>(sums, reinterpret_cast<compute_t*>(stages),
                             GradientStore<DW_RUN>(tile, position, taps, params));
}
