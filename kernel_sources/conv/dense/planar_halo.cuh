// The tiles, halos and shared memory of dense_halo_nchw_wgmma, and the order of its halos.
#pragma once

#include "common/compute_type.cuh"
#include "conv/dense/box.cuh"
#include "conv/dense/params.h"
#include "target/mbarrier.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"
#include "target/sum_registers.cuh"
#include "target/wgmma.cuh"

struct Params {
  DenseParams common;
  TensorMap maps[MAPS];  // source, filter, output; if RESIDUAL, z; if SHIFTED, the halos' edges
};

constexpr bool LEFT_IN_WORDS = false;  // wgmma reads operand A from shared memory
constexpr int ELEMENT = static_cast<int>(sizeof(element_t));
constexpr int TAPS_T = FILTER_T[0], TAPS_R = FILTER_R[0], TAPS_S = FILTER_S[0];
constexpr int GROUP_LEFT = 64 * LEFT, BLOCK_LEFT = CONSUMERS * GROUP_LEFT;
constexpr int TILE_PIXELS = PIXELS_LEFT ? BLOCK_LEFT : BLOCK_RIGHT;
constexpr int TILE_ROWS = PIXELS_LEFT ? BLOCK_RIGHT : BLOCK_LEFT;
constexpr int PATCH_ROWS = TILE_PIXELS / PIXEL_LINE;
constexpr int HALO_ROWS = (PATCH_ROWS - 1) * STRIDE_H + (HALO_TAPS - 1) * APART_H + 1;
constexpr int HALOS = TAPS_R / HALO_TAPS * TAPS_S;  // of a plane of the source
static_assert(ELEMENT == 2 && PHASES == 1 && GROUPS == 1 && STRIDE_W == 1);
static_assert(HALO_TAPS == 1 || HALO_TAPS == TAPS_R);
static_assert(!SHIFTED || (TAPS_S > 1 && HALO_SLOTS >= TAPS_S));
static_assert(TILE_PIXELS % PIXEL_LINE == 0 && BLOCK_RIGHT % 16 == 0 && BLOCK_RIGHT <= 256);
static_assert(PROMOTE == 0, "sums are not so long");

// Lines of shared memory: of pixels of a channel, of the filter, and of results.
constexpr int LINE_BYTES = PIXEL_LINE * ELEMENT, ROW_LINE_BYTES = ROW_LINE * ELEMENT;
constexpr int FILTER_LINE_BYTES = FILTER_BY_CHANNELS ? ROW_LINE_BYTES : STEP_CHANNELS * ELEMENT;
constexpr bool LINES_LEFT = !PIXELS_LEFT;
constexpr int SLAB_LINE = PIXEL_LINE, SLAB_LINES = LINES_LEFT ? 64 : BLOCK_RIGHT;
constexpr int SLAB_BLOCKS = LINES_LEFT ? 1 : 64 / SLAB_LINE;
static_assert(LINES_LEFT || PIXEL_LINE == 64);

device_inline constexpr int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr int HALO_ROW_BYTES = STEP_CHANNELS * LINE_BYTES, HALO_BYTES = HALO_ROWS * HALO_ROW_BYTES;
constexpr int HALO_LINES = HALO_ROWS * STEP_CHANNELS;
constexpr int STEPS = (CHANNELS + STEP_CHANNELS - 1) / STEP_CHANNELS;

// SHIFTED: words of two pixels that shifted halos have of the edges, which lie before and behind a
// halo's lines. Before an edge is loaded, the slot of its halo is free: so are all halos made with
// that edge's slot.
constexpr int LAST_TAP = TAPS_S - 1;
constexpr int WORDS_BEFORE = SHIFTED ? (CENTER_TAP * APART_W + 1) / 2 : 0,
              WORDS_BEHIND = SHIFTED ? ((LAST_TAP - CENTER_TAP) * APART_W + 1) / 2 : 0;
