// The copies of a dense filter gradient: a block's share of the pixels of dy, and the stages of
// shared memory into which TMA loads STEP_PIXELS of them at a time. A stage has slabs of one line
// of channels of each pixel: first dy's channels that are the tile's filters, then, for each block
// of columns, x's channels at the positions that the block's tap reads (an im2col map). DY_PLANAR:
// dy has its channels first; a slab of dy is a line of pixels of each filter. A step's pixels
// belong to one plane. The last step of a plane may have fewer, PLANE_TAIL: its line of dy ends
// with zeros, but x of the next image follows, which may be infinite; so only PLANE_TAIL pixels are
// multiplied.
#pragma once

#include "conv/dense/box.cuh"
#include "conv/dense/wgrad/sums.cuh"
#include "target/bulk_copy.cuh"
#include "target/cluster.cuh"

struct Params {
  DenseWgradParams common;
  TensorMap x, dy;
};

// wgmma transposes 16-bit operands. f32 operands need a contiguous reduction, which PLANAR ones
// have. Otherwise x is transposed in shared memory (turn.cuh), and dy while it is read into
// registers.
constexpr bool TURNS = sizeof(element_t) == 4 && !PLANAR;

constexpr int SLAB_BYTES = STEP_PIXELS * LINE_BYTES;
constexpr int LEFT_SLABS = TILE_ROWS / LINE_CHANNELS, SLABS = LEFT_SLABS + BLOCK_COLUMNS;
constexpr int STAGE_BYTES = SLABS * SLAB_BYTES;
// A step's transposed x: for each 32 pixels, a line of contiguous pixels for each column. For
// 3xTF32, all hi parts come first, then all lo parts.
constexpr int TURNED_PART = BLOCK_RIGHT * STEP_PIXELS * static_cast<int>(sizeof(element_t));
constexpr int TURNED_BYTES = (SPLIT ? 2 : 1) * TURNED_PART;
constexpr int TURNED_AT = STAGES * STAGE_BYTES;
constexpr int BARRIERS_AT = TURNED_AT + TURNED_SLOTS * TURNED_BYTES;
// The helper warpgroups come first in the block. Some of their warps issue copies, the others
// transpose x.
constexpr int HELPING_THREADS = 128 * HELPERS;
constexpr int ASKERS = TURNS || PLANAR ? 2 : 1, TURNERS = TURNS ? 4 * HELPERS - ASKERS : 0;
constexpr int THREADS = HELPING_THREADS + ADDERS;
static_assert(STEP_PIXELS % (TURNS ? 32 : 16) == 0 && SLAB_BYTES % 1024 == 0);
static_assert(TURNS == (TURNED_SLOTS > 0) && (PLANAR || SLABS % ASKERS == 0));
static_assert(!(PLANAR || DY_PLANAR) || (!TURNS && STEP_PIXELS == LINE_CHANNELS));
constexpr int PLANE_TAIL = DY_PLANAR ? PLANE % STEP_PIXELS : 0;
static_assert(PLANE_TAIL % 16 == 0);
// Whether a step is the last one of a plane that is no multiple of whole steps.
device_inline bool is_tail(u32 step) { return PLANE_TAIL > 0 && (step + 1) % PLANE_STEPS == 0; }
static_assert(QUADS * ADDERS * static_cast<int>(sizeof(Quad)) <= BARRIERS_AT,
              "sums take the place of stages");

struct Barriers {
  Mbarrier landed[STAGES], free[STAGES];
  Mbarrier turned[TURNS ? TURNED_SLOTS : 1], read[TURNS ? TURNED_SLOTS : 1];

  // Called by one thread. Each reading warp arrives once.
  device_inline void init() {
    for (int i = 0; i < STAGES; ++i) {
      landed[i].init(ASKERS);
      free[i].init(4 * CONSUMERS + TURNERS);
    }
    for (int i = 0; i < TURNED_SLOTS; ++i) {
      turned[i].init(TURNERS);
      read[i].init(4 * CONSUMERS);
    }
    mbarriers_are_made();
  }
};
static_assert(BARRIERS_AT + static_cast<int>(sizeof(Barriers)) <= SHARED_BYTES);

// A ring of SIZE stages: the next stage, and the parity of its phase.
template <int SIZE>
struct Ring {
  int stage = 0;
  u32 parity;
  device_inline explicit Ring(u32 first_parity) : parity(first_parity) {}
  device_inline void advance() {
    if (++stage == SIZE) stage = 0, parity ^= 1;
  }
};

