// What the tensor cores multiply at a time: a fragment, 32 bytes of the reduction. It is made of
// words: an element of f32 or f64, or two of 16 bits.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"

using byte_t = unsigned char;

constexpr int FRAGMENT_BYTES = 32;
constexpr int ELEMENT_BYTES = static_cast<int>(sizeof(element_t));
constexpr int FRAGMENT_K = FRAGMENT_BYTES / ELEMENT_BYTES;
constexpr int WORD_BYTES = ELEMENT_BYTES > 4 ? ELEMENT_BYTES : 4;
constexpr int WORD_ELEMENTS = WORD_BYTES / ELEMENT_BYTES;
constexpr int FRAGMENT_WORDS = FRAGMENT_BYTES / WORD_BYTES;

// From one row of so many fragments to the next, where they lie side by side in a row: an odd
// number of 16 bytes, so that eight rows of 16 meet different banks, of f64 of 32, so that four of
// 32 do.
device_inline constexpr int fragments_pitch(int fragments) {
  return fragments * FRAGMENT_BYTES + (ELEMENT_BYTES < 8 ? 16 : (fragments + 1) % 2 * 32);
}

// An entry of a table, in shared memory, of the reduction's words: its place in x, in bytes, and
// what of it counts: what fills up rows and fragments is no operand, however infinite.
struct alignas(8) ReductionWord {
  u32 place, mask;

  // elements: of the word, that count.
  device_inline static ReductionWord of(int word_place, int elements) {
    return {static_cast<u32>(word_place), elements >= WORD_ELEMENTS ? ~0u
                                          : elements > 0            ? 0xffffu
                                                                    : 0u};
  }
  device_inline u32 read(const byte_t* column) const {
    return *reinterpret_cast<const u32*>(column + place) & mask;
  }
};
