// A fragment is what the tensor cores multiply at a time: 32 bytes of the reduction. It consists of
// words: one element of f32 or f64, or two of 16 bits.
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

// Bytes from one row of contiguous fragments to the next: an odd number of 16 bytes, so that eight
// 16-byte accesses hit different banks (f64: of 32 bytes, for four accesses of 32).
device_inline constexpr int fragments_pitch(int fragments) {
  return fragments * FRAGMENT_BYTES + (ELEMENT_BYTES < 8 ? 16 : (fragments + 1) % 2 * 32);
}

// An entry of the table of the reduction's words, in shared memory: the word's offset in x, in
// bytes, and a mask of its elements that count. What only fills up rows and fragments must not be
// multiplied, because it may be infinite.
struct alignas(8) ReductionWord {
  u32 place, mask;

  // elements: the elements of the word that count.
  device_inline static ReductionWord of(int word_place, int elements) {
    return {static_cast<u32>(word_place), elements >= WORD_ELEMENTS ? ~0u
                                          : elements > 0            ? 0xffffu
                                                                    : 0u};
  }
  device_inline u32 read(const byte_t* column) const {
    return *reinterpret_cast<const u32*>(column + place) & mask;
  }
};
