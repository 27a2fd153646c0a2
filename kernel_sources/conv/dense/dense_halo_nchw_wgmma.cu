// Forward convolution and data gradient of channels-first tensors of 16 bits on Hopper, for filters
// of several taps, without a stride along the width. TMA loads boxes of the source as it lies; what
// lies outside becomes zeros.
//
// A tile is TILE_ROWS rows by a patch of PATCH_ROWS x PIXEL_LINE pixels of a plane. A halo is what
// HALO_TAPS taps of a column of the filter read of STEP_CHANNELS channels: HALO_ROWS rows, each of
// a line of pixels for each channel. The tensor cores transpose it, and each tap reads it from
// another row on. A tap one column further needs another halo, because operands begin at multiples
// of 16 bytes. TMA's boxes do too: if some columns of the filter are not multiples of 8 pixels
// apart (SHIFTED), TMA loads the halo of CENTER_TAP alone, and two warps make the other ones of it
// (shifted_halos.cuh).
//
// One warpgroup issues the copies: one of its threads loads the filter tap by tap, another one the
// halos. CONSUMERS warpgroups share a tile. Operand A, which they divide among them, is the pixels
// (PIXELS_LEFT) or the filter; all read all BLOCK_RIGHT columns of operand B.
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

#include "conv/dense/store.cuh"

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

device_inline void bring_filter(const Params& params, unsigned char* memory, Barriers& barriers) {
  Ring<FILTER_SLOTS> ring(1);
  const auto bring = [&](int row, int channel, int t, int r, int s) {
    const int at_t = STEP_D < 0 ? TAPS_T - 1 - t : t, at_r = STEP_H < 0 ? TAPS_R - 1 - r : r,
              at_s = STEP_W < 0 ? TAPS_S - 1 - s : s;
    Mbarrier& landed = barriers.filter_landed[ring.slot];
    unsigned char* const to = memory + ring.slot * FILTER_PITCH;
    barriers.filter_free[ring.slot].wait(ring.parity);
    landed.arrive_and_expect(FILTER_BYTES);
    if constexpr (FILTER_BY_CHANNELS) {
#pragma unroll
      for (int block = 0; block < TILE_ROWS / ROW_LINE; ++block) {
        const BoxAt at(row + block * ROW_LINE, at_s, at_r, at_t, channel);
        bulk_load(to + block * (STEP_CHANNELS * ROW_LINE_BYTES), params.maps[1], landed, at.at);
      }
    } else {
      const BoxAt at(channel, at_s, at_r, at_t, row);
      bulk_load(to, params.maps[1], landed, at.at);
    }
    ring.advance();
  };
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x()) {
    const Patch patch(tile);
#pragma unroll 1
    for (int channel = 0; channel < CHANNELS; channel += STEP_CHANNELS)
      each_halo(patch, [&](int t, int r, int s) {
#pragma unroll 1
        for (int tap = 0; tap < HALO_TAPS; ++tap) bring(patch.first_row, channel, t, r + tap, s);
      });
  }
}

// Loads the pixels beside the lines of a halo that begins at column `w`.
device_inline void bring_edges(const Params& params, unsigned char* to, Mbarrier& landed, BoxAt at,
                               int w) {
  if constexpr (WORDS_BEFORE > 0) {
    at.at[0] = w - 8;
    bulk_load(to, params.maps[EDGE_MAP], landed, at.at);
  }
  if constexpr (WORDS_BEHIND > 0) {
    at.at[0] = w + PIXEL_LINE;
    bulk_load(to + EDGE_BEHIND, params.maps[EDGE_MAP], landed, at.at);
  }
}

device_inline void bring_halos(const Params& params, unsigned char* memory, Barriers& barriers) {
  Ring<HALO_SLOTS> ring(1);
  Ring<EDGE_SLOTS> edge(0);
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x()) {
    const Patch patch(tile);
    const int w = patch.q + LOWER_W[0], h = patch.p * STRIDE_H + LOWER_H[0],
              d = patch.o * STRIDE_D + LOWER_D[0];
#pragma unroll 1
    for (int channel = 0; channel < CHANNELS; channel += STEP_CHANNELS)
      each_halo(patch, [&](int t, int r, int s) {
        const BoxAt at =
            planar_box(w + s * APART_W, channel, h + r * APART_H, d + t * APART_D, patch.n);
        Mbarrier& landed = barriers.halo_landed[ring.slot];
        if (!SHIFTED || s == CENTER_TAP) {
          barriers.halo_free[ring.slot].wait(ring.parity);
          landed.arrive_and_expect(HALO_BYTES + EDGE_PITCH);
          bulk_load(memory + HALOS_AT + ring.slot * HALO_PITCH, params.maps[0], landed, at.at);
          if constexpr (SHIFTED) {
            bring_edges(params, memory + EDGES_AT + edge.slot * EDGE_PITCH, landed, at, at.at[0]);
            edge.advance();
          }
        }
        ring.advance();
      });
  }
}

