// kiln.hpp: normalizations, and convolutions that make moments or go on through their gradient.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <span>
#include <vector>

#include "api/raii_case.hpp"

namespace {

using test::raii::f32;
using test::raii::nchw;
using test::raii::throws;

}  // namespace

BOOST_AUTO_TEST_SUITE(raii_normalization)

// One channel of 1, 3, 5, 7, in two parts, too.
BOOST_AUTO_TEST_CASE(normalization_its_gradient_and_its_moments) {
  const kiln::Handle handle(test::device_kind());
  const kiln::ActivationDescriptor relu(KILN_ACTIVATION_RELU);
  const kiln::NormalizationDescriptor norm({.affine = false, .epsilon = 11, .activation = &relu});
  const kiln::TensorDescriptor t(nchw, f32, {2, 1, 1, 2}), part(nchw, f32, {1, 1, 1, 2});
  const test::Buffer<float> x({1, 3, 5, 7}), dy({1, 2, 3, 4}), y({9, 9, 9, 9}), dx({9, 9, 9, 9});
  const test::Buffer<float> mean({9}), deviation({9}), running_mean({0}), running_variance({1});
  const test::Buffer<float> dscale({9}), dbias({9}), moments({9, 9, 9}), parts({2, 2, 2, 2, 6, 2});
  kiln::NormalizationForwardTraining training(handle, {.normalization = norm, .x = t, .y = t});
  training.finalize();
  training.execute(handle,
                   {.x = x.data(),
                    .running_mean = running_mean.data(),
                    .running_variance = running_variance.data(),
                    .mean = mean.data(),
                    .inverse_deviation = deviation.data(),
                    .y = y.data()},
                   0.5);
  BOOST_TEST(y.read() == (std::vector<float>{0, 0, 0.25f, 0.75f}));
  BOOST_TEST(running_mean.read()[0] == 2);
  kiln::NormalizationApply apply(handle, {.normalization = norm, .x = t, .y = t});
  apply.finalize();
  apply.execute(
      handle,
      {.x = x.data(), .mean = mean.data(), .inverse_deviation = deviation.data(), .y = dx.data()});
  BOOST_TEST(dx.read() == y.read());
  kiln::NormalizationForwardInference inference(handle, {.normalization = norm, .x = t, .y = t});
  inference.finalize();
  const test::Buffer<float> variance({5}), same({9, 9, 9, 9});
  inference.execute(
      handle, {.x = x.data(), .mean = mean.data(), .variance = variance.data(), .y = same.data()});
  BOOST_TEST(same.read() == y.read());
  kiln::NormalizationBackward backward(handle, {.normalization = norm, .x = t, .dy = t, .dx = t});
  backward.finalize();
  backward.execute(handle, {.x = x.data(),
                            .mean = mean.data(),
                            .inverse_deviation = deviation.data(),
                            .dy = dy.data(),
                            .dscale = dscale.data(),
                            .dbias = dbias.data(),
                            .dx = dx.data()});
  BOOST_TEST(dbias.read()[0] == 7);
  BOOST_TEST(dscale.read()[0] == 3.75f);  // 3 / 4 + 4 * 3 / 4
  kiln::NormalizationBackwardApply rest(handle, {.normalization = norm, .x = t, .dy = t, .dx = t});
  rest.finalize();
  rest.execute(handle, {.x = x.data(),
                        .mean = mean.data(),
                        .inverse_deviation = deviation.data(),
                        .dy = dy.data(),
                        .dscale = dscale.data(),
                        .dbias = dbias.data(),
                        .dx = dx.data()});
  // deviation (dy - 7 / 4 - (x - mean) deviation * 3.75 / 4)
  BOOST_TEST(dx.read()[0] == 0.25f * (dy.read()[0] - 1.75f - (x.read()[0] - 4) * 0.25f * 0.9375f));
  kiln::NormalizationMoments measure(handle, part);
  measure.finalize();
  measure.execute(handle, {.x = x.data(), .moments = moments.data()});
  BOOST_TEST(moments.read() == (std::vector<float>{2, 2, 2}));
  kiln::CombineNormalizationMoments combine(handle, norm, part, 2);
  combine.finalize();
  combine.execute(handle, {.part_moments = parts.data(),
                           .running_mean = running_mean.data(),
                           .running_variance = running_variance.data(),
                           .mean = mean.data(),
                           .inverse_deviation = deviation.data(),
                           .moments = moments.data()});
  BOOST_TEST(moments.read() == (std::vector<float>{4, 4, 20}));
  BOOST_TEST(deviation.read()[0] == 0.25f);
  BOOST_CHECK_THROW(
      apply.execute(handle,
                    {.x = x.data(), .mean = nullptr, .inverse_deviation = nullptr, .y = dx.data()}),
      kiln::Exception);
}

