// Pointwise operations. A thread computes UNROLL vectors of VECTOR contiguous elements of the
// output. It reads all inputs before it writes, so the output may be an input.
//
// LINEAR: every operand is one contiguous run of elements, or one element that is broadcast.
// Otherwise an image has four axes, SIZE_0 (outermost) to SIZE_3, the last one counted in vectors.
#include "common/magic.cuh"
#include "common/vector.cuh"
#include "pointwise/operation.cuh"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

struct Place {
  i64 n;
  index_t a0, a1, a2, a3;
};

// The place of vector `i`, counted from the first one of image `image`.
device_inline Place place_of(i64 image, index_t i) {
  Place place;
  const index_t later = DIVIDE(DIV_IMAGE, i);
  index_t rest = i - later * DIV_IMAGE;
  place.n = image + later;
  place.a0 = DIVIDE(DIV_123, rest);
  rest -= place.a0 * DIV_123;
  place.a1 = DIVIDE(DIV_23, rest);
  rest -= place.a1 * DIV_23;
  place.a2 = DIVIDE(DIV_3, rest);
  place.a3 = rest - place.a2 * DIV_3;
  return place;
}

// An operand. INNER is its stride along a vector: 1, or 0 if it is broadcast.
template <class T, i64 N, i64 S0, i64 S1, i64 S2, i64 S3, int INNER>
struct View {
  device_inline static i64 offset(Place at) {
    return at.n * N + static_cast<i64>(at.a0) * S0 + static_cast<i64>(at.a1) * S1 +
           static_cast<i64>(at.a2) * S2 + static_cast<i64>(at.a3) * S3;
  }
  using Elements = Pack<T, VECTOR>;
  device_inline static Elements load(const void* base, i64 at, bool aligned) {
    const T* const from = static_cast<const T*>(base) + at;
    if constexpr (INNER == 1) return load_pack<VECTOR>(from, aligned);
    Elements same;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) same.element[i] = *from;
    return same;
  }
  device_inline static bool aligned(const void* base) {
    return INNER != 1 || is_aligned<T, VECTOR>(base);
  }
};
using First =
    View<IN0_t, IN0_STRIDE_N, IN0_STRIDE_0, IN0_STRIDE_1, IN0_STRIDE_2, IN0_STRIDE_3, IN0_INNER>;
using Second =
    View<IN1_t, IN1_STRIDE_N, IN1_STRIDE_0, IN1_STRIDE_1, IN1_STRIDE_2, IN1_STRIDE_3, IN1_INNER>;
using Result = View<OUT_t, OUT_STRIDE_N, OUT_STRIDE_0, OUT_STRIDE_1, OUT_STRIDE_2, OUT_STRIDE_3, 1>;

// Computes COUNT of a thread's vectors, from vector `number` on.
template <int COUNT>
struct Work {
  i64 in0[COUNT], in1[COUNT], out[COUNT];
  bool valid[COUNT];
  First::Elements a[COUNT];
  Second::Elements b[COUNT];
  Result::Elements before[COUNT];

  device_inline void locate(const PointwiseParams& params, int number) {
    const u64 first = static_cast<u64>(block_x()) * (THREADS * UNROLL);
    if constexpr (LINEAR) {
      const u64 vectors = static_cast<u64>(params.images) * IMAGE_ELEMENTS / VECTOR;
#pragma unroll
      for (int u = 0; u < COUNT; ++u) {
        const u64 i = first + (number + u) * THREADS + thread_x();
        valid[u] = i < vectors;
        out[u] = static_cast<i64>(i * VECTOR);
        in0[u] = IN0_INNER ? out[u] : 0;
        in1[u] = IN1_INNER ? out[u] : 0;
      }
    } else {
      const u64 image = DIVIDE(BLOCK_DIV_IMAGE, first);
      const index_t begin = static_cast<index_t>(first - image * BLOCK_DIV_IMAGE);
#pragma unroll
      for (int u = 0; u < COUNT; ++u) {
        const Place place =
            place_of(static_cast<i64>(image), begin + ((number + u) * THREADS + thread_x()));
        valid[u] = place.n < params.images;
        out[u] = Result::offset(place);
        in0[u] = First::offset(place);
        in1[u] = Second::offset(place);
      }
    }
  }

  device_inline void load(const PointwiseParams& params, bool aligned, bool reads_output) {
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (!valid[u]) continue;
      if constexpr (INPUTS > 0) a[u] = First::load(params.in[0], in0[u], aligned);
      if constexpr (INPUTS > 1) b[u] = Second::load(params.in[1], in1[u], aligned);
      if (reads_output) before[u] = Result::load(params.out, out[u], aligned);
    }
  }

  device_inline void store(const PointwiseParams& params, const Operation& operation,
                           bool aligned) const {
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (!valid[u]) continue;
      compute_t result[VECTOR];
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        const compute_t x = INPUTS > 0 ? convert_in<compute_t>(a[u].element[i]) : compute_t(0);
        const compute_t y = INPUTS > 1 ? convert_in<compute_t>(b[u].element[i]) : compute_t(0);
        result[i] = operation(x, y);
        if (operation.beta != compute_t(0))
          result[i] += operation.beta * convert_in<compute_t>(before[u].element[i]);
      }
      store_vector(static_cast<OUT_t*>(params.out) + out[u], aligned, result);
    }
  }
};

template <int COUNT>
device_inline void do_vectors(const PointwiseParams& params, const Operation& operation, int number,
                              bool aligned) {
  Work<COUNT> work;
  work.locate(params, number);
  work.load(params, aligned, operation.beta != compute_t(0));
  work.store(params, operation, aligned);
}

// LINEAR: computes the last elements, fewer than VECTOR, one by each thread.
device_inline void do_rest(const PointwiseParams& params, const Operation& operation) {
  const u64 elements = static_cast<u64>(params.images) * IMAGE_ELEMENTS;
  const u64 at = elements - elements % VECTOR + thread_x();
  if (block_x() != 0 || at >= elements) return;
  compute_t a = 0, b = 0;
  if constexpr (INPUTS > 0)
    a = convert_in<compute_t>(static_cast<const IN0_t*>(params.in[0])[IN0_INNER ? at : 0]);
  if constexpr (INPUTS > 1)
    b = convert_in<compute_t>(static_cast<const IN1_t*>(params.in[1])[IN1_INNER ? at : 0]);
  OUT_t* const out = static_cast<OUT_t*>(params.out) + at;
  compute_t result = operation(a, b);
  if (operation.beta != compute_t(0)) result += operation.beta * convert_in<compute_t>(*out);
  *out = convert_out<OUT_t>(result);
}

KILN_KERNEL(pointwise, 256, MIN_BLOCKS, PointwiseParams, params) {
  const Operation operation(params);
  const bool aligned = Result::aligned(params.out) &&
                       (INPUTS < 1 || First::aligned(params.in[0])) &&
                       (INPUTS < 2 || Second::aligned(params.in[1]));
  if (VECTOR == 1 || aligned) {
    do_vectors<UNROLL>(params, operation, 0, true);
  } else {  // unaligned: one vector at a time, because single elements take too many registers
#pragma unroll 1
    for (int u = 0; u < UNROLL; ++u) do_vectors<1>(params, operation, u, false);
  }
  if constexpr (LINEAR && VECTOR > 1) do_rest(params, operation);
}