#include "conv/dense/shifted_halos.cuh"

// The products of a warpgroup.
class Consumer {
  static constexpr bool BY_STEPS_LEFT = PIXELS_LEFT || FILTER_BY_CHANNELS,
                        BY_STEPS_RIGHT = !PIXELS_LEFT || FILTER_BY_CHANNELS;
  // Distances in bytes: from an operand to that of the next 16 channels, and of the next 64 rows of
  // operand A.
  static constexpr int NEXT_PIXELS = 16 * LINE_BYTES,
                       NEXT_FILTER = FILTER_BY_CHANNELS ? 16 * ROW_LINE_BYTES : 32;
  static constexpr int NEXT_LEFT =
      PIXELS_LEFT ? 64 / PIXEL_LINE * STRIDE_H * HALO_ROW_BYTES : 64 * STEP_CHANNELS * ELEMENT;
  Barriers& barriers_;
  SharedMatrix filters_, halos_;
  WarpgroupProducts<element_t, LEFT, BLOCK_RIGHT / 8> products_;
  Ring<FILTER_SLOTS> filter_{0};
  Ring<HALO_SLOTS> halo_{0};
  u32 filter_before_ = 0, halo_before_ = 0;  // slots of the products that may still be running
  bool first_lane_, running_ = false;

 public:
  device_inline Consumer(unsigned char* memory, Barriers& barriers, u32 group)
      : barriers_(barriers),
        filters_(SharedMatrix::swizzled<FILTER_LINE_BYTES>(
            memory + (PIXELS_LEFT ? 0 : group * (LEFT * NEXT_LEFT)), 8 * FILTER_LINE_BYTES,
            FILTER_BY_CHANNELS ? STEP_CHANNELS * ROW_LINE_BYTES : 16)),
        halos_(SharedMatrix::swizzled<LINE_BYTES>(
            memory + HALOS_AT + (PIXELS_LEFT ? group * (LEFT * NEXT_LEFT) : 0), 8 * LINE_BYTES,
            STRIDE_H * HALO_ROW_BYTES)),
        first_lane_(thread_x() % 32 == 0) {}

  // The products of `halos` halos over 16 * PRODUCTS channels. The first of a tile replace the
  // sums.
  template <int PRODUCTS>
  device_inline void multiply(Sums& sums, int halos) {
#pragma unroll 1
    for (int number = 0; number < halos; ++number) {
      barriers_.halo_landed[halo_.slot].wait(halo_.parity);
#pragma unroll 1
      for (int tap = 0; tap < HALO_TAPS; ++tap) {
        barriers_.filter_landed[filter_.slot].wait(filter_.parity);
        const SharedMatrix filter = filters_.moved(static_cast<int>(filter_.slot) * FILTER_PITCH);
        const SharedMatrix pixels = halos_.moved(static_cast<int>(halo_.slot) * HALO_PITCH +
                                                 tap * (APART_H * HALO_ROW_BYTES));
        products_.begin();
#pragma unroll
        for (int k = 0; k < PRODUCTS; ++k) {
          const SharedMatrix of_filter = filter.moved(k * NEXT_FILTER),
                             of_pixels = pixels.moved(k * NEXT_PIXELS);
          multiply_from<0>(sums, PIXELS_LEFT ? of_pixels : of_filter,
                           PIXELS_LEFT ? of_filter : of_pixels, running_ || k > 0);
        }
        products_.commit();
        products_.template wait<1>();
        if (first_lane_ && running_) {
          barriers_.filter_free[filter_before_].arrive();
          if (tap == 0) barriers_.halo_free[halo_before_].arrive();
        }
        running_ = true;
        filter_before_ = filter_.slot;
        filter_.advance();
      }
      halo_before_ = halo_.slot;
      halo_.advance();
    }
  }
  // Waits until the sums of a tile are complete.
  device_inline void settle() {
    products_.template wait<0>();
    if (first_lane_) {
      barriers_.filter_free[filter_before_].arrive();
      barriers_.halo_free[halo_before_].arrive();
    }
    running_ = false;
  }

