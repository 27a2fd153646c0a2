#include "device/host/tensor_map.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace kiln::host {
namespace {

constexpr std::uint32_t made = 0x6b6d6170;  // distinguishes an encoded map from other bytes

struct Encoded {
  std::uint64_t address;
  std::array<std::int64_t, 4> strides;
  std::array<std::uint32_t, 5> sizes;
  std::array<std::uint16_t, 5> box;
  std::array<std::int16_t, 3> lower, upper;
  std::array<std::uint8_t, 3> steps;
  std::uint8_t rank, element, im2col, swizzled;
  std::uint32_t mark;
};
static_assert(sizeof(Encoded) <= tensor_map_bytes);

Encoded decoded(const void* map) {
  Encoded encoded;
  std::memcpy(&encoded, map, sizeof encoded);
  if (encoded.mark != made)
    fail(KILN_STATUS_EXECUTION_FAILED, "a bulk copy's tensor map was not encoded");
  return encoded;
}

template <class... Parts>
void expect(bool holds, const Parts&... parts) {
  if (!holds) fail(KILN_STATUS_EXECUTION_FAILED, "a tensor map's ", parts...);
}

template <class T>
T narrow(std::int64_t value, const char* what) {
  expect(value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max(), what,
         " is ", value);
  return static_cast<T>(value);
}

std::int64_t element_bytes(kilnDataType_t type) {
  switch (type) {
    case KILN_DATA_HALF:
    case KILN_DATA_BFLOAT16: return 2;
    case KILN_DATA_DOUBLE: return 8;
    default: return 4;
  }
}

// Calls line(to, offset) for each run of the innermost dimension: it begins at byte `to` of the box
// and at byte `offset` of the tensor; -1 if it is outside the tensor.
template <class Line>
void walk_tiled(const Encoded& map, const BoxPlace& place, const Line& line) {
  std::int64_t lines = 1;
  for (int i = 1; i < map.rank; ++i) lines *= map.box[i];
  const std::int64_t line_bytes = std::int64_t{map.box[0]} * map.element;
  for (std::int64_t number = 0; number < lines; ++number) {
    std::int64_t rest = number, offset = 0;
    bool inside = true;
    for (int i = 1; i < map.rank; ++i) {
      const std::int64_t at = place.at[i] + rest % map.box[i];
      rest /= map.box[i];
      inside = inside && at >= 0 && at < map.sizes[i];
      offset += at * map.strides[i - 1];
    }
    line(number * line_bytes, inside ? offset : -1);
  }
}

// The same for an im2col map: walks from pixel to pixel by the map's traversal strides. Beyond the
// last position of a dimension it continues at the first one, a step further along the next
// dimension, and finally in the next image.
template <class Line>
void walk_im2col(const Encoded& map, const BoxPlace& place, const Line& line) {
  const std::int64_t line_bytes = std::int64_t{map.box[0]} * map.element;
  const int space = map.rank - 2;
  std::array<std::int64_t, 4> at{};  // {w, h, d} as far as they exist, then n
  for (int i = 0; i <= space; ++i) at[i] = place.at[i + 1];
  for (std::int64_t pixel = 0; pixel < map.box[1]; ++pixel) {
    std::int64_t offset = 0;
    bool inside = true;
    for (int i = 0; i <= space; ++i) {
      const std::int64_t x = at[i] + (place.tap != nullptr && i < space ? place.tap[i] : 0);
      inside = inside && x >= 0 && x < map.sizes[i + 1];
      offset += x * map.strides[i];
    }
    line(pixel * line_bytes, inside ? offset : -1);
    int i = 0;
    for (; i < space; ++i) {
      at[i] += map.steps[i];
      if (at[i] <= std::int64_t{map.sizes[i + 1]} - 1 + map.upper[i]) break;
      at[i] = map.lower[i];
    }
    if (i == space) ++at[space];
  }
}

// Calls piece(place, offset, bytes) for each 16 bytes of the box. place: byte in shared memory,
// counted from the box's first one; bytes: how many of them are in the tensor, at byte `offset`.
template <class Piece>
void walk(const Encoded& map, const BoxPlace& place, const void* shared, const Piece& piece) {
  constexpr std::int64_t step = 16;
  const std::int64_t line_bytes = std::int64_t{map.box[0]} * map.element;
  const std::int64_t first = std::int64_t{place.at[0]} * map.element;
  const std::int64_t end = std::int64_t{map.sizes[0]} * map.element;
  const auto base = reinterpret_cast<std::uintptr_t>(shared);
  const auto line = [&](std::int64_t to, std::int64_t offset) {
    for (std::int64_t at = 0; at < line_bytes; at += step) {
      std::uintptr_t address = base + static_cast<std::uintptr_t>(to + at);
      if (map.swizzled) address ^= address >> 3 & (line_bytes - 16);
      const std::int64_t from = first + at;
      std::int64_t bytes = 0;
      if (offset >= 0 && from >= 0 && from < end) bytes = end - from < step ? end - from : step;
      piece(static_cast<std::int64_t>(address - base), offset + from, bytes);
    }
  };
  if (map.im2col)
    walk_im2col(map, place, line);
  else
    walk_tiled(map, place, line);
}

}  // namespace

