// Filter gradient on Hopper, of channels-last tensors or, with a filter of one tap, channels-first
// ones (PLANAR, planar.cuh): a matrix product of dy and x, whose reduction runs over
// consecutive pixels of dy. TMA loads STEP_PIXELS pixels at a time into shared memory
// (stages.cuh). wgmma reads 16-bit operands there. For f32, as TF32 or 3xTF32 (SPLIT), x is
// transposed in shared memory first, and dy passes through registers (turn.cuh).
//
// A block has HELPERS warpgroups that issue copies and transpose, and CONSUMERS that multiply.
// Blocks that share a tile divide the pixels. Those of a cluster add up their sums in rank order
// through shared memory; groups of clusters (PARTIAL) leave theirs in the workspace, and a second
// step (wgrad_dense_finish.cu) adds them up in order.
#include "conv/dense/wgrad/add_up.cuh"
#include "conv/dense/wgrad/lost.cuh"
#include "conv/dense/wgrad/planar.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"
#include "target/warpgroup.cuh"

// Calls f(quad, its four sums) for each quad.
template <int Q = 0, class F>
device_inline void each_quad(const Sums& sums, const F& f) {
  Quad quad;
  sums.template take<Q / PRODUCTS_A_ROW, Q % PRODUCTS_A_ROW>(quad.sum);
  f(Q, quad);
  if constexpr (Q + 1 < QUADS) each_quad<Q + 1>(sums, f);
}

// Adds quads Q to END to what the workspace holds.
template <int Q, int END, int FIRST>
device_inline void add_quads(const Sums& sums, const Quad (&before)[END - FIRST], Quad* to) {
  Quad quad;
  sums.template take<Q / PRODUCTS_A_ROW, Q % PRODUCTS_A_ROW>(quad.sum);
#pragma unroll
  for (int i = 0; i < 4; ++i) quad.sum[i] += before[Q - FIRST].sum[i];
  to[Q * ADDERS] = quad;
  if constexpr (Q + 1 < END) add_quads<Q + 1, END, FIRST>(sums, before, to);
}

// Stores a thread's quads to the workspace, several at a time so that their loads overlap.
template <int FIRST = 0>
device_inline void put_partial(const Sums& sums, Quad* to, bool continued) {
  constexpr int END = FIRST + 4 < QUADS ? FIRST + 4 : QUADS;
  Quad before[END - FIRST] = {};
  if (continued) {
#pragma unroll
    for (int i = FIRST; i < END; ++i) before[i - FIRST] = to[i * ADDERS];
  }
  add_quads<FIRST, END, FIRST>(sums, before, to);
  if constexpr (END < QUADS) put_partial<END>(sums, to, continued);
}

// The work of the helper warpgroups; called by all their threads.
template <int ASKER = 0>
device_inline void help(const Params& params, const Share& share, unsigned char* memory,
                        Barriers& barriers) {
  const int warp = static_cast<int>(thread_x() / 32);
  if constexpr (ASKER < ASKERS) {
    if (thread_x() == ASKER * 32) {
      if constexpr (PLANAR) {
        produce_planar<ASKER == 1>(params, share, memory, barriers);
      } else {
        Ring<STAGES> ring(1);
        produce<SLABS * ASKER / ASKERS, SLABS*(ASKER + 1) / ASKERS>(params, share, memory, barriers,
                                                                    ring);
      }
    }
    help<ASKER + 1>(params, share, memory, barriers);
  } else if constexpr (TURNS) {
    if (warp >= ASKERS) turn(share, memory, barriers, warp - ASKERS);
  }
}

// Whether this block is a group by itself, so that its sums go to the workspace without a cluster.
device_inline bool is_group() { return PARTIAL && !(CLUSTERED && cluster_size() > 1); }

