// Forward convolution and data gradient of stride 1 of channels-last tensors on Hopper, for filters
// of several taps. TMA loads the halo of a tile's pixels, 64 channels of a plane of the source at a
// time, into shared memory once for all taps in that plane. For each tap, wgmma reads the halo from
// another row on.
//
// A tile is 64 rows by a patch of BLOCK_RIGHT pixels of a plane, 8 columns wide. Two warpgroups
// take tiles in turn: one multiplies while the other stores its results. A third one issues the
// copies: one of its threads loads the filter tap by tap, another one the halos.
#include "common/compute_type.cuh"
#include "conv/dense/box.cuh"
#include "conv/dense/params.h"
#include "target/mbarrier.cuh"
#include "target/shared_memory.cuh"
#include "target/step.cuh"
#include "target/sum_registers.cuh"
#include "target/wgmma.cuh"

constexpr bool PIXELS_LEFT = false;
constexpr bool LINES_LEFT = false;
constexpr bool LEFT_IN_WORDS = false;  // wgmma reads operand A from shared memory
constexpr int SLAB_LINES = BLOCK_RIGHT, SLAB_LINE = ROW_LINE, SLAB_BLOCKS = 64 / ROW_LINE;
constexpr int SLABS = 1, WARPGROUPS = 2;

struct Params {
  DenseParams common;
  TensorMap maps[MAPS];  // source, filter, output, and the tensor that beta scales
};

constexpr int LINE_BYTES = STEP_CHANNELS * static_cast<int>(sizeof(element_t));  // line of operands
constexpr int ROW_LINE_BYTES = ROW_LINE * static_cast<int>(sizeof(element_t));   // line of results
constexpr int TAPS_T = FILTER_T[0], TAPS_R = FILTER_R[0], TAPS_S = FILTER_S[0];
constexpr int PLANE_TAPS = TAPS_R * TAPS_S;
constexpr int CHANNEL_STEPS = (CHANNELS + STEP_CHANNELS - 1) / STEP_CHANNELS;
constexpr int HALOS = CHANNEL_STEPS * TAPS_T;  // halos of a tile: one per 64 channels and plane
constexpr int PATCH_ROWS = BLOCK_RIGHT / 8;
constexpr int HALO_COLUMNS = 8 + (TAPS_S - 1) * APART_W;
constexpr int HALO_ROWS = PATCH_ROWS + (TAPS_R - 1) * APART_H;
constexpr int HALO_BYTES = HALO_COLUMNS * HALO_ROWS * LINE_BYTES;
device_inline constexpr int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
constexpr int HALO_PITCH = whole_swizzles(HALO_BYTES), FILTER_BYTES = 64 * LINE_BYTES;
constexpr int SLAB_BYTES = whole_swizzles(SLAB_LINES * 64 * static_cast<int>(sizeof(element_t)));
constexpr int HALOS_AT = FILTER_SLOTS * FILTER_BYTES, SLABS_AT = HALOS_AT + HALO_SLOTS * HALO_PITCH;
constexpr int BARRIERS_AT = SLABS_AT + WARPGROUPS * SLAB_BYTES;
constexpr int THREADS = 128 * (1 + WARPGROUPS);
constexpr int ROW_TILES = GROUPS * ((ROWS + 63) / 64);
static_assert(GROUPS == 1 || (CHANNELS % STEP_CHANNELS == 0 && ROWS % 64 == 0));
constexpr int PATCHES_Q = (OUT_Q[0] + 7) / 8, PATCHES_P = (OUT_P[0] + PATCH_ROWS - 1) / PATCH_ROWS;
static_assert(BLOCK_RIGHT % 16 == 0 && BLOCK_RIGHT <= 256 && PLANE_TAPS > 1 && PHASES == 1);
static_assert(PROMOTE == 0, "sums are not so long");

#include "conv/dense/store.cuh"

using Sums = SumRegisters<float, 1, BLOCK_RIGHT / 8, false>;

// A ring of slots that both warpgroups use in turn: the slot of the `number`-th use, and its
// parity.
template <int SLOTS>
struct Slot {
  u32 slot, parity;
  device_inline explicit Slot(u32 number) : slot(number % SLOTS), parity(number / SLOTS & 1) {}
  device_inline void advance() {
    if (++slot == SLOTS) slot = 0, parity ^= 1;
  }
};

