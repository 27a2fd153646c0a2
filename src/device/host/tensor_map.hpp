// Tensor maps of the host device: their encoding, and the boxes that copies move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/tensor_map.hpp"

namespace kiln::host {

// Refuses, as EXECUTION_FAILED, what the driver would refuse.
void encode(const TensorMapSpec& spec, std::span<std::byte, tensor_map_bytes> to);
void set_address(std::byte* map, void* address);

// Where a box begins.
struct BoxPlace {
  std::span<const int> at;   // a coordinate a dimension
  const int* tap = nullptr;  // {w, h} or {w, h, d}, which im2col loads add
};

// Bytes of a map's box. Throws EXECUTION_FAILED where the map is none, or not of a load (or store)
// of that many coordinates.
std::size_t box_bytes(const void* map, const BoxPlace& place, bool im2col);

// What the address of a box in shared memory is a multiple of: permuted rows, of eight.
std::size_t shared_alignment(const void* map);

// The box's bytes as they will lie at `shared`, whose address the swizzle depends on.
std::vector<std::byte> read_box(const void* map, const BoxPlace& place, const void* shared);
// The box at `shared`, to the tensor.
void write_box(const void* map, const BoxPlace& place, const void* shared);

}  // namespace kiln::host