 private:
  // The products over 16 channels, for operands A of the warpgroup from L on.
  template <int L>
  device_inline void multiply_from(Sums& sums, const SharedMatrix& left, const SharedMatrix& right,
                                   bool add) {
    products_.template multiply_swizzled<BY_STEPS_LEFT, BY_STEPS_RIGHT, L>(
        sums, left.moved(L * NEXT_LEFT), right, add);
    if constexpr (L + 1 < LEFT) multiply_from<L + 1>(sums, left, right, add);
  }
};

// The place in the output of a slab: rows from `row` on of lines of pixels from a row of the plane
// on.
struct PatchPlace {
  static constexpr bool BY_THREADS = false;
  const Params& params;
  const Patch& patch;
  int row, p;

  // `rows` and `pixels` into a tile.
  device_inline PatchPlace(const Params& of, const Patch& tile, int rows, int pixels)
      : params(of), patch(tile), row(tile.first_row + rows), p(tile.p + pixels / PIXEL_LINE) {}

  device_inline void next_block() { ++p; }
  device_inline void store(const unsigned char* slab) const {
    const BoxAt at = planar_box(patch.q, row, p, patch.o, patch.n);
    bulk_store(params.maps[2], slab, at.at);
  }
  device_inline void load(unsigned char* slab, Mbarrier& landed) const {
    const BoxAt at = planar_box(patch.q, row, p, patch.o, patch.n);
    bulk_load(slab, params.maps[RESIDUAL ? 3 : 2], landed, at.at);
  }
};

// Stores a warpgroup's sums, a slab at a time.
template <int L, int FIRST>
device_inline void store_patch(Store& store, const Sums& sums, const Params& params,
                               const Patch& patch, u32 group) {
  constexpr int END = LINES_LEFT ? FIRST + SLAB_LINE / 8 : BLOCK_RIGHT / 8;
  const int left = static_cast<int>(group) * GROUP_LEFT + L * 64;
  const PatchPlace place(params, patch, LINES_LEFT ? left : 0, LINES_LEFT ? FIRST * 8 : left);
  store.store<L, FIRST, END>(sums, place, true);
  if constexpr (END < BLOCK_RIGHT / 8)
    store_patch<L, END>(store, sums, params, patch, group);
  else if constexpr (L + 1 < LEFT)
    store_patch<L + 1, 0>(store, sums, params, patch, group);
}

device_inline void consume(const Params& params, Sums& sums, unsigned char* memory,
                           Barriers& barriers) {
  constexpr int WHOLE = CHANNELS / STEP_CHANNELS,
                REST = (CHANNELS % STEP_CHANNELS + 15) / 16;  // products of the last channels
  const u32 group = thread_x() / 128 - 1;
  Store store(params.common, memory + SLABS_AT + group * (SLABS * SLAB_BYTES),
              barriers.residual[group], group);
  Consumer consumer(memory, barriers, group);
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x()) {
    const Patch patch(tile);
    const int halos = patch.taps_t() * HALOS;
    if constexpr (WHOLE > 0) consumer.multiply<STEP_CHANNELS / 16>(sums, WHOLE * halos);
    if constexpr (REST > 0) consumer.multiply<REST>(sums, halos);
    consumer.settle();
    store_patch<0, 0>(store, sums, params, patch, group);
  }
  store.finish();
}

KILN_BEGINS_STEP;

KILN_KERNEL(dense_halo_nchw_wgmma, THREADS, 1, Params, params) {
  Sums sums;
  sums.declare();
  unsigned char* const memory = shared_array<unsigned char, BARRIERS_AT>(0);
  Barriers& barriers = *shared_array<Barriers, 1>(BARRIERS_AT);
  if (thread_x() == 0) {
    barriers.init();
    for (int i = 0; i < MAPS; ++i) prefetch_map(params.maps[i]);
  }
  block_barrier();
  begin_step();
  if (thread_x() < 128) {
    give_registers<PRODUCER_REGISTERS>();
    if (thread_x() == 0) bring_filter(params, memory, barriers);
    if (thread_x() == 32) bring_halos(params, memory, barriers);
    if constexpr (SHIFTED)
      if (thread_x() >= 64)
        shift_halos(params, memory, barriers, static_cast<int>(thread_x()) - 64);
  } else {
    take_registers<CONSUMER_REGISTERS>();
    consume(params, sums, memory, barriers);
  }
}
