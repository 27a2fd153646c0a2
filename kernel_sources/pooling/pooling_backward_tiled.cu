// The gradient of pooling in two dimensions with dense windows. A block computes a TILE_H x TILE_W
// tile of dx in VECTOR * LANES channels of one image. The channels of a vector are contiguous or,
// with PLANES, in separate planes.
//
// First the block evaluates each window that reaches into the tile once, in shared memory: the
// gradient that it passes on and, for a maximum, the tap that gets it. With STAGED, dy and what
// the windows read of x are copied to shared memory before. Then each thread adds up a BLOCK_H x
// BLOCK_W block of dx. Tiles and, up to a stride of two, blocks begin at multiples of the stride,
// so the compiler knows which windows contain which position by which tap. Windows are added up in
// the order of the outputs.
#include "pooling/choose.cuh"
#include "pooling/stage.cuh"

// An access to dx has a vector of channels or, of a single channel, STORED elements of a row.
constexpr bool SINGLE = VECTOR == 1 || PLANES;
constexpr int STORED = SINGLE ? ROW_ACCESS : VECTOR;
static_assert(BLOCK_W % ROW_ACCESS == 0);
static_assert(!DX_ROWS || sizeof(element_t) > 2 || STORED <= 2,
              "store_vector() stores longer vectors of 16 bits to global memory alone");

// The loop over a block's windows is unrolled as far as the code does not get too long.
constexpr int HOLDERS_UNROLL =
    HOLDERS_H * HOLDERS_W * BLOCK_H * BLOCK_W * VECTOR <= 600 ? HOLDERS_H : 1;

// The windows that reach into a block's tile.
struct Windows {
  const Tile& tile;
  int first_p = tile.h / STRIDE_H + FIRST_P, first_q = tile.w / STRIDE_W + FIRST_Q;
  Gradient* gradients = nullptr;
  GradientRows rows;  // with DY_ROWS, instead of gradients
  Choice* choices = nullptr;
  compute_t* shares = nullptr;

  device_inline explicit Windows(const Tile& of) : tile(of) {
    if constexpr (!DY_ROWS) gradients = shared_array<Gradient, WINDOWS>(0);
    if constexpr (MODE == MAX) choices = shared_array<Choice, WINDOWS>(SECOND_OFFSET);
    if constexpr (SHARES) shares = shared_array<compute_t, WINDOWS_H * WINDOWS_W>(SECOND_OFFSET);
  }

  // Whether the window in this row and column passes a gradient on.
  device_inline bool passes_on(int row, int column) const {
    const int p = first_p + row, q = first_q + column;
    return p >= BEGIN_P && p < END_P && q >= BEGIN_Q && q < END_Q;
  }

  // Chooses the taps of one vector's window; `x` is the place of the tile's first channel.
  device_inline void choose_at(int row, int column, int lane, const element_t* x,
                               const Access& access) const {
    Choice choice;
#pragma unroll
    for (auto& taps : choice.element) taps = PAIRS ? NO_TAP * 0x10001u : NO_TAP;
    if (passes_on(row, column) && tile.c + lane * VECTOR < CHANNELS) {
      const element_t* const from =
          x + lane * static_cast<offset_t>(STAGED ? VECTOR : VECTOR * X_STRIDE_C);
      const Window window(0, first_p + row, first_q + column);
      choice = STAGED || access.aligned ? choose(from, {true, access.plane}, window)
                                        : choose(from, {false, access.plane}, window);
    }
    choices[(row * WINDOWS_W + column) * LANES + lane] = choice;
  }

