// Tensors that span more than 2^31 elements. The address space is reserved, but only a few pages
// are touched, because the strides are large.
#include <boost/test/unit_test.hpp>
#include <functional>

#include "ops/placed_case.hpp"

BOOST_AUTO_TEST_SUITE(wide_offsets)

namespace {

using namespace test;

constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements

using Tensors = std::vector<Tensor>;
using Make = std::function<Problem(const Tensors&)>;

Tensor dense(const TensorDims& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out;
  out.type = KILN_DATA_HALF;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(format, out.rank, dims);
  return out;
}

// Checks each engine with each tensor in turn having the elements of one dimension (batch,
// channels, rows) far apart. An engine may refuse some cases, but has to compute at least `least`.
void check(const Make& make, const Tensors& tensors, const std::vector<std::string>& engines,
           int least) {
  OperationCase item(make(tensors));
  item.fill_integers(3, 3);
  for (const std::string& engine : engines) {
    int taken = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (int axis = 0; axis < 3; ++axis) {
        if (tensors[i].dims[axis] == 1 || tensors[i].dims[axis] > 4) continue;
        Tensors far = tensors;
        far[i].strides[axis] = beyond;
        const Problem wide = make(far);
        try {
          const std::string fault = item.fault(run_wide(item, wide, engine));
          BOOST_TEST(fault.empty(), engine << ", " << text_of(wide) << ": " << fault);
          ++taken;
        } catch (const Error& error) {
          BOOST_TEST(error.status() == KILN_STATUS_NOT_SUPPORTED, error.what());
        }
      }
    }
    BOOST_TEST(taken >= least, engine << " took " << taken << " of " << text_of(item.problem));
  }
}

ConvolutionSpec spec_of(std::int64_t stride) {
  ConvolutionSpec spec;
  spec.spatial = 2;
  spec.pad_before = spec.pad_after = {1, 1};
  spec.stride = {stride, stride, 1};
  return spec;
}

PoolingSpec pooling_of(kilnPoolingMode_t mode) {
  PoolingSpec spec;
  spec.spatial = 2;
  spec.mode = mode;
  spec.window = {2, 3, 1};
  spec.pad_before = spec.pad_after = {1, 1};
  spec.stride = {1, 2, 1};
  return spec;
}

}  // namespace

BOOST_AUTO_TEST_CASE(forward_propagation) {
  const Make make = [](const Tensors& t) { return make_convolution(spec_of(1), t[0], t[1], t[2]); };
  check(make, {dense({2, 2, 4, 6}), dense({4, 2, 3, 3}), dense({2, 4, 4, 6})},
        {"implicit_gemm_fma", "direct"}, 6);
}

BOOST_AUTO_TEST_CASE(data_gradient) {
  for (const std::int64_t stride : {1, 2}) {
    const Make make = [&](const Tensors& t) {
      return make_convolution_dgrad(spec_of(stride), t[0], t[1], t[2]);
    };
    const std::int64_t h = 4 / stride, w = 6 / stride;
    check(make, {dense({4, 16, 3, 3}), dense({2, 4, h, w}), dense({2, 16, 4, 6})},
          {"implicit_gemm_fma"}, 4);
    check(make, {dense({4, 3, 3, 3}), dense({2, 4, h, w}), dense({2, 3, 4, 6})},
          stride == 1 ? std::vector<std::string>{"depthwise_fma", "direct"}
                      : std::vector<std::string>{"direct"},
          5);
  }
}

BOOST_AUTO_TEST_CASE(filter_gradient) {
  const Make make = [](const Tensors& t) {
    return make_convolution_wgrad(spec_of(1), t[0], t[1], t[2]);
  };
  check(make, {dense({2, 3, 4, 6}), dense({2, 4, 4, 6}), dense({4, 3, 3, 3})},
        {"wgrad_implicit_gemm_fma", "wgrad_direct"}, 3);
}

BOOST_AUTO_TEST_CASE(pooling) {
  for (const auto mode : {KILN_POOLING_MAX, KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING}) {
    const Make forward = [&](const Tensors& t) {
      return make_pooling_forward(pooling_of(mode), t[0], t[1]);
    };
    const Tensor x = dense({2, 3, 3, 7}), y = dense({2, 3, 4, 4});
    check(forward, {x, y}, {"pooling"}, 3);
    const bool max = mode == KILN_POOLING_MAX;
    const Make backward = [&](const Tensors& t) {
      return make_pooling_backward(pooling_of(mode), t[0], max ? &t[1] : nullptr, t.back());
    };
    check(backward, max ? Tensors{y, x, x} : Tensors{y, x}, {"pooling", "pooling_backward_tiled"},
          3);
  }
}

BOOST_AUTO_TEST_CASE(pointwise) {
  const Tensor t = dense({2, 3, 4, 8});
  const Make add = [](const Tensors& o) {
    return make_binary(KILN_OP_TENSOR_ADD, o[0], o[1], o[2]);
  };
  check(add, {dense({1, 3, 1, 8}), t, t}, {"pointwise"}, 7);
  const Make gradient = [](const Tensors& o) {
    return make_activation_backward({KILN_ACTIVATION_RELU, 0}, o[0], "yDesc", o[1], o[2]);
  };
  check(gradient, {t, t, t}, {"pointwise"}, 9);
  const Make fill = [](const Tensors& o) { return make_fill(o[0]); };
  check(fill, {t}, {"pointwise"}, 3);
}

BOOST_AUTO_TEST_CASE(transpose) {
  const Make make = [](const Tensors& t) { return make_transform(t[0], t[1]); };
  check(make, {dense({2, 40, 4, 40}), dense({2, 40, 4, 40}, KILN_TENSOR_NHWC)}, {"transpose"}, 4);
  check(make, {dense({2, 4, 4, 40}), dense({2, 4, 4, 40}, KILN_TENSOR_NHWC)}, {"pointwise"}, 4);
}

BOOST_AUTO_TEST_CASE(softmax_gradient) {
  for (const auto mode : {KILN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_INSTANCE}) {
    const Make make = [&](const Tensors& t) {
      return make_softmax_backward(KILN_SOFTMAX_ACCURATE, mode, t[0], t[1], t[2]);
    };
    const Tensor t = dense({2, 3, 4, 8});
    check(make, {t, t, t}, {"softmax", "softmax_online"}, 9);
  }
}

BOOST_AUTO_TEST_CASE(reduction) {
  const Make make = [](const Tensors& t) { return make_reduction(KILN_REDUCE_MAX, t[0], t[1]); };
  check(make, {dense({2, 3, 4, 8}), dense({2, 1, 4, 1})}, {"reduction"}, 5);
}

BOOST_AUTO_TEST_SUITE_END()
