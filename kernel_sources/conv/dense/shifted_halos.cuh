// Halos for the columns of the filter beside CENTER_TAP, whose pixels are up to 8 columns from its
// own. TMA's boxes begin at multiples of 16 bytes, so two warps copy the halo that TMA loaded for
// CENTER_TAP, each time shifted by whole pixels. What a copy needs beyond the halo's lines, TMA
// loaded as edges: the 8 pixels before each line, and the 8 pixels after it.
#pragma once

#include "common/vector.cuh"
#include "conv/dense/planar_halo.cuh"
#include "target/bulk_copy.cuh"
#include "target/warpgroup.cuh"

constexpr int COPIES = SHIFTED ? TAPS_S - 1 : 1;  // of a halo
constexpr int VECTORS = LINE_BYTES / 16;          // of a line, of 8 pixels each
constexpr int SHIFTERS = 64;                      // threads

// The shift in pixels of copy `number` of a halo.
device_inline constexpr int shift_of(int number) {
  return SHIFTED ? (column_of(1 + number) - CENTER_TAP) * APART_W : 0;
}

// Word `i` of the 8 pixels from SHIFT pixels behind words[4] on; a word holds two pixels.
template <int SHIFT>
device_inline u32 shifted_word(const u32 (&words)[12], int i) {
  constexpr int FIRST = 8 + SHIFT;
  const u32 low = words[FIRST / 2 + i];
  return FIRST % 2 == 0 ? low : low >> 16 | words[(FIRST + 1) / 2 + i] << 16;
}

// Stores copy NUMBER and the following ones of a vector; `copies` are their halos.
template <int NUMBER>
device_inline void store_copies(const u32 (&words)[12], unsigned char* const (&copies)[COPIES],
                                int place) {
  Pack<u32, 4> vector;
#pragma unroll
  for (int i = 0; i < 4; ++i) vector.element[i] = shifted_word<shift_of(NUMBER)>(words, i);
  *reinterpret_cast<Pack<u32, 4>*>(copies[NUMBER] + place) = vector;
  if constexpr (NUMBER + 1 < COPIES) store_copies<NUMBER + 1>(words, copies, place);
}

// Makes all copies of a halo. A lane's neighbours have the vectors before and behind its own.
device_inline void copy_halo(const unsigned char* halo, const unsigned char* edges,
                             unsigned char* const (&copies)[COPIES], int thread) {
#pragma unroll 2
  for (int i = thread; i < HALO_LINES * VECTORS; i += SHIFTERS) {
    const int line = i / VECTORS, chunk = i % VECTORS;
    const int place =
        line * LINE_BYTES + (chunk ^ line * LINE_BYTES / 128 % VECTORS) * 16;  // swizzled by TMA
    const auto own = *reinterpret_cast<const Pack<u32, 4>*>(halo + place);
    u32 words[12] = {0, 0, 0, 0, own.element[0], own.element[1], own.element[2], own.element[3],
                     0, 0, 0, 0};
#pragma unroll
    for (int word = 4 - WORDS_BEFORE; word < 4; ++word) {
      words[word] = warp_shuffle(own.element[word], thread_x() + 31);
      if (chunk == 0) words[word] = reinterpret_cast<const u32*>(edges + line * 16)[word];
    }
#pragma unroll
    for (int word = 0; word < WORDS_BEHIND; ++word) {
      words[8 + word] = warp_shuffle(own.element[word], thread_x() + 1);
      if (chunk == VECTORS - 1)
        words[8 + word] = reinterpret_cast<const u32*>(edges + EDGE_BEHIND + line * 16)[word];
    }
    store_copies<0>(words, copies, place);
  }
}

// Makes the copies of all halos. Called by SHIFTERS threads.
device_inline void shift_halos(const Params& params, unsigned char* memory, Barriers& barriers,
                               int thread) {
  Ring<HALO_SLOTS> ring(0);
  Ring<EDGE_SLOTS> edge(0);
  const auto copy = [&] {
    const Ring<HALO_SLOTS> from = ring;
    unsigned char* copies[COPIES];
    barriers.halo_landed[from.slot].wait(from.parity);
#pragma unroll
    for (int i = 0; i < COPIES; ++i) {
      ring.advance();
      barriers.halo_free[ring.slot].wait(ring.parity ^ 1);
      copies[i] = memory + HALOS_AT + ring.slot * HALO_PITCH;
    }
    copy_halo(memory + HALOS_AT + from.slot * HALO_PITCH,
              memory + EDGES_AT + edge.slot * EDGE_PITCH, copies, thread);
    show_to_copy_engine();
    named_barrier<SHIFTERS>(1 + CONSUMERS);
    if (thread == 0) {
      Ring<HALO_SLOTS> done = from;
      barriers.halo_free[done.slot].arrive();
#pragma unroll
      for (int i = 0; i < COPIES; ++i) {
        done.advance();
        barriers.halo_landed[done.slot].arrive();
        barriers.halo_free[done.slot].arrive();
      }
    }
    ring.advance();
    edge.advance();
  };
#pragma unroll 1
  for (u32 tile = block_x(); tile < params.common.tiles[0]; tile += grid_x()) {
    const Patch patch(tile);
    const int halos = STEPS * patch.taps_t() * (TAPS_R / HALO_TAPS);
#pragma unroll 1
    for (int i = 0; i < halos; ++i) copy();
  }
}
