// Batch normalization in all passes, types and layouts, its extremes, and the moments of parts.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "normalization_case.hpp"

BOOST_AUTO_TEST_SUITE(normalization)

namespace {

using namespace test;

using Case = NormalizationCase;

Problem problem_of(NormalizationPass pass, const NormalizationSpec& spec, const Tensor& t,
                   bool residual) {
  const Tensor* const r = residual ? &t : nullptr;
  switch (pass) {
    case NormalizationPass::inference: return make_normalization_inference(spec, t, r, t);
    case NormalizationPass::apply: return make_normalization_apply(spec, t, r, t);
    case NormalizationPass::backward: return make_normalization_backward(spec, t, r, t, r, t);
    case NormalizationPass::backward_apply: return make_normalization_backward_apply(spec, t, t, t);
    case NormalizationPass::moments: return make_normalization_moments(t);
    default: return make_normalization_training(spec, t, r, t);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_pass_type_and_layout) {
  auto share = share_of_cases();
  for (const auto pass :
       {NormalizationPass::training, NormalizationPass::inference, NormalizationPass::backward,
        NormalizationPass::backward_apply, NormalizationPass::moments})
    for (const DataType type : all_types)
      for (const kilnTensorFormat_t layout : normalization_layouts)
        for (const bool parts : {false, true}) {
          const bool one_step =
              pass == NormalizationPass::inference || pass == NormalizationPass::backward_apply;
          if (parts && one_step) continue;
          if (!share.takes(static_cast<int>(pass), type, layout, parts)) continue;
          // As many elements as make clusters and parts, and some that no vector has.
          Case item(problem_of(pass, with(KILN_ACTIVATION_RELU),
                               tensor_of(type, {41, 8, parts ? 12 : 7, 12}, layout), parts));
          item.move_x(3, 2);
          if (!parts && pass != NormalizationPass::moments) item.reread_result();
          BOOST_TEST(item.fault(parts) == "");
        }
}

// Relative to its deviation of 1, a mean of 10^4 is lost to sums of squares, which f32 would make
// wrong by all of the variance.
BOOST_AUTO_TEST_CASE(means_of_many_deviations_and_constant_channels) {
  const Tensor t = tensor_of(KILN_DATA_FLOAT, {6, 5, 9, 11});
  Case far(make_normalization_training({}, t, nullptr, t));
  far.move_x(1e4, std::sqrt(3.0));
  const Case::Run run = far.run();
  BOOST_TEST(far.fault_of(run) == "");
  for (std::int64_t c = 0; c < 5; ++c)  // the inverse deviation
    BOOST_TEST(std::fabs(run.tensors[run.tensors.size() - 2].at(c) - 1) < 0.1);

  Case outlier = far;  // the first element, around which the kernel takes sums
  outlier["x"].values[0] = -1e4;
  BOOST_TEST(outlier.fault() == "");

  Case constant(far.problem);
  constant.move_x(1e4, 0);
  const Case::Run same = constant.run();
  BOOST_TEST(constant.fault_of(same) == "");
  const HostTensor& bias = constant.tensors[2];
  for (std::int64_t i = 0; i < constant.result().operand.count(); ++i)
    BOOST_TEST(same.tensors.back().at(i) == bias.at(i / 99 % 5));
}

// As PyTorch has them: every element of the channel becomes NaN, and no other channel's.
BOOST_AUTO_TEST_CASE(a_nan_or_an_infinity_makes_its_channel_nan) {
  const Tensor t = tensor_of(KILN_DATA_FLOAT, {4, 3, 5, 5});
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -HUGE_VAL}) {
    Case item(make_normalization_training(with(KILN_ACTIVATION_RELU), t, nullptr, t));
    item["x"].values[25 + 7] = bad;  // of channel 1
    const Case::Run run = item.run();
    BOOST_TEST(item.fault_of(run) == "");
    for (std::int64_t i = 0; i < t.dims[0] * 75; ++i)
      BOOST_TEST(std::isnan(run.tensors.back().at(i)) == (i / 25 % 3 == 1));
  }
}

BOOST_AUTO_TEST_CASE(long_channels_have_the_same_bits_each_time) {
  const Tensor t =
      tensor_of(KILN_DATA_HALF, {32, 2, 50, 64}, KILN_TENSOR_NHWC);  // 102,400 a channel
  for (const bool parts : {false, true}) {
    Case item(make_normalization_moments(t));
    item.move_x(-2, 0.5);
    const Case::Run run = item.run(parts);
    BOOST_TEST(item.fault_of(run) == "");
    BOOST_TEST(run.tensors.back().at(0) == 102400);
    BOOST_TEST((item.run(parts).bytes == run.bytes));
  }
}

