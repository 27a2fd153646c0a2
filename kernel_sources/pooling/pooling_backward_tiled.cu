// The gradient of pooling in two dimensions with dense windows. A block computes a TILE_H x TILE_W
// tile of dx in VECTOR * LANES channels of one image. The channels of a vector are contiguous or,
// with PLANES, in separate planes.
//
// First the block evaluates each window that reaches into the tile once, in shared memory: the
// gradient that it passes on and, for a maximum, the tap that gets it. With STAGED, what
// the windows read of x is copied to shared memory before. Then each thread adds up a BLOCK_H x
// BLOCK_W block of dx. Tiles and, up to a stride of two, blocks begin at multiples of the stride,
// so the compiler knows which windows contain which position by which tap. Windows are added up in
// the order of the outputs.
#include "pooling/choose.cuh"
#include "pooling/stage.cuh"

// The loop over a block's windows is unrolled as far as the code does not get too long.
constexpr int HOLDERS_UNROLL =
    HOLDERS_H * HOLDERS_W * BLOCK_H * BLOCK_W * VECTOR <= 600 ? HOLDERS_H : 1;

// The windows that reach into a block's tile.
struct Windows {
  const Tile& tile;
  int first_p = tile.h / STRIDE_H + FIRST_P, first_q = tile.w / STRIDE_W + FIRST_Q;
  Gradient* gradients = shared_array<Gradient, WINDOWS>(0);
  Choice* choices = nullptr;
  compute_t* shares = nullptr;

  device_inline explicit Windows(const Tile& of) : tile(of) {
    if constexpr (MODE == MAX) choices = shared_array<Choice, WINDOWS>(SECOND_OFFSET);
    if constexpr (SHARES) shares = shared_array<compute_t, WINDOWS_H * WINDOWS_W>(SECOND_OFFSET);
  }

  // The output of window `at`, and whether it passes a gradient on.
  device_inline bool output(int at, int& p, int& q) const {
    p = first_p + at / WINDOWS_W, q = first_q + at % WINDOWS_W;
    return p >= BEGIN_P && p < END_P && q >= BEGIN_Q && q < END_Q;
  }

  // Chooses the taps of one vector's window; `x` is the place of the tile's first channel.
  device_inline void choose_at(int index, const element_t* x, const Access& access) const {
    const int lane = index % LANES;
    Choice choice;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) choice.element[i] = NO_TAP;
    int p, q;
    if (output(index / LANES, p, q) && tile.c + lane * VECTOR < CHANNELS) {
      const element_t* const from =
          x + lane * static_cast<offset_t>(STAGED ? VECTOR : VECTOR * X_STRIDE_C);
      const Window window(0, p, q);
      choice = STAGED || access.aligned ? choose(from, {true, access.plane}, window)
                                        : choose(from, {false, access.plane}, window);
    }
    choices[index] = choice;
  }

  device_inline void evaluate(const PoolingParams& params) const {
    const element_t* const dy = static_cast<const element_t*>(params.dy) + tile.n * Y_STRIDE_N +
                                static_cast<i64>(tile.c) * Y_STRIDE_C;
    const element_t* const x = static_cast<const element_t*>(params.x) + tile.n * X_STRIDE_N +
                               static_cast<i64>(tile.c) * X_STRIDE_C;
    const int left = CHANNELS - tile.c;
    const Access of_dy = Access::of(params.dy, Y_STRIDE_C, left);
    const Access of_x = Access::of(params.x, X_STRIDE_C, left);
    if constexpr (STAGED) {
      const Stage stage(x, tile, of_x);
      load(dy, of_dy, x, of_x);
      async_wait<0>();
      block_barrier();
#pragma unroll 1
      for (int index = thread_x(); index < WINDOWS; index += THREADS)
        choose_at(index, stage.first, {true, stage.plane});
    } else {
      load(dy, of_dy, x, of_x);
    }
  }

  // Loads what the windows pass on and, unless x is staged, chooses the taps of maxima.
  device_inline void load(const element_t* dy, const Access& of_dy, const element_t* x,
                          const Access& of_x) const {
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
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) gradient[u].element[i] = from_compute<element_t>(0);
        int p, q;
        if ((BATCH > 1 && index >= WINDOWS) || !output(index / LANES, p, q) ||
            tile.c + lane * VECTOR >= CHANNELS)
          continue;
        gradient[u] = load_channels<element_t, VECTOR>(
            dy + (static_cast<offset_t>(p) * Y_STRIDE_H + static_cast<offset_t>(q) * Y_STRIDE_W +
                  lane * static_cast<offset_t>(VECTOR * Y_STRIDE_C)),
            of_dy);
      }
