// Pooling, activation and softmax against the reference.
#include "cudnn/described.hpp"

using namespace test;

namespace {

constexpr DataType types[] = {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_DOUBLE,
                              KILN_DATA_BFLOAT16};

struct Variant {
  DataType type;
  Layout layout;
};

// Another type and layout each time.
Variant next_variant() {
  static std::size_t count = 0;
  const std::size_t i = count++;
  return {types[i % 4], layouts[i % 3]};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layers)

BOOST_AUTO_TEST_CASE(pooling) {
  const std::pair<cudnnPoolingMode_t, kilnPoolingMode_t> modes[] = {
      {CUDNN_POOLING_MAX, KILN_POOLING_MAX},
      {CUDNN_POOLING_MAX_DETERMINISTIC, KILN_POOLING_MAX},
      {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING},
      {CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING}};
  for (const auto& [mode, kiln_mode] : modes)
    for (const int spatial : {2, 3}) {
      const Variant variant = next_variant();
      PoolingSpec spec;
      spec.spatial = spatial;
      spec.mode = kiln_mode;
      const int window[] = {3, 2, 2}, pad[] = {1, 0, 1}, stride[] = {2, 1, 1};
      for (std::size_t i = 0; i < static_cast<std::size_t>(spatial); ++i) {
        spec.window[i] = window[i];
        spec.pad_before[i] = spec.pad_after[i] = pad[i];
        spec.stride[i] = stride[i];
      }
      const PoolingDesc desc;
      succeeds(cudnnSetPoolingNdDescriptor(desc, mode, CUDNN_PROPAGATE_NAN, spatial, window, pad,
                                           stride));
      Sizes dims{2, 3, 7, 5, 4};
      dims.resize(static_cast<std::size_t>(spatial + 2));
      const Tensor x = tensor(variant.type, dims, variant.layout);
      const auto x_desc = describe(x);
      int out[5] = {};
      succeeds(cudnnGetPoolingNdForwardOutputDim(desc, *x_desc, spatial + 2, out));
      const Tensor y = tensor(variant.type, Sizes(out, out + spatial + 2), variant.layout);
      const auto y_desc = describe(y);
      check(make_pooling_forward(spec, x, y), [&](const Arguments& a) {
        return cudnnPoolingForward(a.handle, desc, a.alpha, *x_desc, a.at[0], a.beta, *y_desc,
                                   a.at[1]);
      });
      // y is passed, and not read: a maximum is found in x once more.
      check(make_pooling_backward(spec, y, &x, x), [&](const Arguments& a) {
        return cudnnPoolingBackward(a.handle, desc, a.alpha, *y_desc, a.at[0], *y_desc, a.at[0],
                                    *x_desc, a.at[1], a.beta, *x_desc, a.at.back());
      });
    }
}

BOOST_AUTO_TEST_CASE(activation) {
  const std::pair<cudnnActivationMode_t, kilnActivationMode_t> modes[] = {
      {CUDNN_ACTIVATION_SIGMOID, KILN_ACTIVATION_SIGMOID},
      {CUDNN_ACTIVATION_RELU, KILN_ACTIVATION_RELU},
      {CUDNN_ACTIVATION_TANH, KILN_ACTIVATION_TANH},
      {CUDNN_ACTIVATION_CLIPPED_RELU, KILN_ACTIVATION_CLIPPED_RELU},
      {CUDNN_ACTIVATION_ELU, KILN_ACTIVATION_ELU},
      {CUDNN_ACTIVATION_IDENTITY, KILN_ACTIVATION_IDENTITY},
      {CUDNN_ACTIVATION_SWISH, KILN_ACTIVATION_SILU}};
  for (const auto& [mode, kiln_mode] : modes) {
    const bool has_coefficient =
        mode == CUDNN_ACTIVATION_CLIPPED_RELU || mode == CUDNN_ACTIVATION_ELU;
    const Activation f{kiln_mode, has_coefficient ? 1.25 : 0};
    const ActivationDesc desc;
    succeeds(cudnnSetActivationDescriptor(desc, mode, CUDNN_PROPAGATE_NAN, f.coefficient));
    const Variant variant = next_variant();
    const Tensor t = tensor(variant.type, {2, 3, 5, 4}, variant.layout);
    const auto d = describe(t);
    check(make_activation_forward(f, t, t), [&](const Arguments& a) {
      return cudnnActivationForward(a.handle, desc, a.alpha, *d, a.at[0], a.beta, *d, a.at[1]);
    });
    // Of y and x one is looked at; the other is there.
    check(make_activation_backward(f, t, "x", t, t), [&](const Arguments& a) {
      const bool from_y = gradient_from_output(f);
      return cudnnActivationBackward(a.handle, desc, a.alpha, *d, from_y ? a.at[0] : a.at[1], *d,
                                     a.at[1], *d, from_y ? a.at[1] : a.at[0], a.beta, *d, a.at[2]);
    });
  }
}

BOOST_AUTO_TEST_CASE(softmax) {
  const std::pair<cudnnSoftmaxAlgorithm_t, kilnSoftmaxAlgorithm_t> algorithms[] = {
      {CUDNN_SOFTMAX_FAST, KILN_SOFTMAX_FAST},
      {CUDNN_SOFTMAX_ACCURATE, KILN_SOFTMAX_ACCURATE},
      {CUDNN_SOFTMAX_LOG, KILN_SOFTMAX_LOG}};
  const std::pair<cudnnSoftmaxMode_t, kilnSoftmaxMode_t> modes[] = {
      {CUDNN_SOFTMAX_MODE_INSTANCE, KILN_SOFTMAX_MODE_INSTANCE},
      {CUDNN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_CHANNEL}};
  for (const auto& [algorithm, kiln_algorithm] : algorithms)
    for (const auto& [mode, kiln_mode] : modes) {
      const Variant variant = next_variant();
      const Tensor t = tensor(variant.type, {3, 6, 4, 2}, variant.layout);
      const auto d = describe(t);
      check(make_softmax_forward(kiln_algorithm, kiln_mode, t, t), [&](const Arguments& a) {
        return cudnnSoftmaxForward(a.handle, algorithm, mode, a.alpha, *d, a.at[0], a.beta, *d,
                                   a.at[1]);
      });
      check(make_softmax_backward(kiln_algorithm, kiln_mode, t, t, t), [&](const Arguments& a) {
        return cudnnSoftmaxBackward(a.handle, algorithm, mode, a.alpha, *d, a.at[0], *d, a.at[1],
                                    a.beta, *d, a.at[2]);
      });
    }
}

BOOST_AUTO_TEST_SUITE_END()