// Each block of the cluster has its threads' quads in shared memory, as [quad][thread]. Every block
// adds up its share of the quads over all blocks and stores the totals. It takes several quads at a
// time, because each access of another block's memory takes long.
device_inline void add_up(const Params& params, const Quad* own, int adder) {
  // Computed again, because keeping it from the start would take registers.
  const Share share(params.common, from_here(cluster_number()));
  const WgradTile tile(share.tile);
  const int parts = static_cast<int>(cluster_size());
  const int some = (QUADS + parts - 1) / parts;
  const int first = static_cast<int>(cluster_rank()) * some;
  const int end = first + some < QUADS ? first + some : QUADS;
#ifdef LATE_BYTES  // registers are scarce where constants are parameters
  constexpr int TOGETHER = 1;
#else
  constexpr int TOGETHER = 4;
#endif
  u64 lost = 0;  // bit i: quad i has a lost sum
  static_assert(QUADS <= 64);
#pragma unroll 1
  for (int from = first; from < end; from += TOGETHER) {
    Quad total[TOGETHER] = {};
#pragma unroll 2
    for (int rank = 0; rank < parts; ++rank) {
      const Quad* const theirs = cluster_shared(own, static_cast<u32>(rank)) + adder;
#pragma unroll
      for (int i = 0; i < TOGETHER; ++i) {
        // Beyond the share, its last quad is read again.
        const Quad other = theirs[(from + i < end ? from + i : end - 1) * ADDERS];
#pragma unroll
        for (int j = 0; j < 4; ++j) total[i].sum[j] += other.sum[j];
      }
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; ++i) {
      const int quad = from + i;
      if (quad >= end) break;
      if constexpr (PARTIAL) {
        Quad& to = partial_quads(params.common, share.group, share.tile)[quad * ADDERS + adder];
        if (params.common.continued != 0) {
#pragma unroll
          for (int j = 0; j < 4; ++j) total[i].sum[j] += to.sum[j];
        }
        to = total[i];
      } else if (!store_quad(params.common, QuadPlace(tile, quad, adder), total[i])) {
        lost |= u64(1) << quad;
      }
    }
  }
  if constexpr (CHECKED && !PARTIAL) {
    u64 of_any = lost;
#pragma unroll 1
    for (u32 mask = 16; mask > 0; mask /= 2) of_any |= warp_shuffle_xor(of_any, mask);
#pragma unroll 1
    for (int quad = 0; of_any >> quad != 0; ++quad)
      if ((of_any >> quad & 1) != 0)
        add_up_lost(params.common, tile, quad, adder, (lost >> quad & 1) != 0);
  }
}

KILN_BEGINS_STEP;

KILN_KERNEL(wgrad_dense_wgmma, THREADS, 1, Params, params) {
  Sums sums;
  sums.declare();
  unsigned char* const memory = shared_array<unsigned char, BARRIERS_AT>(0);
  Barriers& barriers = *shared_array<Barriers, 1>(BARRIERS_AT);
  const Share share(params.common, cluster_number());
  if (thread_x() == 0) {
    barriers.init();
    prefetch_map(params.x);
    prefetch_map(params.dy);
  }
  block_barrier();
  begin_step();
  const int adder = static_cast<int>(thread_x()) - HELPING_THREADS;
  if (adder < 0) {
    give_registers<HELPER_REGISTERS>();
    help(params, share, memory, barriers);
  } else {
    take_registers<CONSUMER_REGISTERS>();
    Steps steps(memory, barriers, adder / 128);
    add_up_products(share, sums, steps);
    if (is_group()) {
      const Share stored(params.common, from_here(cluster_number()));
      put_partial(sums, partial_quads(params.common, stored.group, stored.tile) + adder,
                  params.common.continued != 0);
    } else {
      named_barrier<ADDERS>(1);  // until all have read the stages, which are overwritten now
      Quad* const to = reinterpret_cast<Quad*>(memory) + adder;
      each_quad(sums, [&](int quad, const Quad& value) { to[quad * ADDERS] = value; });
    }
  }
  if (is_group()) return;
  cluster_barrier();
  if (adder >= 0) add_up(params, reinterpret_cast<const Quad*>(memory), adder);
  cluster_barrier();  // other blocks read this block's shared memory until here
}
