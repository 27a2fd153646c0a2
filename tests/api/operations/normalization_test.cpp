// Normalizations through the C API: plans and immediate calls, what may be left out, refusals.
#include <array>
#include <cmath>

#include "operation_check.hpp"

using namespace test;

namespace {

class NormDesc {
 public:
  explicit NormDesc(int affine = 1, int running = 1) {
    succeeds(kilnCreateNormalizationDescriptor(&descriptor_));
    succeeds(kilnSetNormalizationDescriptor(descriptor_, affine, running, 0, 0));
  }
  NormDesc(const NormDesc&) = delete;
  NormDesc& operator=(const NormDesc&) = delete;
  ~NormDesc() { kilnDestroyNormalizationDescriptor(descriptor_); }
  operator kilnNormalizationDescriptor_t() const { return descriptor_; }

 private:
  kilnNormalizationDescriptor_t descriptor_ = nullptr;
};

constexpr float one = 1, zero = 0, half = 0.5f;

// One channel of 1, 3, 5, 7: the mean is 4, the variance 5, the unbiased one 20 / 3.
struct Numbers {
  TensorDesc t{KILN_DATA_FLOAT, {2, 1, 1, 2}};
  Buffer<float> x{{1, 3, 5, 7}}, scale{{2}}, bias{{10}};
  Buffer<float> running_mean{{8}}, running_variance{{0}}, mean{{-1}}, deviation{{-1}};
  Buffer<float> y{{-1, -1, -1, -1}};
};

void close(float got, double want) { BOOST_TEST(std::fabs(got - want) < 1e-5); }

}  // namespace

BOOST_AUTO_TEST_SUITE(normalization)

BOOST_AUTO_TEST_CASE(training_by_immediate_call_and_by_plan) {
  const TestHandle handle;
  const NormDesc norm;
  for (const bool planned : {false, true}) {
    Numbers n;
    if (planned) {
      kilnPlan_t plan = nullptr;
      succeeds(kilnCreateNormalizationForwardTrainingPlan(handle, norm, n.t, nullptr, n.t, &plan));
      succeeds(kilnFinalizePlan(plan));
      succeeds(kilnExecuteNormalizationForwardTraining(
          handle, plan, &one, n.x.data(), n.scale.data(), n.bias.data(), nullptr, &half,
          n.running_mean.data(), n.running_variance.data(), n.mean.data(), n.deviation.data(),
          &zero, n.y.data()));
      succeeds(kilnDestroyPlan(plan));
    } else {
      succeeds(kilnNormalizationForwardTraining(
          handle, norm, &one, n.t, n.x.data(), n.scale.data(), n.bias.data(), nullptr, nullptr,
          &half, n.running_mean.data(), n.running_variance.data(), n.mean.data(),
          n.deviation.data(), &zero, n.t, n.y.data()));
    }
    close(n.mean.read()[0], 4);
    close(n.deviation.read()[0], 1 / std::sqrt(5.0));
    close(n.running_mean.read()[0], 6);
    close(n.running_variance.read()[0], 10.0 / 3);
    for (int i = 0; i < 4; ++i) close(n.y.read()[i], 10 + 2 * (2 * i - 3) / std::sqrt(5.0));
  }
}

BOOST_AUTO_TEST_CASE(inference_and_apply_with_an_activation) {
  const TestHandle handle;
  const NormDesc norm(0, 0);
  kilnActivationDescriptor_t relu = nullptr;
  succeeds(kilnCreateActivationDescriptor(&relu));
  succeeds(kilnSetActivationDescriptor(relu, KILN_ACTIVATION_RELU, 0));
  succeeds(kilnSetNormalizationActivation(norm, relu));
  succeeds(kilnDestroyActivationDescriptor(relu));
  Numbers n;
  const Buffer<float> mean({4}), variance({4}), deviation({0.5f});
  const std::vector<float> want{0, 0, 0.5f, 1.5f};
  succeeds(kilnNormalizationForwardInference(handle, norm, &one, n.t, n.x.data(), nullptr, nullptr,
                                             mean.data(), variance.data(), nullptr, nullptr, &zero,
                                             n.t, n.y.data()));
  BOOST_TEST(n.y.read() == want);
  Numbers again;
  succeeds(kilnNormalizationApply(handle, norm, &one, n.t, n.x.data(), nullptr, nullptr,
                                  mean.data(), deviation.data(), nullptr, nullptr, &zero, n.t,
                                  again.y.data()));
  BOOST_TEST(again.y.read() == want);
}