struct Barriers {
  Mbarrier filter_landed[FILTER_SLOTS], filter_free[FILTER_SLOTS];
  Mbarrier halo_landed[HALO_SLOTS], halo_free[HALO_SLOTS];
  Mbarrier residual[WARPGROUPS], turn[WARPGROUPS];

  device_inline void init() {
    constexpr u32 WARPS = 4;
    for (int i = 0; i < FILTER_SLOTS; ++i) filter_landed[i].init(1), filter_free[i].init(WARPS);
    for (int i = 0; i < HALO_SLOTS; ++i) halo_landed[i].init(1), halo_free[i].init(WARPS);
    for (int i = 0; i < WARPGROUPS; ++i) residual[i].init(1), turn[i].init(WARPS);
    mbarriers_are_made();
  }
};
static_assert(BARRIERS_AT + static_cast<int>(sizeof(Barriers)) <= SHARED_BYTES);

// A tile. Tiles of the same patch and other rows follow each other, so that their halos hit L2.
struct Patch {
  int first_row;  // counted over the rows of all groups
  int n, o, p, q;
  device_inline explicit Patch(u32 tile) {
    const u32 patch = tile / ROW_TILES;
    first_row = static_cast<int>(tile - patch * ROW_TILES) * 64;
    const u32 plane = patch / (PATCHES_P * PATCHES_Q),
              rest = patch - plane * (PATCHES_P * PATCHES_Q);
    const u32 down = rest / PATCHES_Q;
    n = static_cast<int>(plane / OUT_O[0]);
    o = static_cast<int>(plane) - n * OUT_O[0];
    p = static_cast<int>(down) * PATCH_ROWS;
    q = static_cast<int>(rest - down * PATCHES_Q) * 8;
  }
  // The groups follow each other along the source's channels and along w's filters, which are the
  // rows of a forward pass.
  device_inline int source_channel() const { return GROUPS == 1 ? 0 : first_row / ROWS * CHANNELS; }
  device_inline int filter_channel() const { return GROUPS_IN_ROWS ? 0 : source_channel(); }
  device_inline int filter_row() const {
    return GROUPS == 1 || GROUPS_IN_ROWS ? first_row : first_row % ROWS;
  }
};

device_inline void bring_filter(const Params& params, unsigned char* memory, Barriers& barriers) {
  Slot<FILTER_SLOTS> slot(0);
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x()) {
    const Patch patch(tile);
#pragma unroll 1
    for (int channel = 0; channel < CHANNELS; channel += STEP_CHANNELS)
#pragma unroll 1
      for (int tap = 0; tap < TAPS_T * PLANE_TAPS; ++tap) {
        const int t = tap / PLANE_TAPS, r = tap / TAPS_S - t * TAPS_R, s = tap % TAPS_S;
        const int step = patch.filter_channel() + channel;
        const BoxAt at(FILTER_BY_CHANNELS ? patch.filter_row() : step,
                       STEP_W < 0 ? TAPS_S - 1 - s : s, STEP_H < 0 ? TAPS_R - 1 - r : r,
                       STEP_D < 0 ? TAPS_T - 1 - t : t,
                       FILTER_BY_CHANNELS ? step : patch.filter_row());
        Mbarrier& landed = barriers.filter_landed[slot.slot];
        barriers.filter_free[slot.slot].wait(slot.parity ^ 1);
        landed.arrive_and_expect(FILTER_BYTES);
        bulk_load(memory + slot.slot * FILTER_BYTES, params.maps[1], landed, at.at);
        slot.advance();
      }
  }
}

device_inline void bring_halos(const Params& params, unsigned char* memory, Barriers& barriers) {
  Slot<HALO_SLOTS> slot(0);
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x()) {
    const Patch patch(tile);
#pragma unroll 1
    for (int channel = 0; channel < CHANNELS; channel += STEP_CHANNELS)
#pragma unroll 1
      for (int t = 0; t < TAPS_T; ++t) {
        const BoxAt at(patch.source_channel() + channel, patch.q + LOWER_W[0], patch.p + LOWER_H[0],
                       patch.o + LOWER_D[0] + t * APART_D, patch.n);
        Mbarrier& landed = barriers.halo_landed[slot.slot];
        barriers.halo_free[slot.slot].wait(slot.parity ^ 1);
        landed.arrive_and_expect(HALO_BYTES);
        bulk_load(memory + HALOS_AT + slot.slot * HALO_PITCH, params.maps[0], landed, at.at);
        slot.advance();
      }
  }
}

// The place in the output of a patch's 64 rows.
struct PatchPlace {
  static constexpr bool BY_THREADS = false;
  const Params& params;
  Patch patch;
  int row;

