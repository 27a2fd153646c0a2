// A locally connected layer forward. A block computes BLOCK_ROWS filters of a group at one output
// pixel for IMAGES images, and reads each of the pixel's weights once, in vectors of contiguous
// weights.
//
// The elements of x that the pixel reads, its window, are loaded into shared memory CHUNK columns
// of the filter (channels and taps, in the weights' order) at a time, as window[image][column] in
// the compute type. In a step a thread has THREAD_ROWS filters by THREAD_COLUMNS columns: vectors
// along the columns or, if filters are innermost (ROWS_INNER), along the filters. At the end the
// threads that share a filter add up their sums in a fixed order.
#include "common/vector.cuh"
#include "local/filter_order.cuh"
#include "target/kernel.cuh"
#include "target/shared_memory.cuh"

constexpr int WARPS = ROW_WARPS * COLUMN_WARPS, THREADS = WARPS * 32;
// Lanes of a warp along the filters, and along the columns.
constexpr int COLUMN_LANES = 32 / ROW_LANES;
constexpr int BLOCK_ROWS = ROW_WARPS * ROW_LANES * THREAD_ROWS;
constexpr int STEP = COLUMN_WARPS * COLUMN_LANES * THREAD_COLUMNS;
static_assert(CHUNK % STEP == 0);
constexpr int SUMS = THREAD_ROWS * IMAGES;  // sums of a thread

struct alignas(16) Quad {
  compute_t element[16 / sizeof(compute_t)];
};

// Adds up sums between lanes that differ in bit MASK, then MASK / 2, down to LEAST; each time a
// lane keeps half of its sums. first: the first sum that the lane has left; alone: whether no other
// lane has the same.
template <int COUNT, int MASK, int LEAST>
device_inline void share_sums(compute_t (&sums)[SUMS], int& first, bool& alone) {
  if constexpr (MASK >= LEAST) {
    const bool upper = (thread_x() & MASK) != 0;
    if constexpr (COUNT > 1) {
      constexpr int HALF = COUNT / 2;
#pragma unroll
      for (int i = 0; i < HALF; ++i) {
        const compute_t given = upper ? sums[i] : sums[i + HALF];
        const compute_t kept = upper ? sums[i + HALF] : sums[i];
        sums[i] = kept + warp_shuffle_xor(given, MASK);
      }
      if (upper) first += HALF;
      share_sums<HALF, MASK / 2, LEAST>(sums, first, alone);
    } else {
      sums[0] += warp_shuffle_xor(sums[0], MASK);
      alone = alone && !upper;
      share_sums<1, MASK / 2, LEAST>(sums, first, alone);
    }
  }
}
device_inline constexpr int count_left(int count, int lanes) {
  return lanes <= 1 ? count : count_left(count > 1 ? count / 2 : 1, lanes / 2);
}
constexpr int LEFT = count_left(SUMS, COLUMN_LANES);