BOOST_AUTO_TEST_CASE(every_rank_and_any_strides) {
  const auto f32 = KILN_DATA_FLOAT;
  for (const std::vector<std::int64_t>& dims :
       {std::vector<std::int64_t>{2, 5}, {300, 1, 3}, {3, 3, 2, 3, 4}, {2, 70000, 1}})
    BOOST_TEST(
        Case(problem_of(NormalizationPass::training, {}, tensor_of(f32, dims), true)).fault() ==
        "");
  Tensor gaps = tensor_of(f32, {3, 4, 5, 6});
  gaps.strides = {200, 37, 6, 1};  // padded rows of channels
  const Tensor last = tensor_of(f32, {3, 4, 5, 6}, KILN_TENSOR_NHWC);
  NormalizationSpec bare;
  bare.affine = bare.running = false;
  BOOST_TEST(Case(make_normalization_training(bare, gaps, &last, last)).fault() == "");
  BOOST_TEST(Case(make_normalization_training(bare, last, &gaps, gaps)).fault() == "");
  NormalizationSpec frozen = with(KILN_ACTIVATION_SILU);
  frozen.frozen = true;
  BOOST_TEST(Case(make_normalization_backward(frozen, last, &gaps, last, &gaps, last)).fault() ==
             "");
  // Of nothing: statistics and gradients are 0.
  for (const auto pass : {NormalizationPass::inference, NormalizationPass::backward,
                          NormalizationPass::backward_apply, NormalizationPass::moments})
    BOOST_TEST(Case(problem_of(pass, {}, tensor_of(f32, {0, 3, 4}), false)).fault() == "");
}

BOOST_AUTO_TEST_CASE(results_in_place_of_x) {
  for (const auto pass : {NormalizationPass::training, NormalizationPass::backward,
                          NormalizationPass::backward_apply}) {
    const Case item(problem_of(pass, with(KILN_ACTIVATION_RELU),
                               tensor_of(KILN_DATA_BFLOAT16, {4, 16, 6, 4}, KILN_TENSOR_NHWC),
                               false));
    BOOST_TEST(item.fault_of(item.run(false, true), true) == "");
  }
}

BOOST_AUTO_TEST_CASE(every_activation) {
  auto share = share_of_cases(4);
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>())
    for (const auto pass : {NormalizationPass::apply, NormalizationPass::backward})
      for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF}) {
        if (!share.takes(mode, static_cast<int>(pass), type)) continue;
        Case item(problem_of(pass, with(mode), tensor_of(type, {4, 16, 3, 8}, KILN_TENSOR_NHWC),
                             type == KILN_DATA_HALF));
        BOOST_TEST(item.fault() == "");
      }
}

// The moments of two halves give what training gives of the whole.
BOOST_AUTO_TEST_CASE(parts_combine_to_the_whole) {
  const Tensor half = tensor_of(KILN_DATA_FLOAT, {5, 7, 6, 6}),
               whole = tensor_of(KILN_DATA_FLOAT, {10, 7, 6, 6});
  Case training(make_normalization_training({}, whole, nullptr, whole));
  training.move_x(100, 3);
  Case combined(make_normalization_combine({}, KILN_DATA_FLOAT, 3, 7));
  HostTensor& parts = combined["parts"];
  for (int part = 0; part < 2; ++part) {
    Case item(make_normalization_moments(half));
    std::copy_n(training["x"].values.begin() + part * 1260, 1260, item["x"].values.begin());
    const Case::Run run = item.run();
    // The part between them is empty.
    std::copy_n(run.tensors.back().values.begin(), 21, parts.values.begin() + part * 42);
  }
  std::fill_n(parts.values.begin() + 21, 21, 0);
  for (const char* name : {"running_mean", "running_variance"})
    combined[name].values = training[name].values;
  const Case::Run got = combined.run(), want = training.run();
  BOOST_TEST(combined.fault_of(got) == "");
  const auto of = [](const Case& item, const Case::Run& run, std::string_view name) {
    for (std::size_t i = 0; i < item.tensors.size(); ++i)
      if (item.tensors[i].operand.name == name && item.tensors[i].operand.written)
        return run.tensors[i].values;
    return std::vector<double>();
  };
  for (const char* name : {"mean", "deviation", "running_mean", "running_variance"}) {
    const std::vector<double> a = of(combined, got, name), b = of(training, want, name);
    BOOST_REQUIRE(a.size() == 7u);
    for (std::size_t i = 0; i < a.size(); ++i)
      BOOST_TEST(std::fabs(a[i] - b[i]) <= 1e-5 * (1 + std::fabs(b[i])), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
