// A sum of a filter gradient by its definition: a loop over the pixels of dy. Outside x there are
// zeros, which are multiplied, too: with a dy that is NaN or infinite they give NaN.
#pragma once

#include "common/compute_type.cuh"
#include "common/magic.cuh"
#include "target/kernel.cuh"

// A thread's part of the sum for tap (t, r, s): every STEP-th pixel from `first` (below STEP) on,
// counted image by image. x points to the element's channel, dy to its filter. Index: the type of
// positions in x and of offsets within an image. UNTIL_NAN: stops at the first NaN, because the sum
// then stays NaN.
template <class Index, int STEP, bool UNTIL_NAN>
device_inline compute_t gradient_sum(const element_t* x, const element_t* dy, u32 t, u32 r, u32 s,
                                     u64 images, u32 first) {
  const index_t images_a_turn = STEP / DIV_OPQ, pixels_a_turn = STEP % DIV_OPQ;
  const Index d0 = static_cast<Index>(t) * STEP_D + ORIGIN_D[0];
  const Index h0 = static_cast<Index>(r) * STEP_H + ORIGIN_H[0];
  const Index w0 = static_cast<Index>(s) * STEP_W + ORIGIN_W[0];
  i64 n = first / DIV_OPQ;
  index_t pixel = first % DIV_OPQ;
  compute_t sum = 0;
#pragma unroll 1
  while (n < static_cast<i64>(images)) {
    const index_t o = DIVIDE(DIV_PQ, pixel);
    const index_t in_plane = pixel - o * DIV_PQ;
    const index_t p = DIVIDE(DIV_Q, in_plane);
    const index_t q = in_plane - p * DIV_Q;
    const Index d = static_cast<Index>(o) * STRIDE_D + d0;
    const Index h = static_cast<Index>(p) * STRIDE_H + h0;
    const Index w = static_cast<Index>(q) * STRIDE_W + w0;
    compute_t at_x = 0;
    if (d >= 0 && d < SOURCE_D && h >= 0 && h < SOURCE_H && w >= 0 && w < SOURCE_W)
      at_x = to_compute(x[n * SOURCE_STRIDE_N + (d * static_cast<Index>(SOURCE_STRIDE_D) +
                                                 h * static_cast<Index>(SOURCE_STRIDE_H) +
                                                 w * static_cast<Index>(SOURCE_STRIDE_W))]);
    const element_t at_dy =
        dy[n * OUT_STRIDE_N + (static_cast<Index>(o) * static_cast<Index>(OUT_STRIDE_O) +
                               static_cast<Index>(p) * static_cast<Index>(OUT_STRIDE_P) +
                               static_cast<Index>(q) * static_cast<Index>(OUT_STRIDE_Q))];
    sum += at_x * to_compute(at_dy);
    if (UNTIL_NAN && sum != sum) break;
    n += images_a_turn;
    pixel += pixels_a_turn;
    if (pixel >= DIV_OPQ) {
      pixel -= DIV_OPQ;
      ++n;
    }
  }
  return sum;
}