BOOST_AUTO_TEST_CASE(gradients_with_a_residual) {
  const TestHandle handle;
  const NormDesc norm;
  Numbers n;
  const Buffer<float> residual({0, 0, 0, 0}), dy({1, 2, 3, 4}), mean({4}), deviation({0.5f});
  const Buffer<float> dscale({-1}), dbias({-1}), dresidual({-1, -1, -1, -1}), dx({-1, -1, -1, -1});
  succeeds(kilnNormalizationBackward(handle, norm, &one, n.t, n.x.data(), n.scale.data(),
                                     n.bias.data(), mean.data(), deviation.data(), n.t,
                                     residual.data(), n.t, dy.data(), dscale.data(), dbias.data(),
                                     n.t, dresidual.data(), &zero, n.t, dx.data()));
  BOOST_TEST(dbias.read()[0] == 10);
  BOOST_TEST(dscale.read()[0] == 5);  // (-3 - 2 + 3 + 12) / 2
  BOOST_TEST(dresidual.read() == dy.read());
  for (int i = 0; i < 4; ++i) close(dx.read()[i], i + 1 - 2.5 - (2 * i - 3) * 0.5 * 5.0 / 4);
  const Buffer<float> again({-1, -1, -1, -1});
  succeeds(kilnNormalizationBackwardApply(handle, norm, &one, n.t, n.x.data(), n.scale.data(),
                                          mean.data(), deviation.data(), n.t, dresidual.data(),
                                          dscale.data(), dbias.data(), &zero, n.t, again.data()));
  BOOST_TEST(again.read() == dx.read());
}

BOOST_AUTO_TEST_CASE(moments_of_parts) {
  const TestHandle handle;
  const NormDesc norm(1, 0);
  Numbers n;
  const TensorDesc t(KILN_DATA_FLOAT, {1, 1, 1, 2});
  const Buffer<float> first({1, 3}), second({5, 7}), a({-1, -1, -1}), b({-1, -1, -1});
  succeeds(kilnNormalizationMoments(handle, t, first.data(), a.data()));
  succeeds(kilnNormalizationMoments(handle, t, second.data(), b.data()));
  BOOST_TEST(a.read() == (std::vector<float>{2, 2, 2}));
  std::vector<float> joined = a.read();
  for (const float value : b.read()) joined.push_back(value);
  const Buffer<float> parts(joined), moments({-1, -1, -1});
  succeeds(kilnCombineNormalizationMoments(handle, norm, KILN_DATA_FLOAT, 2, 1, parts.data(),
                                           nullptr, nullptr, nullptr, n.mean.data(),
                                           n.deviation.data(), moments.data()));
  BOOST_TEST(moments.read() == (std::vector<float>{4, 4, 20}));
  close(n.deviation.read()[0], 1 / std::sqrt(5.0));
}

