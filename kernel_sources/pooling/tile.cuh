// The tile of dx that a block computes, and what it keeps in shared memory.
#pragma once

#include "pooling/window.cuh"
#include "target/shared_memory.cuh"

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

// With STAGED, a block copies what it reads to shared memory first (stage.cuh): vectors of channels
// or, of planes, whole rows, which are contiguous and of which the first begins as far from a
// multiple of 16 bytes as it does in its tensor.
constexpr bool STAGED_X = STAGED && MODE == MAX;
constexpr int STAGE_W = CHANNELS_INNER ? READ_W : IN_W;
constexpr int UNIT = 16 / sizeof(element_t);
device_inline constexpr int whole_units(int elements) {
  return (elements + UNIT - 1) / UNIT * UNIT;
}

// Contiguous rows of dx are stored from a copy, too, in whole lines of memory. It takes the place
// of x's copy, which is not needed any more then.
constexpr bool DX_ROWS =
    STAGED && !CHANNELS_INNER && OUT_STRIDE_W == 1 && (OUT_STRIDE_H == IN_W || IN_H == 1);
constexpr int X_STAGE_H = STAGED_X ? READ_H : 0, DX_STAGE_H = DX_ROWS ? least(TILE_H, IN_H) : 0;
constexpr int STAGE_H = X_STAGE_H > DX_STAGE_H ? X_STAGE_H : DX_STAGE_H;
constexpr int STAGE_PLANE = STAGE_H > 0 ? whole_units(STAGE_H* STAGE_W + UNIT - 1) : 0;  // elements
constexpr int STAGED_ELEMENTS =
    CHANNELS_INNER ? X_STAGE_H * STAGE_W * LANES * VECTOR : STAGE_PLANE * VECTOR;

// dy's rows, where they are contiguous, are read in their copy; rows and elements that do not exist
// have their places in it. ROWS_BEFORE: those before the first row that exists.
constexpr bool DY_ROWS =
    STAGED && !CHANNELS_INNER && Y_STRIDE_W == 1 && (Y_STRIDE_H == OUT_W || OUT_H == 1);
constexpr bool DY_VECTORS = STAGED && CHANNELS_INNER;
constexpr int ROWS_BEFORE = FIRST_Q < 0 ? -FIRST_Q : 0;
constexpr int ROW_END = FIRST_Q + WINDOWS_W < OUT_W ? OUT_W : FIRST_Q + WINDOWS_W;
constexpr int ROWS_PLANE =
    whole_units(ROWS_BEFORE + 2 * (UNIT - 1) + (WINDOWS_H - 1) * OUT_W + ROW_END);  // elements
constexpr int ROWS_ELEMENTS = DY_ROWS ? ROWS_PLANE * VECTOR : 0;

// The distances of a window's taps, in elements.
constexpr auto TAP_STRIDE_W = STAGED_X ? (CHANNELS_INNER ? LANES * VECTOR : 1) : X_STRIDE_W;
constexpr auto TAP_STRIDE_H = STAGED_X ? STAGE_W * TAP_STRIDE_W : X_STRIDE_H;

// Each channel's maximal tap, or NO_TAP. Channels that are compared in pairs, which halves
// registers and comparisons, keep their taps in pairs.
constexpr bool PAIRS = MODE == MAX && sizeof(element_t) == 2 && VECTOR % 2 == 0;
template <bool>
struct ChoiceOf {
  using type = Pack<unsigned char, VECTOR>;
};
template <>
struct ChoiceOf<true> {
  using type = Pack<u32, (VECTOR + 1) / 2>;
};
using Choice = ChoiceOf<PAIRS>::type;
using Gradient = Pack<element_t, VECTOR>;
constexpr u32 NO_TAP = 255;

// Shared memory holds the windows' gradients, then the taps chosen by maxima, or the averages'
// divisors, then the copies of x and of dy's rows.
constexpr int WINDOWS = WINDOWS_H * WINDOWS_W * LANES;
constexpr int GRADIENTS = DY_ROWS ? 0 : WINDOWS, CHOICES = MODE == MAX ? WINDOWS : 0,
              SHARED_SHARES = SHARES ? WINDOWS_H * WINDOWS_W : 0;
constexpr u32 SECOND_OFFSET = (GRADIENTS * sizeof(Gradient) + 15) / 16 * 16;
constexpr u32 STAGE_OFFSET =
    (SECOND_OFFSET + CHOICES * sizeof(Choice) + SHARED_SHARES * sizeof(compute_t) + 15) / 16 * 16;
constexpr u32 ROWS_OFFSET = (STAGE_OFFSET + STAGED_ELEMENTS * sizeof(element_t) + 15) / 16 * 16;
static_assert(ROWS_OFFSET + ROWS_ELEMENTS * sizeof(element_t) == SHARED_BYTES,
              "host and device must agree");

// The copies; a kernel without them does not call these.
device_inline element_t* stage_area() {
  return shared_array<element_t, (STAGED_ELEMENTS > 0 ? STAGED_ELEMENTS : 1)>(STAGE_OFFSET);
}
device_inline element_t* rows_area() {
  return shared_array<element_t, (ROWS_ELEMENTS > 0 ? ROWS_ELEMENTS : 1)>(ROWS_OFFSET);
}

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

// Calls visit(row, column, lane) for a grid of vectors of channels, shared among the block's
// threads. Where that leaves few threads idle, a thread takes the same column of several rows, so
// that the loop divides nothing.
template <int HEIGHT, int WIDTH, class Visit>
device_inline void for_vectors(const Visit& visit) {
  constexpr int ROW = WIDTH * LANES, AT_ONCE = THREADS / ROW;
  const int thread = thread_x();
  if constexpr (AT_ONCE * ROW * 8 >= THREADS * 7) {
    if (thread >= AT_ONCE * ROW) return;
#pragma unroll 1
    for (int row = thread / ROW; row < HEIGHT; row += AT_ONCE)
      visit(row, thread % ROW / LANES, thread % LANES);
  } else {
#pragma unroll 1
    for (int at = thread; at < HEIGHT * ROW; at += THREADS)
      visit(at / ROW, at / LANES % WIDTH, at % LANES);
  }
}
