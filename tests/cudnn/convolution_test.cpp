// Convolution in all its passes, layouts and types against the reference.
#include "cudnn/described.hpp"

using namespace test;

namespace {

struct Case {
  DataType type = KILN_DATA_FLOAT;
  Layout layout = Layout::nchw;
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  int spatial = 2;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

constexpr Case cases[] = {
    {},
    {.layout = Layout::nhwc},
    {.layout = Layout::padded, .mode = KILN_CONVOLUTION},
    {.math = CUDNN_FMA_MATH},
    {.type = KILN_DATA_HALF, .layout = Layout::nhwc, .mode = KILN_CONVOLUTION},
    {.type = KILN_DATA_BFLOAT16, .spatial = 3},
    {.type = KILN_DATA_DOUBLE, .layout = Layout::nhwc},
};

// Two groups, and sizes, paddings, strides and dilations that differ by dimension.
struct Convolution {
  ConvolutionSpec spec;
  Tensor x, w, y, bias;
  ConvolutionDesc desc;
  std::unique_ptr<TensorDesc> x_desc, y_desc, bias_desc;
  std::unique_ptr<FilterDesc> w_desc;

  explicit Convolution(const Case& c, bool fused = false) {
    spec.spatial = c.spatial;
    spec.mode = c.mode;
    spec.groups = fused ? 1 : 2;
    spec.compute_type = c.type == KILN_DATA_DOUBLE ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
    spec.math = c.math == CUDNN_FMA_MATH ? KILN_MATH_STRICT : KILN_MATH_TF32;
    Sizes x_dims{2, 4, 7, 6, 5}, w_dims{6, 4 / spec.groups, 3, 2, 2};
    for (Sizes* dims : {&x_dims, &w_dims}) dims->resize(static_cast<std::size_t>(c.spatial + 2));
    spec.pad_before = spec.pad_after = {1, 0, 1};
    spec.stride = {2, 1, 1};
    spec.dilation = {1, 2, 1};
    for (int i = c.spatial; i < 3; ++i) {
      spec.pad_before[static_cast<std::size_t>(i)] = spec.pad_after[static_cast<std::size_t>(i)] =
          0;
      spec.stride[static_cast<std::size_t>(i)] = spec.dilation[static_cast<std::size_t>(i)] = 1;
    }
    x = tensor(c.type, x_dims, c.layout);
    w = tensor(c.type, w_dims, c.layout == Layout::nhwc ? Layout::nhwc : Layout::nchw);
    succeeds(cudnnSetConvolutionNdDescriptor(
        desc, c.spatial, ints(spec.pad_before, c.spatial).data(),
        ints(spec.stride, c.spatial).data(), ints(spec.dilation, c.spatial).data(),
        c.mode == KILN_CONVOLUTION ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
        type_of(spec.compute_type)));
    succeeds(cudnnSetConvolutionGroupCount(desc, static_cast<int>(spec.groups)));
    succeeds(cudnnSetConvolutionMathType(desc, c.math));
    x_desc = describe(x);
    w_desc = describe_filter(w, c.layout);
    int dims[5] = {};
    succeeds(cudnnGetConvolutionNdForwardOutputDim(desc, *x_desc, *w_desc, c.spatial + 2, dims));
    y = tensor(c.type, Sizes(dims, dims + c.spatial + 2), c.layout);
    y_desc = describe(y);
    Sizes bias_dims(static_cast<std::size_t>(c.spatial + 2), 1);
    bias_dims[1] = 6;
    bias = tensor(c.type, bias_dims);
    bias_desc = describe(bias);
  }
};

// Any workspace and any algorithm that a program may pass.
char workspace[16] = "not touched";

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution)

BOOST_AUTO_TEST_CASE(forward) {
  int algorithm = 0;
  for (const Case& each : cases) {
    const Convolution c(each);
    const auto algo = static_cast<cudnnConvolutionFwdAlgo_t>(algorithm++);
    check(make_convolution(c.spec, c.x, c.w, c.y), [&](const Arguments& a) {
      return cudnnConvolutionForward(a.handle, a.alpha, *c.x_desc, a.at[0], *c.w_desc, a.at[1],
                                     c.desc, algo, workspace, sizeof workspace, a.beta, *c.y_desc,
                                     a.at[2]);
    });
  }
  BOOST_TEST(std::string(workspace) == "not touched");
}

BOOST_AUTO_TEST_CASE(backward_data) {
  int algorithm = 0;
  for (const Case& each : cases) {
    const Convolution c(each);
    const auto algo = static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm++ % 6);
    check(make_convolution_dgrad(c.spec, c.w, c.y, c.x), [&](const Arguments& a) {
      return cudnnConvolutionBackwardData(a.handle, a.alpha, *c.w_desc, a.at[0], *c.y_desc, a.at[1],
                                          c.desc, algo, nullptr, 0, a.beta, *c.x_desc, a.at[2]);
    });
  }
}

BOOST_AUTO_TEST_CASE(backward_filter) {
  int algorithm = 0;
  for (const Case& each : cases) {
    const Convolution c(each);
    const auto algo = static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm++ % 4);
    check(make_convolution_wgrad(c.spec, c.x, c.y, c.w), [&](const Arguments& a) {
      return cudnnConvolutionBackwardFilter(a.handle, a.alpha, *c.x_desc, a.at[0], *c.y_desc,
                                            a.at[1], c.desc, algo, nullptr, 0, a.beta, *c.w_desc,
                                            a.at[2]);
    });
  }
}

BOOST_AUTO_TEST_CASE(backward_bias) {
  for (const Case& each : cases) {
    const Convolution c(each);
    check(make_bias_gradient(c.y, c.bias), [&](const Arguments& a) {
      return cudnnConvolutionBackwardBias(a.handle, a.alpha, *c.y_desc, a.at[0], a.beta,
                                          *c.bias_desc, a.at[1]);
    });
  }
}

// y = act(alpha1 * conv(x, w) + alpha2 * z + bias).
BOOST_AUTO_TEST_CASE(fused) {
  for (const bool relu : {false, true}) {
    const ActivationDesc activation;
    succeeds(cudnnSetActivationDescriptor(activation,
                                          relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                          CUDNN_PROPAGATE_NAN, 0));
    const Activation f{relu ? KILN_ACTIVATION_RELU : KILN_ACTIVATION_IDENTITY};
    for (const Case& each : {cases[0], cases[1], cases[4]}) {
      const Convolution c(each, true);
      const auto call = [&](const Arguments& a, const void* z) {
        return cudnnConvolutionBiasActivationForward(
            a.handle, a.alpha, *c.x_desc, a.at[0], *c.w_desc, a.at[1], c.desc,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, nullptr, 0, a.beta, *c.y_desc, z,
            *c.bias_desc, a.at[a.at.size() - 2], activation, *c.y_desc, a.at.back());
      };
      const Tensor& z = c.y;
      check(make_convolution(c.spec, c.x, c.w, c.y, bias_activation_epilogue(&z, &c.bias, f)),
            [&](const Arguments& a) { return call(a, a.at[2]); }, {{-0.75, 1}});
      check(make_convolution(c.spec, c.x, c.w, c.y, bias_activation_epilogue(nullptr, &c.bias, f)),
            [&](const Arguments& a) { return call(a, a.at.back()); }, {{1, 0}});
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