  device_inline void evaluate(const PoolingParams& params) {
    const element_t* const dy = static_cast<const element_t*>(params.dy) + tile.n * Y_STRIDE_N +
                                static_cast<i64>(tile.c) * Y_STRIDE_C;
    const element_t* const x = static_cast<const element_t*>(params.x) + tile.n * X_STRIDE_N +
                               static_cast<i64>(tile.c) * X_STRIDE_C;
    const int left = CHANNELS - tile.c;
    const Access of_dy = Access::of(params.dy, Y_STRIDE_C, left);
    const Access of_x = Access::of(params.x, X_STRIDE_C, left);
    if constexpr (STAGED_X) {
      const Stage stage(x, tile, of_x);
      load(dy, of_dy, x, of_x);
      async_commit();
      async_wait<0>();
      block_barrier();
      for_vectors<WINDOWS_H, WINDOWS_W>([&](int row, int column, int lane) {
        choose_at(row, column, lane, stage.first, {true, stage.plane});
      });
    } else {
      load(dy, of_dy, x, of_x);
      async_commit();
      async_wait<0>();
    }
    if constexpr (SHARES)
      for (int at = thread_x(); at < WINDOWS_H * WINDOWS_W; at += THREADS) {
        const int row = at / WINDOWS_W, column = at % WINDOWS_W;
        shares[at] =
            passes_on(row, column)
                ? compute_t(1) / compute_t(Window(0, first_p + row, first_q + column).divisor())
                : 0;
      }
  }

  // Loads what the windows pass on, or starts copying it. Unless x is staged, chooses the taps of
  // maxima.
  device_inline void load(const element_t* dy, const Access& of_dy, const element_t* x,
                          const Access& of_x) {
    if constexpr (DY_ROWS) {
      rows.start(dy, first_p, of_dy);
      return;
    }
    if constexpr (DY_VECTORS) {
      // A window without a tap gives its gradient to none, so a maximum's need not be zero.
      const Grid<WINDOWS_H, WINDOWS_W, MODE != MAX> grid{BEGIN_P - first_p, END_P - first_p,
                                                         BEGIN_Q - first_q, END_Q - first_q};
      grid.start(dy + (static_cast<offset_t>(first_p) * Y_STRIDE_H +
                       static_cast<offset_t>(first_q) * Y_STRIDE_W),
                 Y_STRIDE_H, Y_STRIDE_W, of_dy, CHANNELS - tile.c, gradients->element);
      return;
    }
    // A maximum loads many taps at a time. Otherwise only the gradient is loaded, of several
    // windows at a time.
    constexpr bool CHOOSE = MODE == MAX && !STAGED;
    constexpr int BATCH = CHOOSE ? 1 : STAGED && sizeof(Gradient) <= 4 ? 8 : 4;
#pragma unroll 1
    for (int first = thread_x(); first < WINDOWS; first += BATCH * THREADS) {
      Gradient gradient[BATCH];
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const int index = first + u * THREADS, lane = index % LANES;
        const int row = index / LANES / WINDOWS_W, column = index / LANES % WINDOWS_W;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) gradient[u].element[i] = from_compute<element_t>(0);
        if ((BATCH > 1 && index >= WINDOWS) || !passes_on(row, column) ||
            tile.c + lane * VECTOR >= CHANNELS)
          continue;
        gradient[u] = load_channels<element_t, VECTOR>(
            dy + (static_cast<offset_t>(first_p + row) * Y_STRIDE_H +
                  static_cast<offset_t>(first_q + column) * Y_STRIDE_W +
                  lane * static_cast<offset_t>(VECTOR * Y_STRIDE_C)),
            of_dy);
      }
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const int index = first + u * THREADS, at = index / LANES;
        if (BATCH > 1 && index >= WINDOWS) break;
        gradients[index] = gradient[u];
        if constexpr (CHOOSE) choose_at(at / WINDOWS_W, at % WINDOWS_W, index % LANES, x, of_x);
      }
    }
  }

  // The gradient of the window in this row and column.
  device_inline void gradient(int row, int column, int lane, compute_t (&value)[VECTOR]) const {
    if constexpr (DY_ROWS) {
      const bool exists = MODE == MAX || passes_on(row, column);
      const element_t* const at = rows.first + (row * OUT_W + column);
#pragma unroll
      for (int k = 0; k < VECTOR; ++k)
        value[k] = exists ? to_compute(at[k * rows.plane]) : compute_t(0);
      return;
    }
    const Gradient own = gradients[(row * WINDOWS_W + column) * LANES + lane];
#pragma unroll
    for (int k = 0; k < VECTOR; ++k) value[k] = to_compute(own.element[k]);
  }
};

