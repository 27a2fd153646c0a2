// Pooling. A thread computes ROWS outputs in a column, of one channel or, with channels innermost,
// of VECTOR channels. A row of x that several of its outputs need is read once, and reduced along
// the width once. Of 16-bit planes, it computes COLUMNS = 2 neighbors in each row, and reads two
// neighboring elements at a time.
#include "pooling/window.cuh"

constexpr int UNION_H = (ROWS - 1) * STRIDE_H + WINDOW_H;  // rows of x, DILATION_H apart
static_assert(ROWS == 1 || DILATION_H == 1);
constexpr int UNROLL_H = UNION_H * WINDOW_W <= 64 ? UNION_H : 1;
constexpr int UNROLL_W = WINDOW_W <= 8 ? WINDOW_W : 4;

// Contiguous elements of a row of outputs.
constexpr int LINE = COLUMNS * VECTOR;
static_assert(COLUMNS == 1 || (COLUMNS == 2 && VECTOR == 1 && DILATION_W == 1));
// The columns of x that a thread's outputs read begin SKIPPED elements after an even one.
constexpr int UNION_W = (COLUMNS - 1) * STRIDE_W + WINDOW_W, SKIPPED = PAD_W & 1;

device_inline compute_t nothing() {
  return MODE == MAX ? -math_infinity<compute_t>() : compute_t(0);
}

device_inline compute_t combine(compute_t a, compute_t b) {
  if constexpr (MODE != MAX) return a + b;
  return PROPAGATE_NAN ? math_max_nan(a, b) : math_max(a, b);
}

// The reduction of a row of taps, the first of which is at `row`.
template <int COUNT>
device_inline void join_channels(const element_t* row, bool aligned, const Taps& taps,
                                 compute_t (&joined)[COUNT]) {
#pragma unroll UNROLL_W
  for (int s = 0; s < WINDOW_W; ++s) {
    if (!INSIDE && (s < taps.begin || s >= taps.end)) continue;
    compute_t value[COUNT];
    load_vector(row + static_cast<offset_t>(s) * (DILATION_W * X_STRIDE_W), aligned, value);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) joined[i] = combine(joined[i], value[i]);
  }
}

// Those of neighboring outputs; `taps` are the first one's. x has an even number of columns, so two
// neighbors are both inside it or both outside. The row's first two elements are loaded instead of
// those outside: a branch would keep the compiler from issuing all loads together.
template <int COUNT>
device_inline void join_neighbors(const element_t* row, bool aligned, const Taps& taps,
                                  compute_t (&joined)[COUNT]) {
  compute_t value[UNION_W + 2];  // from SKIPPED elements before the first tap on
#pragma unroll
  for (int i = 0; i < SKIPPED + UNION_W; i += 2) {
    const int w = taps.first - SKIPPED + i;
    const bool exist = INSIDE || (w >= 0 && w < IN_W);
    compute_t two[2];
    load_vector(row + (exist ? i - SKIPPED : -taps.first), aligned, two);
    value[i] = exist ? two[0] : nothing(), value[i + 1] = exist ? two[1] : nothing();
  }
#pragma unroll
  for (int c = 0; c < COUNT; ++c)
#pragma unroll
    for (int s = 0; s < WINDOW_W; ++s)
      joined[c] = combine(joined[c], value[SKIPPED + c * STRIDE_W + s]);
}

struct Outputs {
  compute_t result[ROWS][LINE];

  // Reduces a row of taps, the first of which is at `row`, into the outputs that need it.
  // `exists`: whether it is a row of x.
  device_inline void add_row(const element_t* row, bool exists, bool aligned, const Taps& taps,
                             int r) {
    compute_t joined[LINE];
#pragma unroll
    for (int i = 0; i < LINE; ++i) joined[i] = nothing();
    if constexpr (COLUMNS > 1)
      join_neighbors(row, aligned, taps, joined);
    else
      join_channels(row, aligned, taps, joined);
#pragma unroll
    for (int i = 0; i < LINE; ++i)
      if (!exists) joined[i] = nothing();
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
      if (r >= o * STRIDE_H && r < o * STRIDE_H + WINDOW_H)
#pragma unroll
        for (int i = 0; i < LINE; ++i) result[o][i] = combine(result[o][i], joined[i]);
  }