static_assert(WORDS_BEFORE <= 4 && WORDS_BEHIND <= 4);
constexpr int EDGE_SIDE_BYTES = HALO_LINES * 16;
constexpr int EDGE_BEHIND = WORDS_BEFORE > 0 ? EDGE_SIDE_BYTES : 0;  // where the second edge is
constexpr int EDGE_PITCH = EDGE_BEHIND + (WORDS_BEHIND > 0 ? EDGE_SIDE_BYTES : 0);
constexpr int EDGE_SLOTS = SHIFTED ? (HALO_SLOTS + TAPS_S - 1) / TAPS_S : 0;
constexpr int EDGE_MAP = MAPS - 1;
constexpr int FILTER_BYTES = TILE_ROWS * STEP_CHANNELS * ELEMENT;
constexpr int HALO_PITCH = whole_swizzles(HALO_BYTES), FILTER_PITCH = whole_swizzles(FILTER_BYTES);
constexpr int SLAB_BYTES = whole_swizzles(SLAB_LINES * SLAB_BLOCKS * SLAB_LINE * ELEMENT);
constexpr int HALOS_AT = FILTER_SLOTS * FILTER_PITCH, SLABS_AT = HALOS_AT + HALO_SLOTS * HALO_PITCH;
constexpr int EDGES_AT = SLABS_AT + CONSUMERS * SLABS * SLAB_BYTES;
constexpr int BARRIERS_AT = EDGES_AT + EDGE_SLOTS * EDGE_PITCH;
constexpr int THREADS = 128 * (1 + CONSUMERS);

using Sums = SumRegisters<float, LEFT, BLOCK_RIGHT / 8, false>;

template <int SLOTS>
struct Ring {
  u32 slot = 0, parity;
  device_inline explicit Ring(u32 first_parity) : parity(first_parity) {}
  device_inline void advance() {
    if (++slot == SLOTS) slot = 0, parity ^= 1;
  }
};

struct Barriers {
  Mbarrier filter_landed[FILTER_SLOTS], filter_free[FILTER_SLOTS];
  Mbarrier halo_landed[HALO_SLOTS], halo_free[HALO_SLOTS];
  Mbarrier residual[CONSUMERS];

  device_inline void init() {
    constexpr u32 WARPS = 4 * CONSUMERS, HALO_USERS = WARPS + (SHIFTED ? 1 : 0);
    for (int i = 0; i < FILTER_SLOTS; ++i) filter_landed[i].init(1), filter_free[i].init(WARPS);
    for (int i = 0; i < HALO_SLOTS; ++i) halo_landed[i].init(1), halo_free[i].init(HALO_USERS);
    for (int i = 0; i < CONSUMERS; ++i) residual[i].init(1);
    mbarriers_are_made();
  }
};
static_assert(BARRIERS_AT + static_cast<int>(sizeof(Barriers)) <= SHARED_BYTES);

// A tile. Tiles of the same patch and other rows follow each other, so that their halos hit L2, and
// then those of the next planes, which read many of the same rows.
struct Patch {
  int first_row, n, o, p, q;
  int first_tap, end_tap;  // taps in depth whose plane exists; at least one

  device_inline explicit Patch(u32 tile) {
    constexpr u32 ROW_TILES = (ROWS + TILE_ROWS - 1) / TILE_ROWS,
                  LINES = (OUT_Q[0] + PIXEL_LINE - 1) / PIXEL_LINE,
                  BANDS = (OUT_P[0] + PATCH_ROWS - 1) / PATCH_ROWS, PLANES = OUT_O[0];
    const u32 patch = tile / ROW_TILES, run = patch / LINES, band = run / PLANES;
    first_row = static_cast<int>(tile - patch * ROW_TILES) * TILE_ROWS;
    q = static_cast<int>(patch - run * LINES) * PIXEL_LINE;
    o = static_cast<int>(run - band * PLANES);
    n = static_cast<int>(band / BANDS);
    p = static_cast<int>(band % BANDS) * PATCH_ROWS;
    const int d = o * STRIDE_D + LOWER_D[0];
    first_tap = 0, end_tap = TAPS_T;
    if constexpr (TAPS_T > 1) {
      while (first_tap + 1 < end_tap && d + first_tap * APART_D < 0) ++first_tap;
      while (first_tap + 1 < end_tap && d + (end_tap - 1) * APART_D >= SOURCE_D) --end_tap;
    }
  }
  device_inline int taps_t() const { return end_tap - first_tap; }
};

// The start of a box of a channels-first tensor.
device_inline BoxAt planar_box(int w, int channel, int h, int d, int n) {
  return {w, channel, h, d, n};
}

// The column of the filter that halo `number` of TAPS_S is for; that of CENTER_TAP comes first.
device_inline constexpr int column_of(int number) {
  return !SHIFTED || number > CENTER_TAP ? number : number == 0 ? CENTER_TAP : number - 1;
}

// Calls each(t, r, s) for each halo of a patch over the same channels, from the lowest row on.
template <class Each>
device_inline void each_halo(const Patch& patch, const Each& each) {
#pragma unroll 1
  for (int t = patch.first_tap; t < patch.end_tap; ++t)
#pragma unroll 1
    for (int r = 0; r < TAPS_R; r += HALO_TAPS)
#pragma unroll 1
      for (int number = 0; number < TAPS_S; ++number) each(t, r, column_of(number));
}
