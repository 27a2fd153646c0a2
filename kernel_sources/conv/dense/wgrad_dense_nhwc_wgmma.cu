// Filter gradient of channels-last tensors of 16 bits on Hopper: a matrix product of dy and x,
// summed over pixels of dy that follow each other. The copy engine brings STEP_PIXELS of them at a
// time to shared memory, pixel by pixel: 64 filters of dy for each left operand, and for each block
// of columns 64 channels of x, of the places that a tap sees (an im2col map). The tensor cores
// transpose both.
//
// A block is one warpgroup that asks for copies and CONSUMERS that multiply. Blocks that share a
// tile take pixels one after the other: those of a cluster add up their sums in the order of their
// ranks through shared memory; groups of them (PARTIAL) leave sums in the workspace, which a second
// step (wgrad_dense_finish.cu) adds up in order.
#include "conv/dense/box.cuh"
#include "conv/dense/wgrad_sums.cuh"
#include "target/bulk_copy.cuh"
#include "target/cluster.cuh"
#include "target/shared_memory.cuh"
#include "target/sum_registers.cuh"
#include "target/warpgroup.cuh"
#include "target/wgmma.cuh"

struct Params {
  DenseWgradParams common;
  TensorMap x, dy;
};

constexpr int LINE_BYTES = 128;  // 64 channels of a pixel
constexpr int SLAB_BYTES = STEP_PIXELS * LINE_BYTES;
constexpr int LEFT_SLABS = CONSUMERS * LEFT;
constexpr int STAGE_BYTES = (LEFT_SLABS + BLOCK_COLUMNS) * SLAB_BYTES;
constexpr int BARRIERS_AT = STAGES * STAGE_BYTES;
constexpr int THREADS = 128 * (1 + CONSUMERS);
static_assert(STEP_PIXELS % 16 == 0 && SLAB_BYTES % 1024 == 0);
static_assert(QUADS * ADDERS * static_cast<int>(sizeof(Quad)) <= BARRIERS_AT,
              "sums take the place of stages");

struct Barriers {
  Mbarrier landed[STAGES], free[STAGES];
};
static_assert(BARRIERS_AT + static_cast<int>(sizeof(Barriers)) <= SHARED_BYTES);