KILN_KERNEL(local_fma, ROW_WARPS* COLUMN_WARPS * 32, MIN_BLOCKS, LocalParams, params) {
  compute_t* const window = shared_array<compute_t, IMAGES * CHUNK>(0);

  // Images vary fastest, so that neighboring blocks read the same weights.
  const auto groups_of_images = static_cast<u32>((params.images + IMAGES - 1) / IMAGES);
  u32 rest = block_x();
  u32 next = rest / groups_of_images;
  const i64 first_image = static_cast<i64>(rest - next * groups_of_images) * IMAGES;
  rest = next;
  next = rest / ROW_BLOCKS;
  const int row_block = static_cast<int>(rest - next * ROW_BLOCKS);
  rest = next;
  next = rest / GROUPS;
  const int group = static_cast<int>(rest - next * GROUPS);
  const Place pixel = pixel_of(next);

  const int lane = static_cast<int>(thread_x() % 32), warp = static_cast<int>(thread_x() / 32);
  const int row_warp = warp % ROW_WARPS, column_warp = warp / ROW_WARPS;
  const int row_in_block = (row_warp * ROW_LANES + lane % ROW_LANES) * THREAD_ROWS;
  const int row = row_block * BLOCK_ROWS + row_in_block;  // the filter's number in its group
  const int first_column = (column_warp * COLUMN_LANES + lane / ROW_LANES) * THREAD_COLUMNS;

  const element_t* const x = static_cast<const element_t*>(params.x) + first_image * X_STRIDE[0] +
                             product(static_cast<i64>(group) * CHANNELS, X_STRIDE[1]);
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             first_image * OUTER_STRIDE[0] + pixel_offset(pixel) +
                             (static_cast<i64>(group) * ROWS + row) * W_STRIDE[0];
  compute_t sums[SUMS];
#pragma unroll
  for (int i = 0; i < SUMS; ++i) sums[i] = 0;

#pragma unroll 1
  for (int begin = 0; begin < COLUMNS; begin += CHUNK) {
    if (begin > 0) block_barrier();  // all threads have read the previous window
#pragma unroll 1
    for (int i = static_cast<int>(thread_x()); i < CHUNK; i += THREADS) {
      const int column = begin + i;
      const i64 from = column < COLUMNS ? source_of(Column(column), pixel) : -1;
#pragma unroll
      for (int image = 0; image < IMAGES; ++image) {
        const bool exists = from >= 0 && first_image + image < params.images;
        window[image * CHUNK + i] =
            exists ? to_compute(x[product(image, X_STRIDE[0]) + from]) : compute_t(0);
      }
    }
    block_barrier();

#pragma unroll UNROLLED
    for (int i = 0; i < CHUNK; i += STEP) {
      const int here = i + first_column, column = begin + here;
      compute_t weights[THREAD_ROWS][THREAD_COLUMNS];
      if constexpr (ROWS_INNER) {
#pragma unroll
        for (int j = 0; j < THREAD_COLUMNS; ++j) {
          compute_t line[THREAD_ROWS] = {};
          if (column + j < COLUMNS && row < ROWS)
            load_vector(w + product(column + j, COLUMN_STRIDE), true, line);
#pragma unroll
          for (int k = 0; k < THREAD_ROWS; ++k) weights[k][j] = line[k];
        }
      } else {
#pragma unroll
        for (int k = 0; k < THREAD_ROWS; ++k) {
          compute_t line[THREAD_COLUMNS] = {};
          if (column < COLUMNS && row + k < ROWS)
            load_vector(w + product(k, W_STRIDE[0]) + column, true, line);
#pragma unroll
          for (int j = 0; j < THREAD_COLUMNS; ++j) weights[k][j] = line[j];
        }
      }
#pragma unroll
      for (int image = 0; image < IMAGES; ++image) {
        compute_t values[THREAD_COLUMNS];
        constexpr int QUAD = THREAD_COLUMNS < static_cast<int>(16 / sizeof(compute_t))
                                 ? 1
                                 : static_cast<int>(16 / sizeof(compute_t));
#pragma unroll
        for (int j = 0; j < THREAD_COLUMNS; j += QUAD) {
          if constexpr (QUAD == 1) {
            values[j] = window[image * CHUNK + here + j];
          } else {
            const Quad quad = *reinterpret_cast<const Quad*>(window + image * CHUNK + here + j);
#pragma unroll
            for (int e = 0; e < QUAD; ++e) values[j + e] = quad.element[e];
          }
        }
#pragma unroll
        for (int k = 0; k < THREAD_ROWS; ++k)
#pragma unroll
          for (int j = 0; j < THREAD_COLUMNS; ++j)
            sums[k * IMAGES + image] += weights[k][j] * values[j];
      }
    }
  }

  int first = 0;
  bool alone = true;
  share_sums<SUMS, 16, ROW_LANES>(sums, first, alone);

  const auto store = [&](int row_here, int image, compute_t sum) {
    const i64 n = first_image + image;
    const int in_group = row_block * BLOCK_ROWS + row_here;
    if (in_group >= ROWS || n >= params.images) return;
    const i64 channel = static_cast<i64>(group) * ROWS + in_group;
    compute_t bias = 0;
    if constexpr (BIAS)
      bias = to_compute(static_cast<const output_t*>(params.bias)[bias_offset(channel, pixel)]);
    store_result(params, n * Y_STRIDE[0] + product(channel, Y_STRIDE[1]) + y_offset(pixel), sum,
                 bias);
  };
  if constexpr (COLUMN_WARPS == 1) {
    if (!alone) return;
#pragma unroll
    for (int i = 0; i < LEFT; ++i)
      store(row_in_block + (first + i) / IMAGES, (first + i) % IMAGES, sums[i]);
  } else {
    compute_t* const shared =
        shared_array<compute_t, COLUMN_WARPS * BLOCK_ROWS * IMAGES>(SUMS_OFFSET);
    if (alone) {
#pragma unroll
      for (int i = 0; i < LEFT; ++i)
        shared[column_warp * (BLOCK_ROWS * IMAGES) + row_in_block * IMAGES + first + i] = sums[i];
    }
    block_barrier();
#pragma unroll 1
    for (int i = static_cast<int>(thread_x()); i < BLOCK_ROWS * IMAGES; i += THREADS) {
      compute_t sum = shared[i];
#pragma unroll
      for (int other = 1; other < COLUMN_WARPS; ++other)
        sum += shared[other * (BLOCK_ROWS * IMAGES) + i];
      store(i / IMAGES, i % IMAGES, sum);
    }
  }
}