  device_inline void next_block() { row += ROW_LINE; }
  device_inline void store(const unsigned char* slab) const {
    const BoxAt at(row, patch.q, patch.p, patch.o, patch.n);
    bulk_store(params.maps[2], slab, at.at);
  }
  device_inline void load(unsigned char* slab, Mbarrier& landed) const {
    const BoxAt at(row, patch.q, patch.p, patch.o, patch.n);
    bulk_load(slab, params.maps[RESIDUAL ? 3 : 2], landed, at.at);
  }
};

device_inline void consume(const Params& params, Sums& sums, unsigned char* memory,
                           Barriers& barriers) {
  // The descriptors' advance by 32 bytes, or 16 steps, of the reduction.
  constexpr int K_ROWS = 32, K_STEPS = 16 * ROW_LINE_BYTES;
  constexpr int FILTER_LINE = FILTER_BY_CHANNELS ? ROW_LINE_BYTES : LINE_BYTES;
  const u32 group = thread_x() / 128 - 1;
  const bool first_lane = thread_x() % 32 == 0;
  Store store(params.common, memory + SLABS_AT + group * SLAB_BYTES, barriers.residual[group],
              group);
  const SharedMatrix filters = SharedMatrix::swizzled<FILTER_LINE>(memory, 8 * FILTER_LINE);
  const SharedMatrix halos =
      SharedMatrix::swizzled<LINE_BYTES>(memory + HALOS_AT, HALO_COLUMNS * LINE_BYTES);
  WarpgroupProducts<element_t, 1, BLOCK_RIGHT / 8> products;
  u32 turn = 0;  // index among the block's tiles
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x(), ++turn) {
    if (turn % WARPGROUPS != group) continue;
    // Waits until the other warpgroup has issued all products of the previous tile.
    if (turn > 0) barriers.turn[group].wait((turn - 1) / WARPGROUPS & 1);
    const Patch patch(tile);
    Slot<FILTER_SLOTS> filter(turn * (PLANE_TAPS * HALOS));
    Slot<HALO_SLOTS> halo(turn * HALOS);
    u32 filter_before = 0, halo_before = 0;
#pragma unroll 1
    for (int number = 0; number < HALOS; ++number) {
      barriers.halo_landed[halo.slot].wait(halo.parity);
#pragma unroll 1
      for (int r = 0; r < TAPS_R; ++r)
#pragma unroll 1
        for (int s = 0; s < TAPS_S; ++s) {
          barriers.filter_landed[filter.slot].wait(filter.parity);
          const SharedMatrix left = filters.moved(static_cast<int>(filter.slot) * FILTER_BYTES);
          const SharedMatrix right =
              halos.moved(static_cast<int>(halo.slot) * HALO_PITCH +
                          (r * (APART_H * HALO_COLUMNS) + s * APART_W) * LINE_BYTES);
          const bool first_tap = r == 0 && s == 0;
          products.begin();
#pragma unroll
          for (int k = 0; k < LINE_BYTES / 32; ++k)
            products.multiply_swizzled<FILTER_BY_CHANNELS, false, 0>(
                sums, left.moved(k * (FILTER_BY_CHANNELS ? K_STEPS : K_ROWS)),
                right.moved(k * K_ROWS), number > 0 || !first_tap || k > 0);
          products.commit();
          products.wait<1>();
          if (first_lane && (number > 0 || !first_tap)) {
            barriers.filter_free[filter_before].arrive();
            if (first_tap) barriers.halo_free[halo_before].arrive();
          }
          filter_before = filter.slot;
          filter.advance();
        }
      halo_before = halo.slot;
      halo.advance();
    }
    if (first_lane) barriers.turn[1 - group].arrive();
    products.wait<0>();
    if (first_lane) {
      barriers.filter_free[filter_before].arrive();
      barriers.halo_free[halo_before].arrive();
    }
    store.store<0, 0, BLOCK_RIGHT / 8>(sums, PatchPlace{params, patch, patch.first_row}, true);
  }
  store.finish();
}

KILN_BEGINS_STEP;

KILN_KERNEL(dense_halo_nhwc_wgmma, THREADS, 1, Params, params) {
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
    give_registers<40>();
    if (thread_x() == 0) bring_filter(params, memory, barriers);
    if (thread_x() == 32) bring_halos(params, memory, barriers);
  } else {
    take_registers<232>();
    consume(params, sums, memory, barriers);
  }
}
