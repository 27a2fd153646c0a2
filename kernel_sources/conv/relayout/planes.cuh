// Tiles of channels-first tensors: channels x pixels of one image.
//
// A row is a channel's contiguous pixels. It is in shared memory in 16-byte units, and begins as
// far from a multiple of 16 bytes as it does in global memory, so that 16-byte copies keep their
// alignment. Units are swizzled: every VECTOR rows, their order in a row changes. A warp that reads
// several vectors of channels, of a few pixels each, thus hits different banks.
#pragma once

#include "conv/relayout/units.cuh"

// One tile of a copy.
struct Tile {
  const ChannelsLastCopy& copy;
  int pixels_log;  // a whole tile has 2^pixels_log pixels
  u32 image;
  int channel, pixel;               // the tile's first
  int origin;                       // the tile's first pixel in the caller's tensor; may be below 0
  int channels, pixels;             // those that exist
  int row_units, pitch, unit_mask;  // units that a row may touch, to the next row; XOR mask
  u32 unit_factor;                  // for a unit's number n: n / row_units == n * unit_factor >> 20

  // Of the `walked` pixels of an image, the caller's tensor lacks the first `before`.
  device_inline Tile(const ChannelsLastCopy& of, u32 block, u32 walked, u32 before)
      : copy(of), pixels_log(static_cast<int>(of.tile_log)) {
    const u32 next = block / of.pixel_tiles;
    image = next / of.channel_tiles;
    pixel = static_cast<int>((block - next * of.pixel_tiles) << pixels_log);
    channel = static_cast<int>((next - image * of.channel_tiles) * (TILE >> pixels_log));
    channels = smaller(static_cast<int>(of.channels) - channel, TILE >> pixels_log);
    pixels = smaller(static_cast<int>(walked) - pixel, 1 << pixels_log);
    origin = pixel - static_cast<int>(before);
    row_units = (1 << pixels_log) / VECTOR + 1;
    unit_mask = row_units < 5 ? 3 : 7;
    pitch = (row_units + unit_mask) & ~unit_mask;
    unit_factor = (1u << 20) / static_cast<u32>(row_units) + 1;
  }

  // The offset, in elements, of a row's first pixel in the caller's tensor.
  device_inline i64 row_at(int row) const {
    return image * copy.image + (channel + row) * copy.channel +
           (copy.walk == WALK_PICKED ? 0 : origin);
  }
  device_inline int unit_at(int row, int unit) const {
    return row * pitch + (unit ^ (row / VECTOR & unit_mask));
  }
  device_inline int element_at(int row, int place) const {
    return unit_at(row, place / VECTOR) * VECTOR + (place & (VECTOR - 1));
  }

  // The offset, in elements, of the copy's pixel `number` in the caller's plane (WALK_PICKED).
  device_inline i64 picked(u32 number) const {
    const u32 line = number / copy.picked_width, w = number - line * copy.picked_width;
    const u32 d = line / copy.picked_height, h = line - d * copy.picked_height;
    return (static_cast<i64>(d * copy.stride[0]) * copy.plane_height + h * copy.stride[1]) *
               copy.plane_width +
           w * copy.stride[2];
  }
  // The index, in the copy, of the tile's pixel `number`; -1 if the copy lacks it (WALK_SPREAD).
  device_inline int in_copy(int number) const {
    if (copy.walk != WALK_SPREAD) return pixel + number;
    const u32 at = static_cast<u32>(pixel + number);
    const u32 line = at / copy.plane_width, w = at - line * copy.plane_width;
    const u32 d = line / copy.plane_height, h = line - d * copy.plane_height;
    const u32 pd = d / copy.stride[0], ph = h / copy.stride[1], pw = w / copy.stride[2];
    if (d != pd * copy.stride[0] || h != ph * copy.stride[1] || w != pw * copy.stride[2] ||
        pw >= copy.picked_width || ph >= copy.picked_height)
      return -1;
    const u32 place = (pd * copy.picked_height + ph) * copy.picked_width + pw;
    return place < copy.last_pixels ? static_cast<int>(place) : -1;
  }
  device_inline bits_t* last_at(int place, int first_channel) const {
    return static_cast<bits_t*>(copy.last) +
           (static_cast<i64>(image) * copy.last_pixels + place) * copy.last_channels + channel +
           first_channel;
  }
  // Whether every pixel of the copy begins at a multiple of 16 bytes.
  device_inline bool whole_channels() const { return copy.last_channels % VECTOR == 0; }
  // The first of the tile's pixels that come in from the caller's tensor, and the first after
  // these.
  device_inline int begin() const { return origin < 0 ? -origin : 0; }
  device_inline int end() const {
    return smaller(static_cast<int>(copy.in_there) - origin, pixels);
  }
  device_inline bool comes_in(int number) const {
    return static_cast<u32>(origin + number) < copy.in_there;
  }
  // How many of the tile's channels the caller's tensor has; the copy's other channels are zeros.
  device_inline int channels_there() const { return image < copy.images_there ? channels : 0; }
};