void encode(const TensorMapSpec& spec, std::span<std::byte, tensor_map_bytes> to) {
  const bool im2col = spec.mode == TensorMapSpec::Mode::im2col;
  Encoded map{};
  expect(spec.rank >= 2 && spec.rank <= 5 && (!im2col || spec.rank >= 4), "rank is ", spec.rank);
  map.rank = static_cast<std::uint8_t>(spec.rank);
  map.element = static_cast<std::uint8_t>(element_bytes(spec.type));
  map.im2col = im2col;
  map.swizzled = spec.swizzled;
  map.mark = made;
  for (std::size_t i = 0; i < map.rank; ++i) {
    map.sizes[i] = narrow<std::uint32_t>(spec.sizes[i], "size");
    expect(map.sizes[i] > 0, "size is 0");
    if (i > 0) {
      const std::int64_t stride = spec.strides[i - 1];
      expect(stride >= 0 && stride % 16 == 0 && stride < std::int64_t{1} << 40, "stride is ",
             stride, " bytes; expected a multiple of 16 below 2^40");
      map.strides[i - 1] = stride;
    }
    if (im2col && i > 1) continue;
    const std::int64_t most = im2col && i == 1 ? 1024 : 256;
    expect(spec.box[i] > 0 && spec.box[i] <= most, "box has ", spec.box[i],
           " elements along a dimension; expected 1 to ", most);
    map.box[i] = narrow<std::uint16_t>(spec.box[i], "box");
  }
  const std::int64_t line = spec.box[0] * map.element;
  expect(spec.swizzled ? line == 128 || line == 64 || line == 32 : line % 16 == 0,
         "box has lines of ", line, " bytes");
  const std::int64_t most = TensorMapSpec::most_corner(spec.space());
  for (int i = 0; im2col && i < spec.space(); ++i) {
    for (const std::int64_t corner : {spec.lower[i], spec.upper[i]})
      expect(corner >= -most - 1 && corner <= most, "corner is ", corner, "; expected ", -most - 1,
             " to ", most);
    map.lower[i] = narrow<std::int16_t>(spec.lower[i], "corner");
    map.upper[i] = narrow<std::int16_t>(spec.upper[i], "corner");
    expect(spec.steps[i] >= 1 && spec.steps[i] <= 8, "step is ", spec.steps[i],
           "; expected 1 to 8");
    map.steps[i] = static_cast<std::uint8_t>(spec.steps[i]);
  }
  std::memset(to.data(), 0, to.size());
  std::memcpy(to.data(), &map, sizeof map);
}

void set_address(std::byte* map, void* address) { std::memcpy(map, &address, sizeof address); }

std::size_t box_bytes(const void* map, const BoxPlace& place, bool im2col) {
  const Encoded encoded = decoded(map);
  if (place.at.size() != encoded.rank || im2col != (encoded.im2col != 0))
    fail(KILN_STATUS_EXECUTION_FAILED, "a bulk copy of ", place.at.size(), " coordinates, ",
         im2col ? "" : "not ", "of an im2col map; the map has ", int{encoded.rank}, " dimensions, ",
         encoded.im2col ? "" : "not ", "im2col");
  if (encoded.address == 0 || encoded.address % 16 != 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "a tensor map's address is ", encoded.address,
         "; expected a multiple of 16");
  if (const std::int64_t first = std::int64_t{place.at[0]} * encoded.element; first % 16 != 0)
    fail(KILN_STATUS_EXECUTION_FAILED, "a bulk copy begins at byte ", first,
         " of a line of the tensor; expected a multiple of 16, as GPUs stop at others with an "
         "illegal instruction");
  for (int i = 0; place.tap != nullptr && i < encoded.rank - 2; ++i)
    if (const std::int64_t most = TensorMapSpec::most_offset(encoded.rank - 2);
        place.tap[i] < 0 || place.tap[i] > most)
      fail(KILN_STATUS_EXECUTION_FAILED, "an im2col copy's offset is ", place.tap[i],
           "; expected 0 to ", most);
  std::size_t bytes = encoded.element;
  for (std::size_t i = 0; i < (im2col ? 2 : place.at.size()); ++i) bytes *= encoded.box[i];
  return bytes;
}

std::size_t shared_alignment(const void* map) {
  const Encoded encoded = decoded(map);
  return encoded.swizzled != 0 ? std::size_t{8} * encoded.box[0] * encoded.element : 128;
}

std::vector<std::byte> read_box(const void* map, const BoxPlace& place, const void* shared) {
  const Encoded encoded = decoded(map);
  std::vector<std::byte> box(box_bytes(map, place, encoded.im2col != 0));
  const auto* const tensor = reinterpret_cast<const std::byte*>(encoded.address);
  walk(encoded, place, shared, [&](std::int64_t to, std::int64_t offset, std::int64_t bytes) {
    if (bytes > 0) std::memcpy(box.data() + to, tensor + offset, static_cast<std::size_t>(bytes));
  });
  return box;
}

void write_box(const void* map, const BoxPlace& place, const void* shared) {
  const Encoded encoded = decoded(map);
  auto* const tensor = reinterpret_cast<std::byte*>(encoded.address);
  const auto* const box = static_cast<const std::byte*>(shared);
  walk(encoded, place, shared, [&](std::int64_t from, std::int64_t offset, std::int64_t bytes) {
    if (bytes > 0) std::memcpy(tensor + offset, box + from, static_cast<std::size_t>(bytes));
  });
}

}  // namespace kiln::host
