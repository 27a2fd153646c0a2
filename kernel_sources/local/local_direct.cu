// A locally connected layer forward, and its data gradient, by their definitions: a thread computes
// one element of the output in IMAGES images, so that it reads each of its weights once for all of
// them. It takes every legal problem.
//
// Threads run along the output's axes in the order of the distance between neighbors' weights,
// nearest first. Weights that are contiguous along the output's pixels, as networks predict them,
// are then read in whole lines.
#include "local/geometry.cuh"
#include "target/kernel.cuh"

constexpr int THREADS = 256;

// A thread's element: its position in space and its channel, counted over all groups.
struct Element {
  Place place;
  int channel;
};

// Decodes the element along AXES; 0 to 2 are the axes of space, 3 is the channel.
device_inline index_t element_of(index_t index, Element& element) {
  index_t rest = index;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const index_t next = rest / static_cast<index_t>(SIZES[i]);
    const i64 at = static_cast<i64>(rest - next * static_cast<index_t>(SIZES[i]));
    if (AXES[i] == 3)
      element.channel = static_cast<int>(at);
    else
      element.place.at[AXES[i]] = at;
    rest = next;
  }
  return rest;
}

template <class T>
device_inline void add_products(compute_t (&sums)[IMAGES], compute_t weight, const T* from,
                                i64 stride, int images) {
#pragma unroll
  for (int i = 0; i < IMAGES; ++i)
    if (i < images) sums[i] += weight * to_compute(from[product(i, stride)]);
}

// The sums over the channels of x's group and the taps inside x.
device_inline void sum_forward(const LocalParams& params, i64 first_image, int images,
                               const Element& element, compute_t (&sums)[IMAGES]) {
  const int group = element.channel / ROWS;
  const element_t* const x = static_cast<const element_t*>(params.x) + first_image * X_STRIDE[0] +
                             product(static_cast<i64>(group) * CHANNELS, X_STRIDE[1]);
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             first_image * OUTER_STRIDE[0] + pixel_offset(element.place) +
                             product(element.channel, W_STRIDE[0]);
#pragma unroll 1
  for (int t = 0; t < FILTER[0]; ++t) {
    const i64 d = input_at(0, element.place.at[0], t);
    if (d < 0 || d >= IN[0]) continue;
#pragma unroll 1
    for (int r = 0; r < FILTER[1]; ++r) {
      const i64 h = input_at(1, element.place.at[1], r);
      if (h < 0 || h >= IN[1]) continue;
#pragma unroll 1
      for (int s = 0; s < FILTER[2]; ++s) {
        const i64 v = input_at(2, element.place.at[2], s);
        if (v < 0 || v >= IN[2]) continue;
        const element_t* const from = x + x_offset({{d, h, v}});
        const element_t* const weights = w + tap_offset(t, r, s);
#pragma unroll 4
        for (int c = 0; c < CHANNELS; ++c)
          add_products(sums, to_compute(weights[product(c, W_STRIDE[1])]),
                       from + product(c, X_STRIDE[1]), X_STRIDE[0], images);
      }
    }
  }
}

// The output along an axis whose tap `tap` reads the input at `input`; -1 if there is none.
device_inline i64 output_at(int axis, i64 input, int tap) {
  const i64 from = input + PAD[axis] - product(tap, DILATION[axis]);
  if (from < 0) return -1;
  const i64 output = from / STRIDE[axis];
  return product(output, STRIDE[axis]) == from && output < OUT[axis] ? output : -1;
}

// The sums over the output pixels that read this position, and over the channels of dy's group.
device_inline void sum_gradient(const LocalParams& params, i64 first_image, int images,
                                const Element& element, compute_t (&sums)[IMAGES]) {
  const int group = element.channel / CHANNELS, channel = element.channel - group * CHANNELS;
  const i64 first_row = static_cast<i64>(group) * ROWS;
  const element_t* const dy = static_cast<const element_t*>(params.dy) + first_image * Y_STRIDE[0] +
                              first_row * Y_STRIDE[1];
  const element_t* const w = static_cast<const element_t*>(params.w) +
                             first_image * OUTER_STRIDE[0] + first_row * W_STRIDE[0] +
                             product(channel, W_STRIDE[1]);
#pragma unroll 1
  for (int t = 0; t < FILTER[0]; ++t) {
    const i64 o = output_at(0, element.place.at[0], t);
    if (o < 0) continue;
#pragma unroll 1
    for (int r = 0; r < FILTER[1]; ++r) {
      const i64 p = output_at(1, element.place.at[1], r);
      if (p < 0) continue;
#pragma unroll 1
      for (int s = 0; s < FILTER[2]; ++s) {
        const i64 q = output_at(2, element.place.at[2], s);
        if (q < 0) continue;
        const Place pixel{{o, p, q}};
        const element_t* const from = dy + y_offset(pixel);
        const element_t* const weights = w + pixel_offset(pixel) + tap_offset(t, r, s);
#pragma unroll 4
        for (int k = 0; k < ROWS; ++k)
          add_products(sums, to_compute(weights[product(k, W_STRIDE[0])]),
                       from + product(k, Y_STRIDE[1]), Y_STRIDE[0], images);
      }
    }
  }
}

KILN_KERNEL(local_direct, 256, 1, LocalParams, params) {
  Element element;
  const index_t index = static_cast<index_t>(block_x()) * THREADS + thread_x();
  const i64 first_image = static_cast<i64>(element_of(index, element)) * IMAGES;
  if (first_image >= params.images) return;
  const i64 left = params.images - first_image;
  const int images = left < IMAGES ? static_cast<int>(left) : IMAGES;

  compute_t sums[IMAGES];
#pragma unroll
  for (int i = 0; i < IMAGES; ++i) sums[i] = 0;
  compute_t bias = 0;
  i64 at = 0, stride = 0;
  if constexpr (FORWARD) {
    sum_forward(params, first_image, images, element, sums);
    if constexpr (BIAS)
      bias = to_compute(
          static_cast<const output_t*>(params.bias)[bias_offset(element.channel, element.place)]);
    at =
        first_image * Y_STRIDE[0] + product(element.channel, Y_STRIDE[1]) + y_offset(element.place);
    stride = Y_STRIDE[0];
  } else {
    sum_gradient(params, first_image, images, element, sums);
    at =
        first_image * X_STRIDE[0] + product(element.channel, X_STRIDE[1]) + x_offset(element.place);
    stride = X_STRIDE[0];
  }
#pragma unroll
  for (int i = 0; i < IMAGES; ++i)
    if (i < images) store_result(params, at + i * stride, sums[i], bias);
}