// Two images of two channels of two pixels: 1 3 | 5 7 and 2 2 | 2 10.
BOOST_AUTO_TEST_CASE(statistics_of_groups_instances_and_pixels) {
  const TestHandle handle;
  const NormDesc norm(1, 1);  // running statistics count only with those of the batch
  const TensorDesc t(KILN_DATA_FLOAT, {2, 2, 1, 2});
  const Buffer<float> x({1, 3, 5, 7, 2, 2, 2, 10}), scale({2, 3}), bias({10, 20});
  const auto forward = [&](float* mean, float* deviation, const float* of_bias, float* y) {
    return kilnNormalizationForwardTraining(handle, norm, &one, t, x.data(), scale.data(), of_bias,
                                            nullptr, nullptr, nullptr, nullptr, nullptr, mean,
                                            deviation, &zero, t, y);
  };
  const auto untouched = [] { return std::vector<float>(8, -1); };
  {
    succeeds(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_GROUP, 1, 1));
    const Buffer<float> mean({-1, -1}), deviation({-1, -1}), y(untouched());
    succeeds(forward(mean.data(), deviation.data(), bias.data(), y.data()));
    BOOST_TEST(mean.read() == (std::vector<float>{4, 4}));
    close(deviation.read()[0], 1 / std::sqrt(5.0));
    close(deviation.read()[1], 1 / std::sqrt(12.0));
    close(y.read()[2], 20 + 3 / std::sqrt(5.0));
    close(y.read()[7], 20 + 3 * 6 / std::sqrt(12.0));
    bad_param(
        kilnNormalizationApply(handle, norm, &one, t, x.data(), scale.data(), bias.data(),
                               mean.data(), deviation.data(), nullptr, nullptr, &zero, t, y.data()),
        {"normDesc has statistics of group", "expected those of the batch"});
  }
  {
    succeeds(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_INSTANCE, 0, 1));
    const Buffer<float> mean({-1, -1, -1, -1}), deviation({-1, -1, -1, -1}), y(untouched());
    succeeds(forward(mean.data(), deviation.data(), bias.data(), y.data()));
    BOOST_TEST(mean.read() == (std::vector<float>{2, 6, 2, 6}));
    close(y.read()[0], 10 - 2);
    close(y.read()[3], 20 + 3);
    close(y.read()[7], 20 + 3);
  }
  {
    succeeds(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_PIXEL, 0, 0));
    succeeds(kilnSetNormalizationBias(norm, 0));
    const Buffer<float> deviation({-1, -1, -1, -1}), y(untouched());
    bad_param(forward(nullptr, deviation.data(), bias.data(), y.data()), {"bias is given"});
    bad_param(forward(deviation.data(), deviation.data(), nullptr, y.data()), {"mean is given"});
    succeeds(forward(nullptr, deviation.data(), nullptr, y.data()));
    close(deviation.read()[3], 1 / std::sqrt(52.0));
    close(y.read()[5], 2 * 2 / std::sqrt(52.0));
    close(y.read()[7], 3 * 10 / std::sqrt(52.0));
    // y = scale x s: the gradients of sum of dy y.
    const Buffer<float> dy({0, 0, 0, 0, 0, 1, 0, 0}), dscale({-1, -1}), dx(untouched());
    succeeds(kilnNormalizationBackward(
        handle, norm, &one, t, x.data(), scale.data(), nullptr, nullptr, deviation.data(), nullptr,
        nullptr, t, dy.data(), dscale.data(), nullptr, nullptr, nullptr, &zero, t, dx.data()));
    const double s = 1 / std::sqrt(52.0);
    close(dscale.read()[0], 2 * s);
    BOOST_TEST(dscale.read()[1] == 0);
    close(dx.read()[5], s * (2 - 2 * s * s * 4 / 2));
    close(dx.read()[7], s * (0 - 10 * s * s * 4 / 2));
    BOOST_TEST(dx.read()[0] == 0);
  }
}

