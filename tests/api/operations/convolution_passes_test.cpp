// The gradients of a convolution, the transposed convolution, and the fused forward pass.
#include "convolution_shapes.hpp"

using namespace test;

namespace {

void check_data_gradient(const ConvolutionSpec& spec, const Shapes& s) {
  const auto c = describe(spec);
  const auto w = describe_filter(s.w);
  const auto dy = describe(s.y), dx = describe(s.x);
  check(make_convolution_dgrad(spec, s.w, s.y, s.x),
        {.operation = "ConvolutionBackwardData",
         .names = {"w", "dy", "dx"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateConvolutionBackwardDataPlan(h, *w, *dy, *c, *dx, plan);
             },
         .execute = usual_execute<2>(kilnExecuteConvolutionBackwardData),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnConvolutionBackwardData(h, a.alpha, *w, a.at[0], *dy, a.at[1], *c, a.beta,
                                                  *dx, a.at[2]);
             }});
}

void check_filter_gradient(const ConvolutionSpec& spec, const Shapes& s) {
  const auto c = describe(spec);
  const auto dw = describe_filter(s.w);
  const auto dy = describe(s.y), x = describe(s.x);
  check(make_convolution_wgrad(spec, s.x, s.y, s.w),
        {.operation = "ConvolutionBackwardFilter",
         .names = {"x", "dy", "dw"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateConvolutionBackwardFilterPlan(h, *x, *dy, *c, *dw, plan);
             },
         .execute = usual_execute<2>(kilnExecuteConvolutionBackwardFilter),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnConvolutionBackwardFilter(h, a.alpha, *x, a.at[0], *dy, a.at[1], *c,
                                                    a.beta, *dw, a.at[2]);
             }});
}

void check_bias_gradient(const Shapes& s) {
  const auto dy = describe(s.y), db = describe(s.bias);
  check(make_bias_gradient(s.y, s.bias),
        {.operation = "ConvolutionBackwardBias",
         .names = {"dy", "db"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateConvolutionBackwardBiasPlan(h, *dy, *db, plan);
             },
         .execute = usual_execute<1>(kilnExecuteConvolutionBackwardBias),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnConvolutionBackwardBias(h, a.alpha, *dy, a.at[0], a.beta, *db, a.at[1]);
             }});
}

void check_transposed(const ConvolutionSpec& spec, const Shapes& s) {
  const auto c = describe(spec);
  const auto w = describe_filter(s.w);
  const auto x = describe(s.y), y = describe(s.x);
  check(make_convolution_dgrad(spec, s.w, s.y, s.x),
        {.operation = "ConvolutionTransposed",
         .names = {"w", "x", "y"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateConvolutionTransposedPlan(h, *x, *w, *c, *y, plan);
             },
         .execute =
             [](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
               return kilnExecuteConvolutionTransposed(h, plan, a.alpha, a.at[1], a.at[0], a.beta,
                                                       a.at[2]);
             },
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnConvolutionTransposed(h, a.alpha, *x, a.at[1], *w, a.at[0], *c, a.beta,
                                                *y, a.at[2]);
             }});
}

