// A filter's channels and taps as one axis, in the order of a pixel's weights in memory: the
// reduction of a forward product, and the columns of a filter gradient.
#pragma once

#include "local/geometry.cuh"

constexpr int TAPS = static_cast<int>(FILTER[0] * FILTER[1] * FILTER[2]);
constexpr int COLUMNS = static_cast<int>(CHANNELS) * TAPS;

// Element `column` of a filter: TAPS_INNER [channel][tap], else [tap][channel].
struct Column {
  int channel, tap;
  device_inline explicit Column(int column) {
    if constexpr (TAPS_INNER) {
      channel = column / TAPS;
      tap = column - channel * TAPS;
    } else {
      tap = column / static_cast<int>(CHANNELS);
      channel = column - tap * static_cast<int>(CHANNELS);
    }
  }
};

// The offset in one image of x, from a group's first channel, that a column of a pixel's filter
// reads; -1 in padding.
device_inline i64 source_of(const Column& column, const Place& pixel) {
  constexpr int PLANE = static_cast<int>(FILTER[1] * FILTER[2]),
                WIDTH = static_cast<int>(FILTER[2]);
  const int t = column.tap / PLANE, in_plane = column.tap - t * PLANE;
  const int r = in_plane / WIDTH, s = in_plane - r * WIDTH;
  const i64 d = input_at(0, pixel.at[0], tap_of(0, t));
  const i64 h = input_at(1, pixel.at[1], tap_of(1, r));
  const i64 v = input_at(2, pixel.at[2], tap_of(2, s));
  if (d < 0 || d >= IN[0] || h < 0 || h >= IN[1] || v < 0 || v >= IN[2]) return -1;
  return product(column.channel, X_STRIDE[1]) + x_offset({{d, h, v}});
}

// The output pixel with a given number.
device_inline Place pixel_of(u32 number) {
  const u32 row = number / static_cast<u32>(OUT[2]);
  const u32 plane = row / static_cast<u32>(OUT[1]);
  return {{static_cast<i64>(plane), static_cast<i64>(row - plane * static_cast<u32>(OUT[1])),
           static_cast<i64>(number - row * static_cast<u32>(OUT[2]))}};
}
