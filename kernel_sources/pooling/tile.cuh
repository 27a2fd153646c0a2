// The tile of dx that a block computes, and what it keeps in shared memory.
#pragma once

#include "pooling/window.cuh"

// The first window that may contain one of a range of positions, and the number of such windows.
// They are counted from the window that would begin PAD before the first position. The distance of
// the first position from the previous multiple of the stride is below PHASES.
device_inline constexpr int first_window(int stride, int pad, int window) {
  return -((window - 1 - pad) / stride);
}
device_inline constexpr int count_windows(int places, int phases, int stride, int pad, int window) {
  return (places + phases - 2 + pad) / stride - first_window(stride, pad, window) + 1;
}
constexpr int FIRST_P = first_window(STRIDE_H, PAD_H, WINDOW_H);
constexpr int FIRST_Q = first_window(STRIDE_W, PAD_W, WINDOW_W);
constexpr int WINDOWS_H = count_windows(TILE_H, 1, STRIDE_H, PAD_H, WINDOW_H);
constexpr int WINDOWS_W = count_windows(TILE_W, 1, STRIDE_W, PAD_W, WINDOW_W);
constexpr int PHASES_H = BLOCK_H % STRIDE_H == 0 ? 1 : STRIDE_H;
constexpr int PHASES_W = BLOCK_W % STRIDE_W == 0 ? 1 : STRIDE_W;
constexpr int HOLDERS_H = count_windows(BLOCK_H, PHASES_H, STRIDE_H, PAD_H, WINDOW_H);
constexpr int HOLDERS_W = count_windows(BLOCK_W, PHASES_W, STRIDE_W, PAD_W, WINDOW_W);

// The range of outputs whose windows have a tap in x; other outputs pass no gradient on.
device_inline constexpr int first_output(int stride, int pad, int window) {
  return pad >= window ? (pad - window) / stride + 1 : 0;
}
device_inline constexpr int end_of_outputs(int stride, int pad, int size, int outputs) {
  const int end = size - 1 + pad < 0 ? 0 : (size - 1 + pad) / stride + 1;
  return end < outputs ? end : outputs;
}
constexpr int BEGIN_P = first_output(STRIDE_H, PAD_H, WINDOW_H);
constexpr int BEGIN_Q = first_output(STRIDE_W, PAD_W, WINDOW_W);
constexpr int END_P = end_of_outputs(STRIDE_H, PAD_H, IN_H, OUT_H);
constexpr int END_Q = end_of_outputs(STRIDE_W, PAD_W, IN_W, OUT_W);

// The rows and columns of x that the windows of a tile read.
device_inline constexpr int least(int a, int b) { return a < b ? a : b; }
constexpr int READ_H = least(IN_H, (WINDOWS_H - 1) * STRIDE_H + WINDOW_H);
constexpr int READ_W = least(IN_W, (WINDOWS_W - 1) * STRIDE_W + WINDOW_W);

// With STAGED, a block copies them to shared memory first (stage.cuh): vectors of channels or, of
// planes, whole rows, which are contiguous and of which the first begins as far from a multiple of
// 16 bytes as it does in x.
constexpr int STAGE_W = CHANNELS_INNER ? READ_W : IN_W;
constexpr int UNIT = 16 / sizeof(element_t);
constexpr int STAGE_PLANE = (READ_H * STAGE_W + 2 * UNIT - 2) / UNIT * UNIT;  // elements
constexpr int STAGED_ELEMENTS =
    CHANNELS_INNER ? READ_H * STAGE_W * LANES * VECTOR : STAGE_PLANE * VECTOR;

// The distances of a window's taps, in elements.
constexpr auto TAP_STRIDE_W = STAGED ? (CHANNELS_INNER ? LANES * VECTOR : 1) : X_STRIDE_W;
constexpr auto TAP_STRIDE_H = STAGED ? STAGE_W * TAP_STRIDE_W : X_STRIDE_H;

using Gradient = Pack<element_t, VECTOR>;
using Choice = Pack<unsigned char, VECTOR>;  // each channel's maximal tap, or NO_TAP
constexpr unsigned char NO_TAP = 255;

// Shared memory holds the windows' gradients, then the taps chosen by maxima, or the averages'
// divisors, then the copy of x.
constexpr int WINDOWS = WINDOWS_H * WINDOWS_W * LANES;
constexpr int CHOICES = MODE == MAX ? WINDOWS : 0,
              SHARED_SHARES = SHARES ? WINDOWS_H * WINDOWS_W : 0;
constexpr u32 SECOND_OFFSET = (WINDOWS * sizeof(Gradient) + 15) / 16 * 16;
constexpr u32 STAGE_OFFSET =
    (SECOND_OFFSET + CHOICES * sizeof(Choice) + SHARED_SHARES * sizeof(compute_t) + 15) / 16 * 16;
static_assert(STAGE_OFFSET + (STAGED ? STAGED_ELEMENTS * sizeof(element_t) : 0) == SHARED_BYTES,
              "host and device must agree");

// The part of an image that a block computes.
struct Tile {
  int h, w, c;  // its first position and channel
  i64 n;

  // Block numbers count tiles along the width fastest, then along the height, then channels and
  // images.
  device_inline Tile() {
    const u32 rest = DIVIDE(DIV_TILES_W, block_x());
    w = static_cast<int>(block_x() - rest * DIV_TILES_W) * TILE_W;
    const u32 next = DIVIDE(DIV_TILES_H, rest);
    h = static_cast<int>(rest - next * DIV_TILES_H) * TILE_H;
    const u32 image = DIVIDE(DIV_RUNS, next);
    c = static_cast<int>(next - image * DIV_RUNS) * (VECTOR * LANES);
    n = image;
  }
};