#pragma unroll
      for (int u = 0; u < BATCH; ++u) {
        const int index = first + u * THREADS, lane = index % LANES, at = index / LANES;
        if (BATCH > 1 && index >= WINDOWS) break;
        gradients[index] = gradient[u];
        if constexpr (CHOOSE) choose_at(index, x, of_x);
        int p, q;
        if constexpr (SHARES)
          if (lane == 0)
            shares[at] = output(at, p, q) ? compute_t(1) / compute_t(Window(0, p, q).divisor()) : 0;
      }
    }
  }
};

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
        const Gradient gradient = windows.gradients[at * LANES + lane];
        Choice choice;
        if constexpr (MODE == MAX) choice = windows.choices[at * LANES + lane];
        const compute_t share = SHARES ? windows.shares[at] : compute_t(1);
        // The tap of this window that is at the block's first position.
        const int r0 = phase_h + PAD_H - (p + FIRST_P) * STRIDE_H;
        const int s0 = phase_w + PAD_W - (q + FIRST_Q) * STRIDE_W;
#pragma unroll
        for (int i = 0; i < BLOCK_H; ++i)
#pragma unroll
          for (int j = 0; j < BLOCK_W; ++j) {
            const int r = r0 + i, s = s0 + j;
            if (r < 0 || r >= WINDOW_H || s < 0 || s >= WINDOW_W) continue;
#pragma unroll
            for (int k = 0; k < VECTOR; ++k) {
              const compute_t value = to_compute(gradient.element[k]);
              if constexpr (MODE != MAX)
                sums[i][j][k] += SHARES ? value * share : value;
              else if (choice.element[k] == r * WINDOW_W + s)
                sums[i][j][k] += value;
            }
          }
      }
  }
};

// Stores COUNT contiguous elements of dx.
template <int COUNT>
device_inline void finish(element_t* to, bool aligned, compute_t alpha, compute_t beta,
                          compute_t (&sums)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) sums[i] *= alpha;
  if (beta != compute_t(0)) {
    compute_t before[COUNT];
    load_vector(to, aligned, before);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sums[i] += beta * before[i];
  }
  store_vector(to, aligned, sums);
}

// Whether a block's row in one channel is stored by one access: it is contiguous and aligned.
constexpr bool SINGLE = VECTOR == 1 || PLANES, ALONG_W = SINGLE && ROWS_ALIGNED;
device_inline void finish_line(element_t* to, int left, bool aligned, compute_t alpha,
                               compute_t beta, compute_t (&sums)[BLOCK_W]) {
  if constexpr (ALONG_W) {
    finish(to, aligned, alpha, beta, sums);
    return;
  }
#pragma unroll
  for (int j = 0; j < BLOCK_W; ++j) {
    if (j > 0 && j >= left) break;
    compute_t sum[1] = {sums[j]};
    finish(to + j * OUT_STRIDE_W, true, alpha, beta, sum);
  }
}

KILN_KERNEL(pooling_backward_tiled, 256, MIN_BLOCKS, PoolingParams, params) {
  const Tile tile;
  const Windows windows(tile);
  windows.evaluate(params);
  block_barrier();

  // If all windows of an average have the same divisor, alpha includes it.
  constexpr compute_t SHARE =
      MODE == MAX || SHARES ? compute_t(1) : compute_t(1) / compute_t(WINDOW_H * WINDOW_W);
  const compute_t alpha = static_cast<compute_t>(params.alpha) * SHARE;
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const dx = static_cast<element_t*>(params.out) + tile.n * OUT_STRIDE_N +
                        static_cast<i64>(tile.c) * OUT_STRIDE_C;
  constexpr int BLOCKS_H = TILE_H / BLOCK_H, BLOCKS_W = TILE_W / BLOCK_W;
  constexpr int ACCESS = ALONG_W ? BLOCK_W : SINGLE ? 1 : VECTOR;
  const bool aligned = is_aligned<element_t, ACCESS>(params.out);
#pragma unroll 1
  for (int index = thread_x(); index < BLOCKS_H * BLOCKS_W * LANES; index += THREADS) {
    const int lane = index % LANES, at = index / LANES;
    const int in_h = at / BLOCKS_W * BLOCK_H, in_w = at % BLOCKS_W * BLOCK_W;
    const int h = tile.h + in_h, w = tile.w + in_w;
    if (h >= IN_H || w >= IN_W || tile.c + lane * VECTOR >= CHANNELS) continue;
    Block block;
    block.add_up(in_h, in_w, lane, windows);
    element_t* const to =
        dx + (static_cast<offset_t>(h) * OUT_STRIDE_H + static_cast<offset_t>(w) * OUT_STRIDE_W +
              lane * static_cast<offset_t>(VECTOR * OUT_STRIDE_C));
#pragma unroll
    for (int i = 0; i < BLOCK_H; ++i) {
      if (i > 0 && h + i >= IN_H) break;
      element_t* const row = to + i * OUT_STRIDE_H;
      if constexpr (SINGLE) {
#pragma unroll
        for (int k = 0; k < VECTOR; ++k) {
          if (k > 0 && tile.c + k >= CHANNELS) break;
          compute_t line[BLOCK_W];
#pragma unroll
          for (int j = 0; j < BLOCK_W; ++j) line[j] = block.sums[i][j][k];
          finish_line(row + k * OUT_STRIDE_C, IN_W - w, aligned, alpha, beta, line);
        }
      } else {
#pragma unroll
        for (int j = 0; j < BLOCK_W; ++j)
          if (j == 0 || w + j < IN_W)
            finish(row + j * OUT_STRIDE_W, aligned, alpha, beta, block.sums[i][j]);
      }
    }
  }
}