BOOST_AUTO_TEST_CASE(statistics_are_read_back) {
  const NormDesc norm;
  kilnNormalizationStatistics_t statistics = KILN_NORMALIZATION_PIXEL;
  std::int64_t groups = -1;
  int centered = -1, bias = -1;
  succeeds(kilnGetNormalizationStatistics(norm, &statistics, &groups, &centered));
  BOOST_TEST((statistics == KILN_NORMALIZATION_BATCH && groups == 0 && centered == 1));
  succeeds(kilnGetNormalizationBias(norm, &bias));
  BOOST_TEST(bias == 1);
  bad_param(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_GROUP, 0, 1),
            {"groups is 0", "expected at least 1"});
  bad_param(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_PIXEL, 2, 1),
            {"groups is 2", "expected 0"});
  bad_param(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_BATCH, 0, 0),
            {"centered is 0"});
  bad_param(
      kilnSetNormalizationStatistics(norm, static_cast<kilnNormalizationStatistics_t>(7), 0, 1),
      {"statistics is 7"});
  bad_param(kilnSetNormalizationStatistics(nullptr, KILN_NORMALIZATION_PIXEL, 0, 1),
            {"descriptor is null"});
  bad_param(kilnSetNormalizationBias(nullptr, 1), {"descriptor is null"});
  bad_param(kilnGetNormalizationBias(nullptr, &bias), {"descriptor is null"});
  bad_param(kilnGetNormalizationStatistics(nullptr, &statistics, &groups, &centered),
            {"descriptor is null"});
  succeeds(kilnSetNormalizationStatistics(norm, KILN_NORMALIZATION_GROUP, 8, 0));
  succeeds(kilnSetNormalizationBias(norm, 0));
  succeeds(kilnGetNormalizationStatistics(norm, &statistics, &groups, &centered));
  BOOST_TEST((statistics == KILN_NORMALIZATION_GROUP && groups == 8 && centered == 0));
  succeeds(kilnGetNormalizationStatistics(norm, nullptr, nullptr, nullptr));
  succeeds(kilnGetNormalizationBias(norm, &bias));
  BOOST_TEST(bias == 0);
}

BOOST_AUTO_TEST_CASE(descriptors_are_read_back_and_keep_what_a_bad_setter_leaves) {
  const NormDesc norm(0, 1);
  int affine = -1, running = -1, frozen = -1;
  double epsilon = -1;
  bad_param(kilnSetNormalizationDescriptor(norm, 1, 1, 1, -1), {"epsilon is -1", "from 0"});
  bad_param(kilnSetNormalizationDescriptor(norm, 1, 1, 1, std::nan("")), {"epsilon is"});
  succeeds(kilnGetNormalizationDescriptor(norm, &affine, &running, &frozen, &epsilon));
  BOOST_TEST((affine == 0 && running == 1 && frozen == 0 && epsilon == 0));
  succeeds(kilnGetNormalizationDescriptor(norm, nullptr, nullptr, nullptr, nullptr));
  bad_param(kilnGetNormalizationDescriptor(nullptr, &affine, nullptr, nullptr, nullptr),
            {"descriptor is null"});
  bad_param(kilnCreateNormalizationDescriptor(nullptr), {"descriptor is null"});
}

BOOST_AUTO_TEST_CASE(refusals_name_the_argument) {
  const TestHandle handle;
  const NormDesc norm(0, 1);
  Numbers n;
  const auto train = [&](const float* scale, const float* factor, float* running) {
    return kilnNormalizationForwardTraining(
        handle, norm, &one, n.t, n.x.data(), scale, nullptr, nullptr, nullptr, factor, running,
        n.running_variance.data(), n.mean.data(), n.deviation.data(), &zero, n.t, n.y.data());
  };
  bad_param(train(n.scale.data(), &half, n.running_mean.data()),
            {"scale is given; expected null, as the descriptors leave it out"});
  bad_param(train(nullptr, nullptr, n.running_mean.data()), {"factor is null"});
  bad_param(train(nullptr, &half, nullptr), {"runningMean is null"});
  bad_param(train(nullptr, &half, n.mean.data()), {"mean is at", "overlaps runningMean"});
  const TensorDesc single(KILN_DATA_FLOAT, {1, 1, 1, 1});
  kilnPlan_t plan = nullptr;
  bad_param(
      kilnCreateNormalizationForwardTrainingPlan(handle, norm, single, nullptr, single, &plan),
      {"1 element a channel; expected at least 2"});
  bad_param(kilnCreateNormalizationForwardTrainingPlan(handle, nullptr, n.t, nullptr, n.t, &plan),
            {"normDesc is null"});
  succeeds(kilnCreateNormalizationMomentsPlan(handle, n.t, &plan));
  bad_param(
      kilnExecuteNormalizationApply(handle, plan, &one, n.x.data(), nullptr, nullptr, n.mean.data(),
                                    n.deviation.data(), nullptr, &zero, n.y.data()),
      {"plan is from kilnCreateNormalizationMomentsPlan"});
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_SUITE_END()
