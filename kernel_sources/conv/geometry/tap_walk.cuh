// The order of a tile's reduction: chunk by chunk of channels, and within a chunk tap by tap.
#pragma once

#include "conv/geometry/live_taps.cuh"

// The taps that are inside the source for some pixel of the tile.
struct TapWindow {
  TapRange r, s;

  device_inline int taps() const { return (r.end - r.begin) * (s.end - s.begin); }
  // Keeps them in registers instead of computing them at every step (kernel.cuh).
  device_inline void keep() {
    if (PADDED_H) r = {kept(r.begin), kept(r.end)};
    if (PADDED_W) s = {kept(s.begin), kept(s.end)};
  }
};

// One step of the reduction: a tap of a chunk of channels.
struct Step {
  int chunk, r, s;

  device_inline static Step number(int k, const TapWindow& window) {
    const int taps = window.taps(), width = window.s.end - window.s.begin;
    const int chunk = k / taps, tap = k - chunk * taps, row = tap / width;
    return {chunk, window.r.begin + row, window.s.begin + tap - row * width};
  }
  device_inline bool starts_chunk(const TapWindow& window) const {
    return r == window.r.begin && s == window.s.begin;
  }
  device_inline void advance(const TapWindow& window) {
    if (++s < window.s.end) return;
    s = window.s.begin;
    advance_rows(1, window);
  }
  // Advances by `rows` rows of taps, which must divide the window's rows.
  device_inline void advance_rows(int rows, const TapWindow& window) {
    r += rows;
    if (r < window.r.end) return;
    r = window.r.begin;
    ++chunk;
  }
};
