// The layout of a tap of the filter in shared memory (CHUNK_CHANNELS channels), [row][channel] or,
// with FILTER_ROWS_INNER, [channel][row]; and how a lane reads it.
#pragma once

#include "conv/mma/channel_chunk.cuh"
#include "conv/mma/fragments.cuh"

constexpr int FILTER_PITCH =
    FILTER_ROWS_INNER ? TILE_M * static_cast<int>(sizeof(element_t)) + FILTER_PAD : PITCH;

static_assert(!FILTER_ROWS_INNER || TRANSPOSABLE);

struct FilterReader {
  const byte_t* lane_place;  // the lane's address in the first tap

  device_inline FilterReader(const byte_t* first_tap, const Position& position, int lane) {
    const int warp_m = position.m - lane / LANES_N * RUN_M;
    if constexpr (FILTER_ROWS_INNER)
      lane_place = first_tap + warp_m * static_cast<int>(sizeof(element_t)) +
                   transposed_place_m<FILTER_PITCH>(lane);
    else
      lane_place =
          first_tap + (warp_m + fragment_row_m(lane)) * FILTER_PITCH + fragment_part_m(lane);
  }

  // tap: the offset of a tap from the first one, in bytes. fragment: the fragment's number in the
  // step.
  device_inline void load(Fragments& to, int tap, int fragment) const {
    const byte_t* const m = lane_place + tap;
    if constexpr (FILTER_ROWS_INNER)
      load_transposed_m<FILTER_PITCH>(to, m + fragment * (FRAGMENT_K * FILTER_PITCH));
    else
      load_fragments_m<FILTER_PITCH>(to, m + fragment * FRAGMENT_BYTES);
  }
};