// A ring of stages: which is next, and the parity of its phase.
struct Ring {
  int stage = 0;
  u32 parity;
  device_inline explicit Ring(u32 first_parity) : parity(first_parity) {}
  device_inline void advance() {
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
};

// {image, plane, row, column} of a pixel of dy. Divisions cost the one thread that asks for copies
// more than the copies do, so it steps from pixel to pixel.
struct PixelPlace {
  int n, o, p, q;
  device_inline explicit PixelPlace(u32 pixel) {
    const u32 plane = pixel / (OUT_P * OUT_Q);
    n = static_cast<int>(plane / OUT_O);
    o = static_cast<int>(plane % OUT_O);
    const int rest = static_cast<int>(pixel % (OUT_P * OUT_Q));
    p = rest / OUT_Q;
    q = rest % OUT_Q;
  }
  device_inline void advance() {
    q += STEP_PIXELS % OUT_Q;
    p += STEP_PIXELS / OUT_Q % OUT_P;
    o += STEP_PIXELS / (OUT_P * OUT_Q) % OUT_O;
    n += STEP_PIXELS / (OUT_P * OUT_Q) / OUT_O;
    if (q >= OUT_Q) q -= OUT_Q, ++p;
    if (p >= OUT_P) p -= OUT_P, ++o;
    if (o >= OUT_O) o -= OUT_O, ++n;
  }
};

// What of the sum is this block's: steps from `first` to `end`.
struct Share {
  u32 tile, group, first, end;
  device_inline explicit Share(const DenseWgradParams& params) {
    // Blocks that read the same pixels follow each other.
    tile = cluster_number() % TILES;
    group = PARTIAL ? cluster_number() / TILES : 0;
    const u32 parts = cluster_size() * (PARTIAL ? params.groups : 1);
    const u64 part = group * cluster_size() + cluster_rank();
    first = static_cast<u32>(part * params.steps / parts);
    end = static_cast<u32>((part + 1) * params.steps / parts);
  }
};

device_inline void produce(const Params& params, const Share& share, unsigned char* memory,
                           Barriers& barriers) {
  const WgradTile tile(share.tile);
  ColumnBlock columns[BLOCK_COLUMNS];
#pragma unroll
  for (int i = 0; i < BLOCK_COLUMNS; ++i) {
    const int block = tile.block + i;  // the last tile may have fewer: one comes again
    columns[i] = ColumnBlock(block < COLUMN_BLOCKS ? block : COLUMN_BLOCKS - 1);
    // From the tap whose place is lowest on.
    if constexpr (STEP_D < 0) columns[i].t = TAPS_T - 1 - columns[i].t;
    if constexpr (STEP_H < 0) columns[i].r = TAPS_R - 1 - columns[i].r;
    if constexpr (STEP_W < 0) columns[i].s = TAPS_S - 1 - columns[i].s;
  }
  PixelPlace pixel(share.first * STEP_PIXELS);
  Ring ring(1);
#pragma unroll 1
  for (u32 step = share.first; step < share.end; ++step) {
    Mbarrier& landed = barriers.landed[ring.stage];
    barriers.free[ring.stage].wait(ring.parity);
    landed.arrive_and_expect(static_cast<u32>(STAGE_BYTES));
    unsigned char* to = memory + ring.stage * STAGE_BYTES;
#pragma unroll
    for (int i = 0; i < LEFT_SLABS; ++i, to += SLAB_BYTES) {
      const int row = tile.group * ROWS + tile.row + i * 64;
      if constexpr (DY_IN_LINE) {
        const int at[2] = {row, static_cast<int>(step * STEP_PIXELS)};
        bulk_load(to, params.dy, landed, at);
      } else {
        const BoxAt at(row, pixel.q, pixel.p, pixel.o, pixel.n);
        bulk_load_im2col(to, params.dy, landed, at.at, TapAt(0, 0, 0).at);
      }
    }
    const int w = pixel.q * STRIDE_W + LOWER_W, h = pixel.p * STRIDE_H + LOWER_H,
              d = pixel.o * STRIDE_D + LOWER_D;
#pragma unroll
    for (int i = 0; i < BLOCK_COLUMNS; ++i, to += SLAB_BYTES) {
      const BoxAt at(tile.group * CHANNELS + columns[i].channel, w, h, d, pixel.n);
      const TapAt tap(columns[i].s * APART_W, columns[i].r * APART_H, columns[i].t * APART_D);
      bulk_load_im2col(to, params.x, landed, at.at, tap.at);
    }
    pixel.advance();
    ring.advance();
  }
}

// The tensor cores round sums toward zero: every PROMOTE steps what has come together goes to sums
// that are added up as f32 should be, which wait in local memory.
constexpr u32 PROMOTE = 16384 / STEP_PIXELS;
using Sums = SumRegisters<float, LEFT, PRODUCTS_A_ROW, false, true>;
using Products = WarpgroupProducts<element_t, LEFT, PRODUCTS_A_ROW>;

// 16 pixels, for each left operand of the warpgroup.
template <int L>
device_inline void multiply(Products& products, Sums& sums, const SharedMatrix& left,
                            const SharedMatrix& right, bool add) {
  products.template multiply_swizzled<true, true, L>(sums, left.moved(L * SLAB_BYTES), right, add);
  if constexpr (L + 1 < LEFT) multiply<L + 1>(products, sums, left, right, add);
}

// f(quad, the four sums) of each.
template <int Q = 0, class F>
device_inline void each_quad(const Sums& sums, const F& f) {
  Quad quad;
  sums.template take<Q / PRODUCTS_A_ROW, Q % PRODUCTS_A_ROW>(quad.sum);
  f(Q, quad);
  if constexpr (Q + 1 < QUADS) each_quad<Q + 1>(sums, f);
}

device_inline void consume(const Share& share, Sums& sums, unsigned char* memory,
                           Barriers& barriers) {
  const u32 group = thread_x() / 128 - 1;
  const bool first_lane = thread_x() % 32 == 0;
  const SharedMatrix lefts = SharedMatrix::swizzled<LINE_BYTES>(
      memory + group * (LEFT * SLAB_BYTES), 8 * LINE_BYTES, SLAB_BYTES);
  const SharedMatrix rights = SharedMatrix::swizzled<LINE_BYTES>(memory + LEFT_SLABS * SLAB_BYTES,
                                                                 8 * LINE_BYTES, SLAB_BYTES);
  Products products;
  Ring ring(0);
  sums.clear();
#pragma unroll 1
  for (u32 step = share.first; step < share.end;) {
    const u32 stop = share.end - step > PROMOTE ? step + PROMOTE : share.end;
    const bool held = step > share.first;
    int before = -1;  // the stage of the step before, of this run
#pragma unroll 1
    for (; step < stop; ++step) {
      barriers.landed[ring.stage].wait(ring.parity);
      const SharedMatrix left = lefts.moved(ring.stage * STAGE_BYTES);
      const SharedMatrix right = rights.moved(ring.stage * STAGE_BYTES);
      products.begin();
#pragma unroll
      for (int k = 0; k < STEP_PIXELS / 16; ++k)
        multiply<0>(products, sums, left.moved(k * (16 * LINE_BYTES)),
                    right.moved(k * (16 * LINE_BYTES)), true);
      products.commit();
      products.template wait<1>();
      if (first_lane && before >= 0) barriers.free[before].arrive();
      before = ring.stage;
      ring.advance();
    }
    products.template wait<0>();
    if (first_lane) barriers.free[before].arrive();
    if (held) sums.add_held();
    if (step < share.end) {
      sums.hold();
      sums.clear();
    }
  }
}

// A finished quad of this block's, whichever thread held it.
device_inline void put_quad(const Params& params, const Share& share, int quad, int adder,
                            const Quad& total) {
  if constexpr (PARTIAL)
    partial_quads(params.common, share.group, share.tile)[quad * ADDERS + adder] = total;
  else
    store_quad(params.common, WgradTile(share.tile), quad, adder, total);
}

// The sums of a cluster's blocks, each of which adds up its share of the quads.
device_inline void add_up(const Params& params, const Share& share, Quad* own, int adder) {
  const int parts = static_cast<int>(cluster_size());
  const int some = (QUADS + parts - 1) / parts;
  const int first = static_cast<int>(cluster_rank()) * some;
  const int end = first + some < QUADS ? first + some : QUADS;
#pragma unroll 1
  for (int quad = first; quad < end; ++quad) {
    Quad total = {};
#pragma unroll 4
    for (int rank = 0; rank < parts; ++rank) {
      const Quad other = cluster_shared(own, static_cast<u32>(rank))[quad * ADDERS + adder];
#pragma unroll
      for (int i = 0; i < 4; ++i) total.sum[i] += other.sum[i];
    }
    put_quad(params, share, quad, adder, total);
  }
}

KILN_KERNEL(wgrad_dense_nhwc_wgmma, THREADS, 1, Params, params) {
  Sums sums;
  sums.declare();
  unsigned char* const memory = shared_array<unsigned char, BARRIERS_AT>(0);
  Barriers& barriers = *shared_array<Barriers, 1>(BARRIERS_AT);
  const Share share(params.common);
  if (thread_x() == 0) {
    for (int i = 0; i < STAGES; ++i) {
      barriers.landed[i].init(1);
      barriers.free[i].init(4 * CONSUMERS);  // a warp each
    }
    mbarriers_are_made();
    prefetch_map(params.x);
    prefetch_map(params.dy);
  }
  block_barrier();
  const bool shared = CLUSTERED && cluster_size() > 1;
  Quad* const own = reinterpret_cast<Quad*>(memory);
  const int adder = static_cast<int>(thread_x()) - 128;
  if (adder < 0) {
    give_registers<PRODUCER_REGISTERS>();
    if (thread_x() == 0) produce(params, share, memory, barriers);
  } else {
    take_registers<CONSUMER_REGISTERS>();
    consume(share, sums, memory, barriers);
    if (shared) {
      named_barrier<ADDERS>(1);  // all have read the stages
      each_quad(sums, [&](int quad, const Quad& value) { own[quad * ADDERS + adder] = value; });
    } else {
      each_quad(sums,
                [&](int quad, const Quad& value) { put_quad(params, share, quad, adder, value); });
    }
  }
  if (!shared) return;
  cluster_barrier();
  if (adder >= 0) add_up(params, share, own, adder);
  cluster_barrier();  // a block's memory is read until then
}
