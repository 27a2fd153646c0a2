// The filter gradient of a locally connected layer by its definition: a thread computes one element
// of dw, a sum over the images that share it. It takes every legal problem.
//
// Threads run along dw's axes in the order of their strides, smallest first.
#include "local/geometry.cuh"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

KILN_KERNEL(wgrad_local_direct, 256, 1, LocalParams, params) {
  // The axes of dw: the image (if each has its own weights), three of the output pixel, the filter,
  // the channel, and three of the tap.
  i64 at[9] = {};
  index_t rest = static_cast<index_t>(block_x()) * THREADS + thread_x();
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const index_t next = rest / static_cast<index_t>(SIZES[i]);
    at[AXES[i]] = static_cast<i64>(rest - next * static_cast<index_t>(SIZES[i]));
    rest = next;
  }
  at[0] = static_cast<i64>(rest);
  const i64 first = OUTER_STRIDE[0] != 0 ? at[0] : 0;
  const i64 last = OUTER_STRIDE[0] != 0 ? at[0] + 1 : params.images;
  if (at[0] >= (OUTER_STRIDE[0] != 0 ? params.images : 1)) return;

  const Place pixel{{at[1], at[2], at[3]}};
  Place place;
  bool inside = true;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    place.at[i] = input_at(i, at[1 + i], tap_of(i, static_cast<int>(at[6 + i])));
    inside = inside && place.at[i] >= 0 && place.at[i] < IN[i];
  }
  compute_t sum = 0;
  if (inside) {
    const i64 channel = at[4] / ROWS * CHANNELS + at[5];
    const element_t* const x =
        static_cast<const element_t*>(params.x) + channel * X_STRIDE[1] + x_offset(place);
    const element_t* const dy =
        static_cast<const element_t*>(params.dy) + at[4] * Y_STRIDE[1] + y_offset(pixel);
#pragma unroll 4
    for (i64 n = first; n < last; ++n)
      sum += to_compute(dy[n * Y_STRIDE[0]]) * to_compute(x[n * X_STRIDE[0]]);
  }
  const i64 offset = at[0] * OUTER_STRIDE[0] + pixel_offset(pixel) + at[4] * W_STRIDE[0] +
                     at[5] * W_STRIDE[1] + at[6] * W_STRIDE[2] + at[7] * W_STRIDE[3] +
                     at[8] * W_STRIDE[4];
  store_result(params, offset, sum, compute_t(0));
}