// Adds a window's gradients to the sums of one position, its tap `tap`.
template <class C>
device_inline void add_chosen(const Pack<unsigned char, VECTOR>& choice, int tap,
                              const C (&value)[VECTOR], C (&sums)[VECTOR]) {
#pragma unroll
  for (int k = 0; k < VECTOR; ++k)
    if (choice.element[k] == tap) sums[k] += value[k];
}
template <int COUNT>
device_inline void add_chosen(const Pack<u32, COUNT>& choice, int tap, const float (&value)[VECTOR],
                              float (&sums)[VECTOR]) {
#pragma unroll
  for (int k = 0; k < COUNT; ++k)
    add_where_equal(choice.element[k], static_cast<u32>(tap) * 0x10001u, value[2 * k],
                    value[2 * k + 1], sums[2 * k], sums[2 * k + 1]);
}

// A block of dx: its sums and their store.
struct Block {
  compute_t sums[BLOCK_H][BLOCK_W][VECTOR];

  // Adds up the block that begins at row `h` and column `w` of the tile.
  device_inline void add_up(int h, int w, int lane, const Windows& windows) {
    // The distance from the previous multiple of the stride; 0 if blocks begin at multiples.
    const int phase_h = PHASES_H == 1 ? 0 : h % STRIDE_H;
    const int phase_w = PHASES_W == 1 ? 0 : w % STRIDE_W;
    const int row = h / STRIDE_H, column = w / STRIDE_W;
#pragma unroll
    for (int i = 0; i < BLOCK_H; ++i)
#pragma unroll
      for (int j = 0; j < BLOCK_W; ++j)
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) sums[i][j][k] = 0;
#pragma unroll HOLDERS_UNROLL
    for (int p = 0; p < HOLDERS_H; ++p)
#pragma unroll
      for (int q = 0; q < HOLDERS_W; ++q) {
        const int at = (row + p) * WINDOWS_W + column + q;
        compute_t value[VECTOR];
        windows.gradient(row + p, column + q, lane, value);
        Choice choice;
        if constexpr (MODE == MAX) choice = windows.choices[at * LANES + lane];
        if constexpr (SHARES) {
          const compute_t share = windows.shares[at];
#pragma unroll
          for (int k = 0; k < VECTOR; ++k) value[k] *= share;
        }
        // The tap of this window that is at the block's first position.
        const int r0 = phase_h + PAD_H - (p + FIRST_P) * STRIDE_H;
        const int s0 = phase_w + PAD_W - (q + FIRST_Q) * STRIDE_W;
#pragma unroll
        for (int i = 0; i < BLOCK_H; ++i)
#pragma unroll
          for (int j = 0; j < BLOCK_W; ++j) {
            const int r = r0 + i, s = s0 + j;
            if (r < 0 || r >= WINDOW_H || s < 0 || s >= WINDOW_W) continue;
            if constexpr (MODE == MAX) {
              add_chosen(choice, r * WINDOW_W + s, value, sums[i][j]);
            } else {
#pragma unroll
              for (int k = 0; k < VECTOR; ++k) sums[i][j][k] += value[k];
            }
          }
      }
  }

  // Calls visit(place, sums) for each access to dx: its place after the block's first element and
  // its STORED sums. `rows`, `columns`, `channels`: what is left of the tensor from that element
  // on; `plane`: how far the next channel is.
  template <class Visit>
  device_inline void for_accesses(int rows, int columns, int channels, offset_t plane,
                                  const Visit& visit) {
#pragma unroll
    for (int i = 0; i < BLOCK_H; ++i) {
      if (i > 0 && i >= rows) break;
#pragma unroll
      for (int k = 0; k < VECTOR; k += SINGLE ? 1 : VECTOR) {
        if (k > 0 && k >= channels) break;
#pragma unroll
        for (int j = 0; j < BLOCK_W; j += SINGLE ? STORED : 1) {
          if (j > 0 && j >= columns) break;
          compute_t* access[STORED];
#pragma unroll
          for (int l = 0; l < STORED; ++l)
            access[l] = SINGLE ? &sums[i][j + l][k] : &sums[i][j][k + l];
          visit(i * OUT_STRIDE_H + j * OUT_STRIDE_W + k * plane, access);
        }
      }
    }
  }

  // dx = alpha * sums + beta * dx.
  template <bool ALIGNED>
  device_inline void finish(element_t* dx, int rows, int columns, int channels, offset_t plane,
                            compute_t alpha, compute_t beta) {
#pragma unroll
    for (int i = 0; i < BLOCK_H; ++i)
#pragma unroll
      for (int j = 0; j < BLOCK_W; ++j)
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) sums[i][j][k] *= alpha;
    if (beta != compute_t(0))
      for_accesses(rows, columns, channels, plane,
                   [&](offset_t place, compute_t* const(&sum)[STORED]) {
                     compute_t before[STORED];
                     load_vector(dx + place, ALIGNED, before);
#pragma unroll
                     for (int l = 0; l < STORED; ++l) *sum[l] += beta * before[l];
                   });
    for_accesses(rows, columns, channels, plane,
                 [&](offset_t place, compute_t* const(&sum)[STORED]) {
                   compute_t out[STORED];
#pragma unroll
                   for (int l = 0; l < STORED; ++l) out[l] = *sum[l];
                   store_vector(dx + place, ALIGNED, out);
                 });
  }
};