// How far rows begin after a multiple of 16 bytes, in elements: the tile's first row, and the step
// from each row to the next.
struct Shifts {
  int first, step;
  device_inline Shifts(const Tile& tile, const void* tensor)
      : first(shift_of(static_cast<const bits_t*>(tensor) + tile.row_at(0))),
        step(static_cast<int>(tile.copy.channel % VECTOR)) {
    if (tile.copy.walk == WALK_PICKED) first = step = 0;
  }
  // The shift of row `row`, counted from any row whose number is a multiple of VECTOR.
  device_inline int of(int row) const { return (first + row * step) & (VECTOR - 1); }
};

// The pixel and the first channel, within the tile, of a thread's vector of channels `number`. A
// warp takes up to eight contiguous vectors of each of several pixels.
struct VectorPlace {
  int pixel, row;
  device_inline VectorPlace(const Tile& tile, int number) {
    const u32 at = static_cast<u32>(number * THREADS) + thread_x();
    constexpr u32 log_vectors = 9;
    static_assert(TILE / VECTOR == 1 << log_vectors);
    const u32 log_groups = log_vectors - static_cast<u32>(tile.pixels_log);
    const u32 low = log_groups < 3 ? log_groups : 3;
    const u32 group = (at & low_bits(low)) | (at >> 5 & low_bits(log_groups - low)) << low;
    pixel = static_cast<int>((at >> low & low_bits(5 - low)) | at >> (5 + log_groups - low)
                                                                         << (5 - low));
    row = static_cast<int>(group) * VECTOR;
  }
  device_inline bool exists(const Tile& tile) const {
    return pixel < tile.pixels && row < tile.channels;
  }
  // The index in shared memory of the vector's channel `number`. All channels of a vector have the
  // same swizzle.
  device_inline int at(const Tile& tile, const Shifts& shifts, int number) const {
    const u32 place = static_cast<u32>(shifts.of(number) + pixel);
    const int unit = static_cast<int>(place / VECTOR) ^ (row / VECTOR & tile.unit_mask);
    return ((row + number) * tile.pitch + unit) * VECTOR + static_cast<int>(place % VECTOR);
  }
};

// The row and the place in that row of a thread's unit `number` of the tile.
struct UnitPlace {
  int row, unit;
  bool exists;
  device_inline UnitPlace(const Tile& tile, int number) {
    const int at = number * THREADS + static_cast<int>(thread_x());
    row = static_cast<int>(static_cast<u32>(at) * tile.unit_factor >> 20);
    unit = at - row * tile.row_units;
    exists = row < tile.channels;
  }
};

// Starts to load rows of pixels, which keep their alignment in shared memory. A unit that reaches
// past the tensor's end is read element by element. A unit without pixels of the tensor is left
// out: it may be outside of the caller's memory.
device_inline void read_rows(const Tile& tile, bits_t* shared) {
  const bits_t* const in = static_cast<const bits_t*>(tile.copy.in);
#pragma unroll
  for (int i = 0; i < ROW_UNITS; ++i) {
    const UnitPlace place(tile, i);
    const i64 row = tile.row_at(place.row);
    const int first = place.unit * VECTOR - shift_of(in + row);
    const bool exists = place.exists && first < tile.end() && first + VECTOR > tile.begin(),
               whole = row + first + VECTOR <= tile.copy.in_span;
    bits_t* const to = shared + (exists ? tile.unit_at(place.row, place.unit) : 0) * VECTOR;
    async_copy_if<16>(exists && whole, to, in + row + first, true);
    if (exists && !whole)
#pragma unroll 1
      for (int j = 0; j < VECTOR; ++j)
        if (first + j < tile.pixels && tile.comes_in(first + j)) to[j] = in[row + first + j];
  }
}