void check_fused(const ConvolutionSpec& spec, const Shapes& s, const Activation& activation,
                 const Tensor* residual, bool biased) {
  const auto c = describe(spec);
  const auto w = describe_filter(s.w);
  const auto x = describe(s.x), y = describe(s.y), f = describe(s.bias);
  const auto z_desc = residual != nullptr ? describe(*residual) : nullptr;
  const auto act = describe(activation);
  const kilnTensorDescriptor_t z =
      residual != nullptr ? static_cast<kilnTensorDescriptor_t>(*z_desc) : nullptr;
  const kilnTensorDescriptor_t bias = biased ? static_cast<kilnTensorDescriptor_t>(*f) : nullptr;
  Calls calls{.operation = "ConvolutionBiasActivationForward", .names = {"x", "w"}};
  if (residual != nullptr) calls.names.emplace_back("z");
  if (biased) calls.names.emplace_back("bias");
  calls.names.emplace_back("y");
  if (residual != nullptr && residual->strides == s.y.strides) calls.in_place = {"z"};
  calls.create = [=](kilnHandle_t h, kilnPlan_t* plan) {
    return kilnCreateConvolutionBiasActivationForwardPlan(h, *x, *w, *c, z, bias, *act, *y, plan);
  };
  const auto z_of = [=](const Arguments& a) { return z != nullptr ? a.at[2] : nullptr; };
  const auto bias_of = [=](const Arguments& a) {
    return bias != nullptr ? a.at[a.at.size() - 2] : nullptr;
  };
  calls.execute = [=](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
    return kilnExecuteConvolutionBiasActivationForward(h, plan, a.alpha, a.at[0], a.at[1], a.beta,
                                                       z_of(a), bias_of(a), a.at.back());
  };
  calls.immediate = [=, keep = z_desc](kilnHandle_t h, const Arguments& a) {
    return kilnConvolutionBiasActivationForward(h, a.alpha, *x, a.at[0], *w, a.at[1], *c, a.beta, z,
                                                z_of(a), bias, bias_of(a), *act, *y, a.at.back());
  };
  check(
      make_convolution(spec, s.x, s.w, s.y,
                       bias_activation_epilogue(residual, biased ? &s.bias : nullptr, activation)),
      calls);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution_passes)

BOOST_AUTO_TEST_CASE(data_gradient) {
  check_data_gradient(spec_of(KILN_DATA_FLOAT), Shapes(KILN_DATA_FLOAT));
  check_data_gradient(spec_of(KILN_DATA_DOUBLE, KILN_CONVOLUTION),
                      Shapes(KILN_DATA_DOUBLE, KILN_TENSOR_NHWC));
  Shapes gaps(KILN_DATA_HALF);
  gaps.x.strides = {700, 1, 60, 5};
  check_data_gradient(spec_of(KILN_DATA_HALF), gaps);
}

BOOST_AUTO_TEST_CASE(filter_gradient) {
  check_filter_gradient(spec_of(KILN_DATA_FLOAT), Shapes(KILN_DATA_FLOAT));
  check_filter_gradient(spec_of(KILN_DATA_DOUBLE, KILN_CONVOLUTION),
                        Shapes(KILN_DATA_DOUBLE, KILN_TENSOR_NHWC));
  Shapes gaps(KILN_DATA_BFLOAT16);
  gaps.w.strides = {40, 15, 5, 2};
  check_filter_gradient(spec_of(KILN_DATA_BFLOAT16), gaps);
}

BOOST_AUTO_TEST_CASE(bias_gradient) {
  check_bias_gradient(Shapes(KILN_DATA_FLOAT));
  check_bias_gradient(Shapes(KILN_DATA_DOUBLE, KILN_TENSOR_NHWC));
  check_bias_gradient(Shapes(KILN_DATA_HALF));
}

BOOST_AUTO_TEST_CASE(transposed) {
  check_transposed(spec_of(KILN_DATA_FLOAT), Shapes(KILN_DATA_FLOAT, KILN_TENSOR_NHWC));
  check_transposed(spec_of(KILN_DATA_DOUBLE), Shapes(KILN_DATA_DOUBLE));
}

BOOST_AUTO_TEST_CASE(fused_with_and_without_residual_and_bias) {
  const Shapes s(KILN_DATA_FLOAT), wide(KILN_DATA_DOUBLE, KILN_TENSOR_NHWC);
  const auto f32 = spec_of(KILN_DATA_FLOAT), f64 = spec_of(KILN_DATA_DOUBLE);
  check_fused(f32, s, {KILN_ACTIVATION_RELU, 0}, &s.y, true);
  check_fused(f32, s, {KILN_ACTIVATION_IDENTITY, 0}, &s.y, false);
  check_fused(f32, s, {KILN_ACTIVATION_LEAKY_RELU, 0.25}, nullptr, true);
  check_fused(f32, s, {KILN_ACTIVATION_TANH, 0}, nullptr, false);
  Tensor z = wide.y;
  z.strides = {0, 1, 42, 6};  // one image for the whole batch, and another layout than y
  check_fused(f64, wide, {KILN_ACTIVATION_GELU_ERF, 0}, &z, true);
}

