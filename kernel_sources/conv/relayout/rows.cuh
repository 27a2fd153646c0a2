// Tiles of channels-last tensors that have no gaps between pixels. Their copies have more channels,
// so that each pixel begins at a multiple of 16 bytes. A row is the channels of one pixel. A tile
// is 512 16-byte units of the copy, and the tensor's elements that these units hold, which are
// contiguous.
#pragma once

#include "conv/relayout/units.cuh"

struct RowsTile {
  static constexpr int UNITS = TILE / VECTOR;
  const ChannelsLastCopy& copy;
  int row_units;        // units of a row of the copy
  int unit, units;      // of the copy: the tile's first, and how many exist
  int before;           // rows of the copy before the tensor's
  int all;              // elements of the tensor
  int first, elements;  // of the tensor: the tile's

  // The copy has `rows` rows, of which the tensor lacks the first `rows_before`, has `there`, and
  // lacks the others.
  device_inline RowsTile(const ChannelsLastCopy& of, u32 number, u32 rows, u32 rows_before,
                         u32 there)
      : copy(of),
        row_units(static_cast<int>(of.last_channels) / VECTOR),
        before(static_cast<int>(rows_before)),
        all(static_cast<int>(there * of.channels)) {
    unit = static_cast<int>(number) * UNITS;
    units = smaller(static_cast<int>(rows) * row_units - unit, UNITS);
    first = element_at(unit);
    elements = units > 0 ? element_at(unit + units) - first : 0;
  }
  // The index of the tensor's element at which unit `number` of the copy begins. It is the same for
  // both ends of a unit in a row that the tensor lacks.
  device_inline int element_at(int number) const {
    const int row = number / row_units, channels = static_cast<int>(copy.channels);
    const int element =
        (row - before) * channels + smaller((number - row * row_units) * VECTOR, channels);
    return element < 0 ? 0 : smaller(element, all);
  }
  device_inline bits_t* last() const { return static_cast<bits_t*>(copy.last) + unit * VECTOR; }
};

// Replaces all but the first `count` elements of a unit by those of another one.
device_inline void join(u32 (&words)[4], int count, const u32 (&others)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int bits = (count - i * 4 / ELEMENT) * ELEMENT * 8;
    const u32 mask = bits >= 32 ? ~0u : bits <= 0 ? 0u : low_bits(static_cast<u32>(bits));
    words[i] = (words[i] & mask) | (others[i] & ~mask);
  }
}

// Reads 16 bytes that begin at any element `place` of shared memory, from two adjacent units.
device_inline void take(const bits_t* shared, int place, u32 (&words)[4]) {
  const Unit* const units = reinterpret_cast<const Unit*>(shared) + place / VECTOR;
  const Unit low = units[0], high = units[1];
  u32 w[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[i] = low.word[i];
    w[i + 4] = high.word[i];
  }
  const int word = place % VECTOR * ELEMENT / 4;
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = (word & 2) != 0 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = (word & 1) != 0 ? w[i + 1] : w[i];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    words[i] = ELEMENT == 2 && place % 2 != 0 ? w[i] >> 16 | w[i + 1] << 16 : w[i];
}

// Starts to load the tensor's elements, which keep their alignment in shared memory.
device_inline void read_elements(const RowsTile& tile, bits_t* shared) {
  const bits_t* const in = static_cast<const bits_t*>(tile.copy.in) + tile.first;
  const int shift = shift_of(in);
#pragma unroll 1
  for (int i = 0; i < ROW_UNITS; ++i) {
    const int number = i * THREADS + static_cast<int>(thread_x()), at = number * VECTOR - shift;
    const bool exists = at < tile.elements, whole = tile.first + at + VECTOR <= tile.copy.in_span;
    bits_t* const to = shared + number * VECTOR;
    async_copy_if<16>(exists && whole, to, in + at, true);
    if (exists && !whole)
#pragma unroll 1
      for (int j = at < 0 ? -at : 0; j < VECTOR && at + j < tile.elements; ++j) to[j] = in[at + j];
  }
}

device_inline void write_units(const RowsTile& tile, const bits_t* shared) {
  const int shift = shift_of(static_cast<const bits_t*>(tile.copy.in) + tile.first);
#pragma unroll 1
  for (int i = 0; i < VECTORS; ++i) {
    const int number = i * THREADS + static_cast<int>(thread_x());
    if (number >= tile.units) continue;
    const int begin = tile.element_at(tile.unit + number) - tile.first,
              end = tile.element_at(tile.unit + number + 1) - tile.first;
    const u32 zeros[4] = {};
    u32 words[4] = {};
    if (begin < end && begin < tile.elements) {
      take(shared, shift + begin, words);
      join(words, end - begin, zeros);
    }
    store_words(tile.last() + number * VECTOR, words);
  }
}

// Starts to load units of the copy to shared memory, after one unused unit: write_elements() may
// begin to read there.
device_inline void read_units(const RowsTile& tile, bits_t* shared) {
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const int number = i * THREADS + static_cast<int>(thread_x());
    async_copy_if<16>(number < tile.units, shared + (number + 1) * VECTOR,
                      tile.last() + number * VECTOR, true);
  }
}

// Stores 16 bytes at a time, which hold elements of at most two rows. The first and the last 16
// bytes may contain elements of other tiles, which are left as they are.
device_inline void write_elements(const RowsTile& tile, const bits_t* shared) {
  const ChannelsLastCopy& copy = tile.copy;
  const int channels = static_cast<int>(copy.channels),
            last_channels = static_cast<int>(copy.last_channels);
  bits_t* const out = static_cast<bits_t*>(copy.out) + tile.first;
  const int shift = shift_of(out);
#pragma unroll 1
  for (int i = 0; i < ROW_UNITS; ++i) {
    const int number = i * THREADS + static_cast<int>(thread_x()), at = number * VECTOR - shift;
    if (at >= tile.elements) continue;
    const int begin = at < 0 ? -at : 0, end = smaller(tile.elements - at, VECTOR);
    const int element = tile.first + at + begin, row = element / channels,
              channel = element - row * channels;
    const int place = row * last_channels + channel - begin - (tile.unit - 1) * VECTOR;
    u32 words[4];
    take(shared, place, words);
    if (const int of_row = begin + channels - channel; of_row < end) {
      u32 next[4];
      take(shared, place + last_channels - channels, next);
      join(words, of_row, next);
    }
    if (end - begin == VECTOR) {
      store_words(out + at, words);
      continue;
    }
#pragma unroll
    for (int j = 0; j < VECTOR; ++j)
      if (j >= begin && j < end)
        out[at + j] = static_cast<bits_t>(words[j * ELEMENT / 4] >> j * ELEMENT % 4 * 8);
  }
}
