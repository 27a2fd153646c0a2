// The halos of a block's tiles of pixels: the parts of a channels-last source that tiles read. TMA
// loads that of a later tile, one box each, while a tile is computed; elements outside the source
// become zeros.
#pragma once

#include "conv/geometry/boxed_gather_params.h"
#include "conv/geometry/boxed_spot.cuh"
#include "conv/geometry/phase_taps.cuh"
#include "conv/geometry/tap_distance.cuh"
#include "target/bulk_copy.cuh"

static_assert(PHASES == 1);

// The number of source rows that p output rows read, and of columns that q output columns read.
device_inline constexpr int rows_met(int p) {
  return (p - 1) * STRIDE_H + (TAPS_R - 1) * DISTANCE_H + 1;
}
device_inline constexpr int columns_met(int q) {
  return (q - 1) * STRIDE_W + (TAPS_S - 1) * DISTANCE_W + 1;
}

// A ring of STAGES halos of HALO_BYTES, which begin HALO_PITCH bytes apart. A block's turns are its
// tiles, one after the other.
template <int BLOCK_P, int BLOCK_Q, int HALO_BYTES, int HALO_PITCH>
struct HaloRing {
  const BoxedGatherParams& params;
  unsigned char* memory;
  Mbarrier* landed;  // one for each halo
  int channel;       // the block's first one

  device_inline unsigned char* halo_of(u32 turn) const {
    return memory + turn % STAGES * HALO_PITCH;
  }
  // Starts to load the halo of a tile, if there is one.
  device_inline void ask(u32 tile, u32 turn) const {
    if (tile >= params.common.tiles) return;
    constexpr int LOWER_H = ORIGIN_H[0] - (STEP_H < 0 ? (TAPS_R - 1) * DISTANCE_H : 0);
    constexpr int LOWER_W = ORIGIN_W[0] - (STEP_W < 0 ? (TAPS_S - 1) * DISTANCE_W : 0);
    const BoxedSpot<BLOCK_P, BLOCK_Q> spot(tile);
    landed[turn % STAGES].arrive_and_expect(HALO_BYTES);
    const int at[4] = {channel, spot.q * STRIDE_W + LOWER_W, spot.p * STRIDE_H + LOWER_H,
                       static_cast<int>(spot.image)};
    bulk_load(halo_of(turn), params.source, landed[turn % STAGES], at);
  }
  // For one thread, before the others use the ring; `step`: from a tile of the block to its next.
  device_inline void begin(u32 first, u32 step) const {
    for (int i = 0; i < STAGES; ++i) landed[i].init(1);
    mbarriers_are_made();
    prefetch_map(params.source);
    for (u32 turn = 0; turn + 1 < STAGES; ++turn) ask(first + turn * step, turn);
  }
  // Waits for the halo of a turn, and starts to load one for STAGES - 1 turns later.
  device_inline const unsigned char* take(u32 tile, u32 step, u32 turn) const {
    if (turn > 0) block_barrier();  // all threads have read the halo that the next one overwrites
    if (thread_x() == 0) ask(tile + (STAGES - 1) * step, turn + STAGES - 1);
    landed[turn % STAGES].wait(turn / STAGES & 1);
    return halo_of(turn);
  }
};
