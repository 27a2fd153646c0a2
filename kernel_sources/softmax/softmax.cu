// Softmax and its gradient with rows in registers. Each of a row's TY threads holds COUNT of its
// vectors, every TY-th one, so memory is read once.
#include "softmax/softmax_row.cuh"

// Whether this thread's vector i belongs to the row.
device_inline bool belongs(int i) {
  return (i + 1) * TY <= COMBINED || thread_ty() + i * TY < COMBINED;
}

template <class In>
device_inline void load_row(const element_t* row, bool aligned,
                            compute_t (&values)[COUNT][VECTOR]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    if (belongs(i)) load_vector(In::at(row, thread_ty(), i * TY), aligned, values[i]);
}
// The branch is around all loads, so that they are issued together.
template <class In>
device_inline void load(const element_t* row, bool aligned, compute_t (&values)[COUNT][VECTOR]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[i][j] = neutral();
  if (aligned)
    load_row<In>(row, true, values);
  else
    load_row<In>(row, false, values);
}

device_inline void store_row(element_t* row, bool aligned,
                             const compute_t (&values)[COUNT][VECTOR]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    if (belongs(i)) store_vector(Out::at(row, thread_ty(), i * TY), aligned, values[i]);
}

// Replaces x by softmax(x), or by its logarithm.
device_inline void forward(compute_t (&x)[COUNT][VECTOR]) {
  compute_t maximum[LANES], sum[LANES];
#pragma unroll
  for (int i = 0; i < LANES; ++i) maximum[i] = lowest(), sum[i] = 0;
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) maximum[j % LANES] = larger(maximum[j % LANES], x[i][j]);
  combine_ty(maximum, 0, larger);
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      x[i][j] -= maximum[j % LANES];
      const compute_t power = exponential(x[i][j]);
      sum[j % LANES] += power;
      if (ALGORITHM != LOG) x[i][j] = power;
    }
  combine_ty(sum, COMBINE_BYTES, add);
#pragma unroll
  for (int i = 0; i < LANES; ++i)
    sum[i] = ALGORITHM == LOG ? math_log(sum[i]) : math_reciprocal(sum[i]);
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j)
      x[i][j] = ALGORITHM == LOG ? x[i][j] - sum[j % LANES] : x[i][j] * sum[j % LANES];
}

// Replaces y by dx.
device_inline void backward(compute_t (&y)[COUNT][VECTOR], const compute_t (&dy)[COUNT][VECTOR]) {
  compute_t sum[LANES];
#pragma unroll
  for (int i = 0; i < LANES; ++i) sum[i] = 0;
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum[j % LANES] += gradient_term(y[i][j], dy[i][j]);
  combine_ty(sum, 0, add);
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) y[i][j] = gradient(y[i][j], dy[i][j], sum[j % LANES]);
}

KILN_KERNEL(softmax, THREADS, MIN_BLOCKS, SoftmaxParams, params) {
  const Rows rows(params, block_x());
  compute_t values[COUNT][VECTOR];
  load<In0>(rows.in0, rows.aligned, values);
  if constexpr (BACKWARD) {
    compute_t dy[COUNT][VECTOR];
    load<In1>(rows.in1, rows.aligned, dy);
    backward(values, dy);
  } else {
    forward(values);
  }
  if (!rows.present) return;

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[i][j] *= alpha;
  if (beta != compute_t(0)) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (!belongs(i)) continue;
      compute_t before[VECTOR];
      load_vector(Out::at(rows.out, thread_ty(), i * TY), rows.aligned, before);
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) values[i][j] += beta * before[j];
    }
  }
  if (rows.aligned)
    store_row(rows.out, true, values);
  else
    store_row(rows.out, false, values);
}