// Computes the tile in blocks. `dx`: the place of the tile's first element, `plane`: how far the
// next channel is, in dx or in the copy of its rows.
template <bool ALIGNED>
device_inline void add_up_tile(const Tile& tile, const Windows& windows, element_t* dx,
                               offset_t plane, compute_t alpha, compute_t beta) {
  for_vectors<TILE_H / BLOCK_H, TILE_W / BLOCK_W>([&](int row, int column, int lane) {
    const int in_h = row * BLOCK_H, in_w = column * BLOCK_W;
    const int rows = IN_H - tile.h - in_h, columns = IN_W - tile.w - in_w,
              channels = CHANNELS - tile.c - lane * VECTOR;
    if (rows <= 0 || columns <= 0 || channels <= 0) return;
    Block block;
    block.add_up(in_h, in_w, lane, windows);
    element_t* const to = dx + (static_cast<offset_t>(in_h) * OUT_STRIDE_H +
                                static_cast<offset_t>(in_w) * OUT_STRIDE_W +
                                lane * static_cast<offset_t>(VECTOR * OUT_STRIDE_C));
    block.finish<ALIGNED>(to, rows, columns, channels, plane, alpha, beta);
  });
}

// Computes the tile into a copy of its rows, and stores that.
template <bool ALIGNED>
device_inline void add_up_rows(const Tile& tile, const Windows& windows, element_t* dx,
                               compute_t alpha) {
  element_t* const area = stage_area();
  const int count = least(TILE_H, IN_H - tile.h) * IN_W;
  element_t* const second = dx + OUT_STRIDE_C;
  add_up_tile<ALIGNED>(tile, windows, area + shift_of(dx),
                       STAGE_PLANE + shift_of(second) - shift_of(dx), alpha, 0);
  block_barrier();
  store_run(dx, count, area);
  if (PLANES && tile.c + 1 < CHANNELS) store_run(second, count, area + STAGE_PLANE);
}

template <bool ALIGNED>
device_inline void compute(const PoolingParams& params, const Tile& tile, const Windows& windows) {
  // If all windows of an average have the same divisor, alpha includes it.
  constexpr compute_t SHARE =
      MODE == MAX || SHARES ? compute_t(1) : compute_t(1) / compute_t(WINDOW_H * WINDOW_W);
  const compute_t alpha = static_cast<compute_t>(params.alpha) * SHARE;
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const dx =
      static_cast<element_t*>(params.out) + tile.n * OUT_STRIDE_N +
      static_cast<i64>(tile.c) * OUT_STRIDE_C +
      (static_cast<offset_t>(tile.h) * OUT_STRIDE_H + static_cast<offset_t>(tile.w) * OUT_STRIDE_W);
  if constexpr (DX_ROWS)
    if (beta == compute_t(0)) {
      add_up_rows<ALIGNED>(tile, windows, dx, alpha);
      return;
    }
  add_up_tile<ALIGNED>(tile, windows, dx, OUT_STRIDE_C, alpha, beta);
}

KILN_KERNEL(pooling_backward_tiled, 256, MIN_BLOCKS, PoolingParams, params) {
  const Tile tile;
  Windows windows(tile);
  windows.evaluate(params);
  block_barrier();
  if (STORED == 1 || is_aligned<element_t, STORED>(params.out))
    compute<true>(params, tile, windows);
  else
    compute<false>(params, tile, windows);
}