// torch.nn.functional.conv_transpose1d(x, w, stride=2, dilation=4, output_padding=3), w {1, 10,
// 100}: taps 4 apart add x into y[2 i + 4 t] of (3 - 1) * 2 + 2 * 4 + 1 + 3 = 16 elements.
BOOST_AUTO_TEST_CASE(output_padding_of_the_stride_and_more) {
  constexpr auto f32 = KILN_DATA_FLOAT;
  const TestHandle handle;
  const TensorDesc x(f32, {1, 1, 3}), y(f32, {1, 1, 16}), longer(f32, {1, 1, 17});
  const FilterDesc w(f32, {1, 1, 3});
  const ConvolutionDesc convolution({0}, {0}, {2}, {4});
  const std::int64_t extra[] = {3}, more[] = {4};
  std::int64_t dims[3];
  succeeds(kilnGetConvolutionTransposedOutputDim(convolution, x, w, extra, 3, dims));
  BOOST_TEST(Sizes(dims, dims + 3) == (Sizes{1, 1, 16}));
  bad_param(kilnGetConvolutionTransposedOutputDim(convolution, x, w, more, 3, dims),
            {"outputPadding[0] is 4; expected 0 to 3, below the stride or the dilation"});
  const float one = 1, zero = 0;
  const Buffer<float> from({1, 2, 3}), filter({1, 10, 100}), to(std::vector<float>(16, 9));
  succeeds(kilnConvolutionTransposed(handle, &one, x, from.data(), w, filter.data(), convolution,
                                     &zero, y, to.data()));
  BOOST_TEST(
      (to.read() == std::vector<float>{1, 0, 2, 0, 13, 0, 20, 0, 130, 0, 200, 0, 300, 0, 0, 0}));
  kilnPlan_t plan = nullptr;
  bad_param(kilnCreateConvolutionTransposedPlan(handle, x, w, convolution, longer, &plan),
            {"xDesc has sizes 1x1x3; the convolution of yDesc gives 1x1x5"});
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_legal) {
  Shapes s(KILN_DATA_FLOAT);
  s.x.dims[0] = s.y.dims[0] = 0;
  const ConvolutionSpec spec = spec_of(KILN_DATA_FLOAT);
  const TestHandle handle;
  const float one = 1, zero = 0;
  const Buffer<float> dw(std::vector<float>(72, 5)), db(std::vector<float>(6, 5));
  const auto x = describe(s.x), y = describe(s.y), bias = describe(s.bias);
  const auto w = describe_filter(s.w);
  const auto c = describe(spec);
  // No images: nothing to write, and gradients that are sums of nothing.
  succeeds(kilnConvolutionBackwardData(handle, &one, *w, dw.data(), *y, nullptr, *c, &zero, *x,
                                       nullptr));
  succeeds(kilnConvolutionBackwardFilter(handle, &one, *x, nullptr, *y, nullptr, *c, &one, *w,
                                         dw.data()));
  BOOST_TEST(dw.read() == std::vector<float>(72, 5), boost::test_tools::per_element());
  succeeds(kilnConvolutionBackwardFilter(handle, &one, *x, nullptr, *y, nullptr, *c, &zero, *w,
                                         dw.data()));
  BOOST_TEST(dw.read() == std::vector<float>(72, 0), boost::test_tools::per_element());
  succeeds(kilnConvolutionBackwardBias(handle, &one, *y, nullptr, &zero, *bias, db.data()));
  BOOST_TEST(db.read() == std::vector<float>(6, 0), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