// Reads the pixels that a stride selects, one by one. Neighbouring threads take neighbouring
// pixels; the other threads take further rows. If a row has more pixels than the block has threads,
// it is read in several turns.
device_inline void read_picked(const Tile& tile, bits_t* shared) {
  const bits_t* const in = static_cast<const bits_t*>(tile.copy.in);
  constexpr int log_threads = 8;
  static_assert(THREADS == 1 << log_threads);
  const int side = tile.pixels_log < log_threads ? tile.pixels_log : log_threads;
  const int thread = static_cast<int>(thread_x());
#pragma unroll 1
  for (int number = thread & ((1 << side) - 1); number < tile.pixels; number += THREADS) {
    const bits_t* const from = in + tile.picked(static_cast<u32>(tile.pixel + number));
#pragma unroll 4
    for (int row = thread >> side; row < tile.channels; row += THREADS >> side)
      shared[tile.element_at(row, number)] = from[tile.row_at(row)];
  }
}

device_inline void write_channels(const Tile& tile, const bits_t* shared) {
  const Shifts shifts(tile, tile.copy.in);
  const bool whole = tile.whole_channels();
  const int all = tile.channels_there();
#pragma unroll 1
  for (int i = 0; i < VECTORS; ++i) {
    const VectorPlace place(tile, i);
    const int to = place.exists(tile) ? tile.in_copy(place.pixel) : -1;
    if (to < 0) continue;
    const int there = tile.comes_in(place.pixel) ? all : 0;
    bits_t* const last = tile.last_at(to, place.row);
    const auto at = [&](int j) { return place.at(tile, shifts, j); };
    if (whole) {
      bits_t elements[VECTOR];
      u32 words[4];
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        elements[j] = place.row + j < there ? shared[at(j)] : bits_t(0);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        words[j] = ELEMENT == 2
                       ? pack_shorts(elements[2 * j % VECTOR], elements[(2 * j + 1) % VECTOR])
                       : static_cast<u32>(elements[j]);
      store_words(last, words);
    } else {
#pragma unroll 1
      for (int j = 0; j < VECTOR && place.row + j < tile.channels; ++j)
        last[j] = place.row + j < there ? shared[at(j)] : bits_t(0);
    }
  }
}

// The value of a pixel that the copy lacks: beta times what it held.
device_inline bits_t spread_element(const bits_t* before, double beta) {
  if (beta == 0) return 0;
  const compute_t scaled =
      static_cast<compute_t>(beta) * to_compute(*reinterpret_cast<const element_t*>(before));
  const element_t element = from_compute<element_t>(scaled);
  return *reinterpret_cast<const bits_t*>(&element);
}

device_inline void read_channels(const Tile& tile, double beta, bits_t* shared) {
  const Shifts shifts(tile, tile.copy.out);
  const bool whole = tile.whole_channels();
  Unit units[VECTORS];
  int from[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const VectorPlace place(tile, i);
    from[i] = place.exists(tile) ? tile.in_copy(place.pixel) : -1;
    units[i] = {};
    if (from[i] >= 0 && whole)
      units[i] = *reinterpret_cast<const Unit*>(tile.last_at(from[i], place.row));
  }
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const VectorPlace place(tile, i);
    if (!place.exists(tile)) continue;
    const auto at = [&](int j) { return place.at(tile, shifts, j); };
    if (whole && (from[i] >= 0 || beta == 0)) {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j)
        shared[at(j)] = static_cast<bits_t>(units[i].word[j * ELEMENT / 4] >> j * ELEMENT % 4 * 8);
      continue;
    }
    const bits_t* const out = static_cast<const bits_t*>(tile.copy.out);
#pragma unroll 1
    for (int j = 0; j < VECTOR && place.row + j < tile.channels; ++j)
      shared[at(j)] = from[i] >= 0
                          ? tile.last_at(from[i], place.row)[j]
                          : spread_element(out + tile.row_at(place.row + j) + place.pixel, beta);
  }
}

device_inline void write_rows(const Tile& tile, const bits_t* shared) {
  bits_t* const out = static_cast<bits_t*>(tile.copy.out);
#pragma unroll 1
  for (int i = 0; i < ROW_UNITS; ++i) {
    const UnitPlace place(tile, i);
    if (!place.exists) continue;
    bits_t* const row = out + tile.row_at(place.row);
    const int first = place.unit * VECTOR - shift_of(row);
    const Unit unit = reinterpret_cast<const Unit*>(shared)[tile.unit_at(place.row, place.unit)];
    if (first >= 0 && first + VECTOR <= tile.pixels) {
      store_words(row + first, unit.word);
      continue;
    }
#pragma unroll
    for (int j = 0; j < VECTOR; ++j)
      if (first + j >= 0 && first + j < tile.pixels)
        row[first + j] = static_cast<bits_t>(unit.word[j * ELEMENT / 4] >> j * ELEMENT % 4 * 8);
  }
}