  device_inline void add_all(const element_t* x, bool aligned, const Window& window) {
#pragma unroll
    for (int o = 0; o < ROWS; ++o)
#pragma unroll
      for (int i = 0; i < LINE; ++i) result[o][i] = nothing();
#pragma unroll 1
    for (int t = window.d.begin; t < window.d.end; ++t) {
      const element_t* const plane =
          x + static_cast<offset_t>(window.d.first + t * DILATION_D) * X_STRIDE_D +
          static_cast<offset_t>(window.w.first) * X_STRIDE_W;
#pragma unroll UNROLL_H
      for (int r = 0; r < UNION_H; ++r) {
        int h = window.h.first + r * DILATION_H;
        const bool exists = INSIDE || (h >= 0 && h < IN_H);
        if (COLUMNS == 1 && !exists) continue;
        // Any row may be read instead of one that does not exist. With INSIDE, those below x's last
        // one belong only to outputs that do not exist.
        if (COLUMNS > 1 && h < 0) h = 0;
        if ((COLUMNS > 1 || (INSIDE && r >= WINDOW_H)) && h >= IN_H) h = IN_H - 1;
        add_row(plane + static_cast<offset_t>(h) * X_STRIDE_H, exists, aligned, window.w, r);
      }
    }
  }

  // `q`: the first output's column.
  device_inline void finish(int o, element_t* y, bool aligned, int d, int p, int q, compute_t alpha,
                            compute_t beta) {
#pragma unroll
    for (int i = 0; i < LINE; ++i) {
      if constexpr (MODE != MAX) {
        const int divisor = Window(d, p, q + i / VECTOR).divisor();
        result[o][i] *= divisor == 0 ? compute_t(0) : compute_t(1) / compute_t(divisor);
      }
      result[o][i] *= alpha;
    }
    if (beta != compute_t(0)) {
      compute_t before[LINE];
      load_vector(y, aligned, before);
#pragma unroll
      for (int i = 0; i < LINE; ++i) result[o][i] += beta * before[i];
    }
    store_vector(y, aligned, result[o]);
  }
};

KILN_KERNEL(pooling_forward, 256, 4, PoolingParams, params) {
  const Place place = thread_place();
  if (place.n >= params.images) return;
  const int first_p = place.h * ROWS, q = place.w * COLUMNS;
  const element_t* const x = static_cast<const element_t*>(params.x) + place.n * X_STRIDE_N +
                             static_cast<i64>(place.c) * (CHANNELS_INNER ? VECTOR : X_STRIDE_C);
  const Window window(place.d, first_p, q);

  Outputs outputs;
  // The branch is around all loads, so that they are issued together.
  if (LINE == 1 || is_aligned<element_t, LINE>(params.x))
    outputs.add_all(x, true, window);
  else
    outputs.add_all(x, false, window);

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const y = static_cast<element_t*>(params.out) + place.n * OUT_STRIDE_N +
                       static_cast<i64>(place.c) * (CHANNELS_INNER ? VECTOR : OUT_STRIDE_C) +
                       static_cast<i64>(place.d) * OUT_STRIDE_D +
                       static_cast<i64>(first_p) * OUT_STRIDE_H +
                       static_cast<i64>(q) * OUT_STRIDE_W;
  const bool y_aligned = is_aligned<element_t, LINE>(params.out);
#pragma unroll
  for (int o = 0; o < ROWS; ++o) {
    if (ROWS > 1 && first_p + o >= OUT_H) return;
    outputs.finish(o, y + o * OUT_STRIDE_H, y_aligned, place.d, first_p + o, q, alpha, beta);
  }
}
