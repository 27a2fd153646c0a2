// What copies to and from channels last share: elements as bits, and units of 16 bytes of shared
// memory.
#pragma once

#include "common/compute_type.cuh"
#include "conv/relaid/channels_last_copies_params.h"
#include "target/async_copy.cuh"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"
#include "target/vector_access.cuh"

constexpr int THREADS = 256, TILES = CHANNELS_LAST_TILES;
constexpr int ELEMENT = sizeof(element_t), VECTOR = 16 / ELEMENT;
constexpr int TILE = 8192 / ELEMENT;              // elements of a tile
constexpr int VECTORS = TILE / VECTOR / THREADS;  // of channels, a thread
constexpr int ROW_UNITS = 3;                      // of rows of pixels, a thread, at most
constexpr int SHARED_UNITS = 1024;                // of a tile

template <int SIZE>
struct BitsOf {
  using type = u32;
};
template <>
struct BitsOf<2> {
  using type = unsigned short;
};
using bits_t = BitsOf<ELEMENT>::type;

struct alignas(16) Unit {
  u32 word[4];
};

device_inline u32 low_bits(u32 count) { return (1u << count) - 1; }
device_inline int smaller(int a, int b) { return a < b ? a : b; }

// How far from 16 bytes an element is.
device_inline int shift_of(const bits_t* element) {
  return static_cast<int>(reinterpret_cast<u64>(element) / ELEMENT % VECTOR);
}
