// The filter gradient of a locally connected layer. A block computes BLOCK_ROWS filters by
// BLOCK_COLUMNS columns (channels and taps, in the weights' order) of dw at one output pixel: the
// outer product of dy and of the elements of x that the pixel reads, summed over the images that
// share the weights. Each element of dw is written once, in vectors of contiguous elements.
//
// Both factors of IMAGES images at a time are loaded into shared memory in the compute type: x as
// [image][column], dy as [image][filter]. A thread keeps the sums of THREAD_ROWS filters by
// THREAD_COLUMNS columns. Threads run along the columns or, if filters are innermost (ROWS_INNER),
// along the filters.
#include "common/vector.cuh"
#include "local/filter_order.cuh"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = ROW_THREADS * COLUMN_THREADS;
constexpr int BLOCK_ROWS = ROW_THREADS * THREAD_ROWS;
constexpr int BLOCK_COLUMNS = COLUMN_THREADS * THREAD_COLUMNS;

struct alignas(16) Quad {
  compute_t element[16 / sizeof(compute_t)];
};
template <int COUNT>
device_inline void read_shared(const compute_t* from, compute_t (&to)[COUNT]) {
  constexpr int QUAD = static_cast<int>(16 / sizeof(compute_t));
  if constexpr (COUNT % QUAD == 0) {
#pragma unroll
    for (int i = 0; i < COUNT; i += QUAD) {
      const Quad quad = *reinterpret_cast<const Quad*>(from + i);
#pragma unroll
      for (int e = 0; e < QUAD; ++e) to[i + e] = quad.element[e];
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) to[i] = from[i];
  }
}

KILN_KERNEL(wgrad_local_fma, ROW_THREADS* COLUMN_THREADS, MIN_BLOCKS, LocalParams, params) {
  compute_t* const window = shared_array<compute_t, IMAGES * BLOCK_COLUMNS>(0);
  compute_t* const gradient = shared_array<compute_t, IMAGES * BLOCK_ROWS>(GRADIENT_OFFSET);

  u32 rest = block_x();
  u32 next = rest / COLUMN_BLOCKS;
  const int column_block = static_cast<int>(rest - next * COLUMN_BLOCKS);
  rest = next;
  next = rest / ROW_BLOCKS;
  const int row_block = static_cast<int>(rest - next * ROW_BLOCKS);
  rest = next;
  next = rest / GROUPS;
  const int group = static_cast<int>(rest - next * GROUPS);
  rest = next;
  next = rest / PIXELS;
  const Place pixel = pixel_of(rest - next * PIXELS);
  // The image, if each has its own weights; else 0.
  const i64 own = static_cast<i64>(next);
  constexpr bool OWN = OUTER_STRIDE[0] != 0;
  const i64 last_image = OWN ? own + 1 : params.images;

  const int lane_row =
      static_cast<int>(ROWS_INNER ? thread_x() % ROW_THREADS : thread_x() / COLUMN_THREADS);
  const int lane_column =
      static_cast<int>(ROWS_INNER ? thread_x() / ROW_THREADS : thread_x() % COLUMN_THREADS);
  const int first_row = row_block * BLOCK_ROWS, first_column = column_block * BLOCK_COLUMNS;
  const element_t* const x = static_cast<const element_t*>(params.x) +
                             product(static_cast<i64>(group) * CHANNELS, X_STRIDE[1]);
  const element_t* const dy = static_cast<const element_t*>(params.dy) +
                              (static_cast<i64>(group) * ROWS + first_row) * Y_STRIDE[1] +
                              y_offset(pixel);

  compute_t sums[THREAD_ROWS][THREAD_COLUMNS];
#pragma unroll
  for (int k = 0; k < THREAD_ROWS; ++k)
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; ++j) sums[k][j] = 0;

#pragma unroll 1
  for (i64 begin = own; begin < last_image; begin += IMAGES) {
    if (begin > own) block_barrier();  // all threads have read the previous factors
#pragma unroll 1
    for (int i = static_cast<int>(thread_x()); i < BLOCK_COLUMNS; i += THREADS) {
      const int column = first_column + i;
      const i64 from = column < COLUMNS ? source_of(Column(column), pixel) : -1;
#pragma unroll 4
      for (int image = 0; image < IMAGES; ++image) {
        const i64 n = begin + image;
        const bool exists = from >= 0 && n < last_image;
        window[image * BLOCK_COLUMNS + i] =
            exists ? to_compute(x[n * X_STRIDE[0] + from]) : compute_t(0);
      }
    }
#pragma unroll 1
    for (int i = static_cast<int>(thread_x()); i < IMAGES * BLOCK_ROWS; i += THREADS) {
      const int image = i / BLOCK_ROWS, row = i - image * BLOCK_ROWS;
      const i64 n = begin + image;
      const bool exists = first_row + row < ROWS && n < last_image;
      gradient[i] =
          exists ? to_compute(dy[n * Y_STRIDE[0] + product(row, Y_STRIDE[1])]) : compute_t(0);
    }
    block_barrier();
#pragma unroll 2
    for (int image = 0; image < IMAGES; ++image) {
      compute_t columns[THREAD_COLUMNS], rows[THREAD_ROWS];
      read_shared(window + image * BLOCK_COLUMNS + lane_column * THREAD_COLUMNS, columns);
      read_shared(gradient + image * BLOCK_ROWS + lane_row * THREAD_ROWS, rows);
#pragma unroll
      for (int k = 0; k < THREAD_ROWS; ++k)
#pragma unroll
        for (int j = 0; j < THREAD_COLUMNS; ++j) sums[k][j] += rows[k] * columns[j];
    }
  }

  const int row = first_row + lane_row * THREAD_ROWS;
  const int column = first_column + lane_column * THREAD_COLUMNS;
  output_t* const dw = static_cast<output_t*>(params.out) + own * OUTER_STRIDE[0] +
                       pixel_offset(pixel) + (static_cast<i64>(group) * ROWS + row) * W_STRIDE[0] +
                       product(column, COLUMN_STRIDE);
  const auto alpha = static_cast<compute_t>(params.alpha),
             beta = static_cast<compute_t>(params.beta);
  constexpr int LINES = ROWS_INNER ? THREAD_COLUMNS : THREAD_ROWS;
  constexpr int LINE = ROWS_INNER ? THREAD_ROWS : THREAD_COLUMNS;
#pragma unroll
  for (int i = 0; i < LINES; ++i) {
    const bool exists =
        ROWS_INNER ? row < ROWS && column + i < COLUMNS : row + i < ROWS && column < COLUMNS;
    if (!exists) continue;
    output_t* const to = dw + (ROWS_INNER ? product(i, COLUMN_STRIDE) : product(i, W_STRIDE[0]));
    compute_t line[LINE], before[LINE] = {};
    if (beta != 0) load_vector(static_cast<const output_t*>(to), true, before);
#pragma unroll
    for (int e = 0; e < LINE; ++e)
      line[e] = alpha * (ROWS_INNER ? sums[e][i] : sums[i][e]) +
                (beta != 0 ? beta * before[e] : compute_t(0));
    store_vector(to, true, line);
  }
}
