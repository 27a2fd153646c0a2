// What planes.cuh and rows.cuh share: elements as bits, and 16-byte units of shared memory.
#pragma once

#include "common/compute_type.cuh"
#include "conv/relayout/channels_last_copies_params.h"
#include "target/async_copy.cuh"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"
#include "target/vector_access.cuh"

constexpr int THREADS = 256, TILES = CHANNELS_LAST_TILES;
constexpr int ELEMENT = sizeof(element_t), VECTOR = 16 / ELEMENT;
constexpr int TILE = 8192 / ELEMENT;              // elements of a tile, 8 KiB
constexpr int VECTORS = TILE / VECTOR / THREADS;  // 16-byte vectors of channels that a thread moves
constexpr int ROW_UNITS = 3;                      // units of rows that a thread moves at most
constexpr int SHARED_UNITS = 1024;                // shared memory of a tile, in units

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

// How far an element is after a multiple of 16 bytes, in elements.
device_inline int shift_of(const bits_t* element) {
  return static_cast<int>(reinterpret_cast<u64>(element) / ELEMENT % VECTOR);
}