BOOST_AUTO_TEST_CASE(normalization_by_statistics_of_groups) {
  const kiln::Handle handle(test::device_kind());
  const kiln::NormalizationDescriptor norm({.epsilon = 11,
                                            .statistics = KILN_NORMALIZATION_GROUP,
                                            .groups = 1,
                                            .centered = false,
                                            .bias = false});
  const kiln::TensorDescriptor t(nchw, f32, {2, 2, 1, 2});
  const test::Buffer<float> x({1, 1, 1, 1, 0, 0, 4, 6}), scale({1, 2});
  const test::Buffer<float> deviation({9, 9}), y(std::vector<float>(8, 9));
  kiln::NormalizationForwardTraining forward(handle, {.normalization = norm, .x = t, .y = t});
  forward.finalize();
  std::vector<float> one(1);
  kiln::NormalizationForwardTraining::Operands operands{.x = x.data(),
                                                        .scale = scale.data(),
                                                        .inverse_deviation = std::span<float>(one),
                                                        .y = y.data()};
  BOOST_CHECK_THROW(forward.execute(handle, operands), kiln::Exception);  // there are two
  operands.inverse_deviation = deviation.data();
  forward.execute(handle, operands);
  BOOST_TEST(deviation.read()[1] == 1 / std::sqrt(24.0f));
  BOOST_TEST(y.read()[7] == 12 * deviation.read()[1]);
  const test::Buffer<float> dy(std::vector<float>(8, 1)), dscale({9, 9}),
      dx(std::vector<float>(8, 9));
  kiln::NormalizationBackward backward(handle, {.normalization = norm, .x = t, .dy = t, .dx = t});
  backward.finalize();
  backward.execute(handle, {.x = x.data(),
                            .scale = scale.data(),
                            .inverse_deviation = deviation.data(),
                            .dy = dy.data(),
                            .dscale = dscale.data(),
                            .dx = dx.data()});
  BOOST_TEST(std::fabs(dscale.read()[1] - 2 / std::sqrt(12.0) - 10 / std::sqrt(24.0)) < 1e-5);
  BOOST_TEST(dx.read()[4] == deviation.read()[1]);  // its x is 0
}

BOOST_AUTO_TEST_CASE(an_epilogue_with_moments) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor x(nchw, f32, {1, 1, 2, 2}), y(nchw, f32, {1, 2, 2, 2});
  const kiln::FilterDescriptor w(nchw, f32, {2, 1, 1, 1});
  const kiln::ConvolutionDescriptor convolution(kiln::ConvolutionFields{});
  const kiln::Epilogue epilogue = kiln::Epilogue().moments(y);
  const test::Buffer<float> xs({1, 3, 5, 7}), ws({1, -2}), ms(std::vector<float>(6, 9)),
      ys(std::vector<float>(8, 9));
  using Operation = kiln::ConvolutionForwardEpilogue;
  Operation plan(handle,
                 {.x = x, .w = w, .convolution = convolution, .epilogue = epilogue, .y = y});
  plan.finalize();
  plan.execute(handle, {.x = xs.data(), .w = ws.data(), .epilogue = {ms.data()}, .y = ys.data()});
  BOOST_TEST(ms.read() == std::vector<float>({4, 4, 4, -8, 20, 80}),
             boost::test_tools::per_element());
  const std::array<float, 5> few{};
  throws(
      [&] {
        plan.execute(
            handle, {.x = xs.data(), .w = ws.data(), .epilogue = {std::span(few)}, .y = ys.data()});
      },
      KILN_STATUS_BAD_PARAM, "epilogue[0] is a span of 5 elements; expected at least 6");
}

// dx = w dy = {2, 4, -2, 6}, p = x - 2 = {-1, 0, 1, 2}: what passes relu is {0, 0, -2, 6}.
BOOST_AUTO_TEST_CASE(an_epilogue_with_the_gradient_of_a_normalization) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor x(nchw, f32, {1, 1, 2, 2});
  const kiln::FilterDescriptor w(nchw, f32, {1, 1, 1, 1});
  const kiln::ConvolutionDescriptor convolution(kiln::ConvolutionFields{});
  const kiln::ActivationDescriptor relu(KILN_ACTIVATION_RELU);
  kiln::NormalizationDescriptor::Fields fields;
  fields.affine = false;
  fields.activation = &relu;
  const kiln::NormalizationDescriptor norm(fields);
  const kiln::Epilogue epilogue = kiln::Epilogue().normalization_gradient(norm, x);
  const test::Buffer<float> dy({1, 2, -1, 3}), ws({2}), xs({1, 2, 3, 4}), mean({2}), deviation({1}),
      dscale({9}), dbias({9}), dx(std::vector<float>(4, 9));
  using Operation = kiln::ConvolutionTransposedEpilogue;
  Operation plan(handle,
                 {.x = x, .w = w, .convolution = convolution, .epilogue = epilogue, .y = x});
  plan.finalize();
  plan.execute(handle,
               {.x = dy.data(),
                .w = ws.data(),
                .epilogue = {xs.data(), mean.data(), deviation.data(), dscale.data(), dbias.data()},
                .y = dx.data()});
  BOOST_TEST(dx.read() == std::vector<float>({0, 0, -2, 6}), boost::test_tools::per_element());
  BOOST_TEST(dbias.read() == std::vector<float>({4}), boost::test_tools::per_element());
  BOOST_TEST(dscale.read() == std::vector<float>({10}), boost::test_tools::per_element());
  const std::array<float, 3> few{};
  throws(
      [&] {
        plan.execute(handle, {.x = dy.data(),
                              .w = ws.data(),
                              .epilogue = {std::span(few), mean.data(), deviation.data(),
                                           dscale.data(), dbias.data()},
                              .y = dx.data()});
      },
      KILN_STATUS_BAD_PARAM, "epilogue[0] is a span of 3 elements; expected at least 4");
}

BOOST_AUTO_TEST_SUITE_END()
