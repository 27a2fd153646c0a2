// Tensor maps of the host device: their encoding, and the boxes that copies move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/tensor_map.hpp"

namespace kiln::host {

// Encodes a map. Throws EXECUTION_FAILED if the driver would refuse it.
void encode(const TensorMapSpec& spec, std::span<std::byte, tensor_map_bytes> to);
void set_address(std::byte* map, void* address);

// The place in the tensor at which a box begins.
struct BoxPlace {
  std::span<const int> at;   // a coordinate for each dimension
  const int* tap = nullptr;  // im2col: offsets {w, h} or {w, h, d} that are added
};

// The bytes of a map's box. Throws EXECUTION_FAILED if the map was not encoded, or if its mode or
// rank does not fit the copy.
std::size_t box_bytes(const void* map, const BoxPlace& place, bool im2col);

// The alignment, in bytes, that a box's address in shared memory must have: with a swizzle, that of
// its pattern of eight rows.
std::size_t shared_alignment(const void* map);

// Reads a box from the tensor: its bytes in the order that they have at `shared`, because the
// swizzle depends on the address.
std::vector<std::byte> read_box(const void* map, const BoxPlace& place, const void* shared);
// Writes the box at `shared` to the tensor.
void write_box(const void* map, const BoxPlace& place, const void* shared);

}  // namespace kiln::host
