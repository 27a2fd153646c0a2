// Copies the filter, one tap and CHUNK_CHANNELS channels at a time, to planes of 16 bytes of
// channels, which wgmma reads as operand B (right_planes.cuh). A copy takes 16 bytes if channels
// are contiguous, else one element. For f32 only.
#pragma once

#include "conv/geometry/tap_walk.cuh"
#include "conv/load/channel_vectors.cuh"
#include "conv/mma/right_planes.cuh"
#include "target/async_copy.cuh"

struct RightFilterLoader {
  static constexpr int COPY_BYTES = FILTER_ROWS_INNER ? ELEMENT_BYTES : 16;
  static constexpr int COPIES = TILE_M * (CHUNK_BYTES / COPY_BYTES);
  static constexpr int TURNS = (COPIES + THREADS - 1) / THREADS;
  static_assert(ELEMENT_BYTES == 4 && TILE_M % 8 == 0);

  // The row of the tile and the first channel of the chunk that a copy takes. Neighbouring threads
  // take the parts of a row; or eight rows, then the channels of a part, so that they read whole
  // sectors and write to different banks.
  struct Copy {
    int row, channel;

    device_inline explicit Copy(int number) {
      if constexpr (FILTER_ROWS_INNER) {
        const int eights = number / 32;
        row = eights % (TILE_M / 8) * 8 + number % 8;
        channel = eights / (TILE_M / 8) * 4 + number / 8 % 4;
      } else {
        row = number / PARTS;
        channel = number % PARTS * VECTOR_ELEMENTS;
      }
    }
  };

  const element_t* w;  // at the tile's first row
  int rows;            // rows from there on

  device_inline RightFilterLoader(const element_t* at_group, int first_row)
      : w(at_group + static_cast<offset_t>(first_row) * W_STRIDE_ROW), rows(ROWS - first_row) {}

  device_inline void load(const Step& step, byte_t* tile) const {
    const int first = step.chunk * CHUNK_CHANNELS;
    const element_t* const from = w + (static_cast<offset_t>(first) * W_STRIDE_C +
                                       static_cast<offset_t>(step.r) * W_STRIDE_R +
                                       static_cast<offset_t>(step.s) * W_STRIDE_S);
#pragma unroll
    for (int turn = 0; turn < TURNS; ++turn) {
      const int number = turn * THREADS + static_cast<int>(thread_x());
      if (COPIES % THREADS != 0 && number >= COPIES) break;
      const Copy copy(number);
      async_copy<COPY_BYTES, true>(
          tile + right_place(copy.row, copy.channel),
          from + (static_cast<offset_t>(copy.row) * W_STRIDE_ROW +
                  static_cast<offset_t>(copy.channel) * W_STRIDE_C),
          (ROWS % TILE_M == 0 || copy.row < rows) &&
              (CHANNELS % CHUNK_CHANNELS == 0 || first + copy.channel < CHANNELS));
    }
  }
};