// {image, plane, row, column} of a pixel of dy. The thread that issues copies advances it step by
// step, because divisions would cost more than the copies.
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
    q += ADVANCE_Q;
    p += ADVANCE_P;
    o += ADVANCE_O;
    n += ADVANCE_N;
    if (q >= OUT_Q) q -= OUT_Q, ++p;
    if (p >= OUT_P) p -= OUT_P, ++o;
    if (o >= OUT_O) o -= OUT_O, ++n;
  }
  // From a plane's last step on to the next image.
  device_inline void advance_image() { ++n, o = p = q = 0; }
};
// The first pixel of a step.
device_inline PixelPlace first_pixel(u32 step) {
  if constexpr (PLANE_TAIL > 0)
    return PixelPlace(step / PLANE_STEPS * PLANE + step % PLANE_STEPS * STEP_PIXELS);
  return PixelPlace(step * STEP_PIXELS);
}

// The block's share of the sums, as a member of cluster `number`: the steps from `first` to `end`.
struct Share {
  u32 tile, group, first, end;
  device_inline Share(const DenseWgradParams& params, u32 number) {
    // Clusters with the same pixels have consecutive numbers, so that the pixels hit L2.
    tile = REMAINDER(number, TILES);
    group = PARTIAL ? QUOTIENT(number, TILES) : 0;
    const u32 parts = cluster_size() * (PARTIAL ? params.groups : 1);
    const u64 part = group * cluster_size() + cluster_rank();
    first = static_cast<u32>(part * params.steps / parts);
    end = static_cast<u32>((part + 1) * params.steps / parts);
  }
  // All steps of a tile.
  device_inline static Share whole(const DenseWgradParams& params, u32 tile) {
    return {tile, params.steps};
  }

 private:
  device_inline Share(u32 of_tile, u32 steps) : tile(of_tile), group(0), first(0), end(steps) {}
};

// Loads slabs FIRST to END of every stage of the share. Called by one thread. The ring begins with
// parity 1.
template <int FIRST, int END>
device_inline void produce(const Params& params, const Share& share, unsigned char* memory,
                           Barriers& barriers, Ring<STAGES>& ring) {
  const WgradTile tile(share.tile);
  constexpr int FIRST_COLUMN = FIRST > LEFT_SLABS ? FIRST - LEFT_SLABS : 0;
  ColumnBlock columns[BLOCK_COLUMNS];
#pragma unroll
  for (int i = FIRST_COLUMN; i < END - LEFT_SLABS; ++i) {
    const int block = tile.block + i;  // a last tile with fewer blocks loads its last one again
    columns[i] = ColumnBlock(block < COLUMN_BLOCKS ? block : COLUMN_BLOCKS - 1);
    // Taps count from the one with the lowest position on.
    if (STEP_D < 0) columns[i].t = TAPS_T - 1 - columns[i].t;
    if (STEP_H < 0) columns[i].r = TAPS_R - 1 - columns[i].r;
    if (STEP_W < 0) columns[i].s = TAPS_S - 1 - columns[i].s;
  }
  PixelPlace pixel = first_pixel(share.first);
#pragma unroll 1
  for (u32 step = share.first; step < share.end; ++step) {
    Mbarrier& landed = barriers.landed[ring.stage];
    barriers.free[ring.stage].wait(ring.parity);
    landed.arrive_and_expect(static_cast<u32>((END - FIRST) * SLAB_BYTES));
    unsigned char* to = memory + ring.stage * STAGE_BYTES + FIRST * SLAB_BYTES;
#pragma unroll
    for (int i = FIRST; i < END && i < LEFT_SLABS; ++i, to += SLAB_BYTES) {
      const int row = tile.group * ROWS + tile.row + i * LINE_CHANNELS;
      if constexpr (DY_PLANAR) {
        const int at[3] = {(pixel.o * OUT_P + pixel.p) * OUT_Q + pixel.q, row, pixel.n};
        bulk_load(to, params.dy, landed, at);
      } else if (DY_IN_LINE) {
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
    for (int i = FIRST_COLUMN; i < END - LEFT_SLABS; ++i, to += SLAB_BYTES) {
      const BoxAt at(tile.group * CHANNELS + columns[i].channel, w, h, d, pixel.n);
      const TapAt tap(columns[i].s * APART_W, columns[i].r * APART_H, columns[i].t * APART_D);
      bulk_load_im2col(to, params.x, landed, at.at, tap.at);
    }
    if (is_tail(step))
      pixel.advance_image();
    else
      pixel.advance();
    ring.advance();
  }
}
