// Copies in shared memory of what a tile's windows read. The asynchronous copies of a whole tile
// are under way at once, so a multiprocessor's few blocks keep memory busy.
#pragma once

#include "pooling/choose.cuh"
#include "target/async_copy.cuh"

// Calls visit_unit(at) for the whole units of 16 bytes of a run of elements, and visit(at) for the
// elements before the first and after the last one. `at` counts from the last multiple of 16 bytes
// before the run, which begins at `shift`.
template <class VisitUnit, class Visit>
device_inline void for_units(int shift, int count, const VisitUnit& visit_unit,
                             const Visit& visit) {
  const int end = shift + count, thread = thread_x();
#pragma unroll 4
  for (int at = whole_units(shift) + thread * UNIT; at + UNIT <= end; at += THREADS * UNIT)
    visit_unit(at);
  if (thread >= 2 * UNIT || (thread < UNIT && (shift == 0 || end < UNIT))) return;
  const int at = thread < UNIT ? thread : end / UNIT * UNIT + (thread - UNIT);
  if (at >= shift && at < end) visit(at);
}
device_inline int shift_of(const element_t* from) {
  return static_cast<int>(reinterpret_cast<u64>(from) / sizeof(element_t) % UNIT);
}

// Starts copying `count` contiguous elements, 16 bytes at a time. Returns how many elements after
// `area` they begin.
device_inline int start_run(const element_t* from, int count, element_t* area) {
  const int shift = shift_of(from);
  const element_t* const unit = from - shift;
  for_units(
      shift, count, [&](int at) { async_copy<16>(area + at, unit + at, true); },
      [&](int at) { area[at] = unit[at]; });
  return shift;
}

// Stores `count` contiguous elements, 16 bytes at a time, from a copy that begins shift_of(to)
// elements after `area`.
device_inline void store_run(element_t* to, int count, const element_t* area) {
  const int shift = shift_of(to);
  element_t* const unit = to - shift;
  using Unit = Pack<element_t, UNIT>;
  for_units(
      shift, count,
      [&](int at) {
        *reinterpret_cast<Unit*>(unit + at) = *reinterpret_cast<const Unit*>(area + at);
      },
      [&](int at) { unit[at] = area[at]; });
}

// A grid of pixels that a block copies, HEIGHT x WIDTH vectors of channels: row after row, of a
// pixel all lanes. Those in the given ranges exist. ZERO: the others become 0; else they are not
// written.
template <int HEIGHT, int WIDTH, bool ZERO>
struct Grid {
  int first_row, end_row, first_column, end_column;

  // `from`: the place of the first pixel, which need not exist; `left`: channels from there on.
  device_inline void start(const element_t* from, offset_t stride_h, offset_t stride_w,
                           const Access& access, int left, element_t* area) const {
    if (access.aligned)
      start_as<true>(from, stride_h, stride_w, left, area);
    else
      start_as<false>(from, stride_h, stride_w, left, area);
  }

 private:
  // A thread copies the same vector of several rows.
  template <bool ALIGNED>
  device_inline void start_as(const element_t* from, offset_t stride_h, offset_t stride_w, int left,
                              element_t* area) const {
    constexpr int ROW = WIDTH * LANES, AT_ONCE = THREADS / ROW > 1 ? THREADS / ROW : 1;
#pragma unroll 1
    for (int first = thread_x(); first < AT_ONCE * ROW; first += THREADS) {
      const int at = first % ROW, lane = at % LANES, column = at / LANES;
      const bool exists = column >= first_column && column < end_column && lane * VECTOR < left;
      if (!ZERO && !exists) continue;
      const element_t* const vector =
          from + (static_cast<offset_t>(column) * stride_w + lane * VECTOR);
#pragma unroll 4
      for (int row = first / ROW; row < HEIGHT; row += AT_ONCE) {
        const bool present = exists && row >= first_row && row < end_row;
        if (ZERO || present)
          start_vector<ALIGNED>(vector + static_cast<offset_t>(row) * stride_h, present,
                                area + (row * ROW + at) * VECTOR);
      }
    }
  }
  template <bool ALIGNED>
  device_inline static void start_vector(const element_t* from, bool present, element_t* to) {
    constexpr int BYTES =
        sizeof(Gradient) < 4 ? 4 : sizeof(Gradient);  // staged ones have 4 or more
    if constexpr (ALIGNED) {
      async_copy<BYTES>(to, from, present);
      return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) to[i] = present ? from[i] : from_compute<element_t>(0);
  }
};

// The copy of x.
struct Stage {
  const element_t* first;  // where the copy would have the image's first pixel
  offset_t plane = 0;      // with PLANES: how far the second plane is from the first

  // Starts the copies of the tile's channels, of which `x` is the first pixel.
  device_inline Stage(const element_t* x, const Tile& tile, const Access& of_x) {
    const int unclipped = (tile.h / STRIDE_H + FIRST_P) * STRIDE_H - PAD_H;
    const int begin = unclipped < 0 ? 0 : unclipped;
    const int end = least(IN_H, unclipped + (WINDOWS_H - 1) * STRIDE_H + WINDOW_H);
    element_t* const area = stage_area();
    if constexpr (CHANNELS_INNER) {
      const int left_of = (tile.w / STRIDE_W + FIRST_Q) * STRIDE_W - PAD_W;
      const int column = left_of < 0 ? 0 : left_of;
      const int columns = least(IN_W, left_of + (WINDOWS_W - 1) * STRIDE_W + WINDOW_W) - column;
      const Grid<READ_H, READ_W, false> grid{0, end - begin, 0, columns};
      grid.start(x + (static_cast<offset_t>(begin) * X_STRIDE_H +
                      static_cast<offset_t>(column) * X_STRIDE_W),
                 X_STRIDE_H, X_STRIDE_W, of_x, CHANNELS - tile.c, area);
      first = area - (begin * TAP_STRIDE_H + column * TAP_STRIDE_W);
    } else {
      const element_t* const from = x + static_cast<offset_t>(begin) * X_STRIDE_H;
      const int shift = start_run(from, (end - begin) * IN_W, area);
      first = area + (shift - begin * TAP_STRIDE_H);
      if (PLANES && of_x.plane != 0)
        plane = STAGE_PLANE - shift +
                start_run(from + of_x.plane, (end - begin) * IN_W, area + STAGE_PLANE);
    }
  }
};

// The copy of dy's rows.
struct GradientRows {
  const element_t* first = nullptr;  // the place of the tile's first window
  offset_t plane = 0;                // with PLANES: how far the second plane is from the first

  // Starts the copies of the rows of windows from `first_p` on. `dy` is the channel's first output.
  device_inline void start(const element_t* dy, int first_p, const Access& of_dy) {
    const int begin = first_p < 0 ? 0 : first_p, count = least(OUT_H, first_p + WINDOWS_H) - begin;
    const int absent = (begin - first_p) * OUT_W, place = whole_units(ROWS_BEFORE + absent);
    element_t* const area = rows_area();
    const element_t* const from = dy + static_cast<offset_t>(begin) * Y_STRIDE_H;
    const int shift = start_run(from, count * OUT_W, area + place);
    first = area + (place + shift - absent + FIRST_Q);
    if (PLANES && of_dy.plane != 0)
      plane = ROWS_PLANE - shift +
              start_run(from + of_dy.plane, count * OUT_W, area + ROWS_PLANE + place);
  }
};
