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
#include "conv/dense/planar_halo.cuh"
#include "conv/dense/shifted_halos.cuh"
#include "conv/dense/store.cuh"

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
