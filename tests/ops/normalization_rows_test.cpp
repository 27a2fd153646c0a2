// Normalizations by statistics of instances, groups and pixels: all types, layouts and lengths of
// rows, forward and backward, and their extremes.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "normalization_case.hpp"

BOOST_AUTO_TEST_SUITE(normalization_rows)

namespace {

using namespace test;

using Case = NormalizationCase;

constexpr kilnNormalizationStatistics_t all_statistics[] = {
    KILN_NORMALIZATION_INSTANCE, KILN_NORMALIZATION_GROUP, KILN_NORMALIZATION_PIXEL};

NormalizationSpec over(kilnNormalizationStatistics_t statistics, std::int64_t groups = 0,
                       kilnActivationMode_t mode = KILN_ACTIVATION_IDENTITY) {
  NormalizationSpec spec = with(mode);
  spec.statistics = statistics;
  spec.groups = groups;
  return spec;
}

Problem problem_of(bool backward, const NormalizationSpec& spec, const Tensor& t,
                   bool residual = false) {
  const Tensor* const r = residual ? &t : nullptr;
  return backward ? Problem(make_normalization_backward(spec, t, r, t, r, t))
                  : Problem(make_normalization_training(spec, t, r, t));
}

std::size_t index_of(const Case& item, std::string_view name) {
  for (std::size_t i = 0; i < item.tensors.size(); ++i)
    if (item.tensors[i].operand.name == name) return i;
  return item.tensors.size();
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_statistic_type_and_layout) {
  auto share = share_of_cases(8);
  for (const auto statistics : all_statistics)
    for (const bool backward : {false, true})
      for (const DataType type : all_types)
        for (const kilnTensorFormat_t layout : normalization_layouts)
          for (const bool centered : {true, false}) {
            if (!share.takes(statistics, backward, type, layout, centered)) continue;
            const std::int64_t groups = statistics == KILN_NORMALIZATION_GROUP ? 4 : 0;
            NormalizationSpec spec = over(statistics, groups, KILN_ACTIVATION_SILU);
            spec.centered = centered;
            spec.bias = centered;
            // Groups of ten channels share vectors of channels with each other.
            Case item(problem_of(backward, spec, tensor_of(type, {3, 40, 6, 8}, layout), backward));
            item.move_x(3, 2);
            item.reread_result();
            BOOST_TEST(item.fault() == "");
            BOOST_TEST(item.fault(true) == "");  // of two roads to dscale, or in stages
          }
}

// Rows that registers of a few threads hold, of a block, of a cluster, and those that are read
// twice.
BOOST_AUTO_TEST_CASE(rows_of_all_lengths) {
  auto share = share_of_cases(6);
  for (const std::int64_t length : {1, 3, 96, 1000, 4096, 20000, 300008})
    for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
      for (const bool backward : {false, true}) {
        if (!share.takes(length, type, backward)) continue;
        const std::int64_t rows = length < 5000 ? 37 : 3;
        NormalizationSpec spec = over(KILN_NORMALIZATION_PIXEL);
        const Case item(problem_of(backward, spec, tensor_of(type, {rows, length})));
        BOOST_TEST(item.fault() == "");
        if (backward) BOOST_TEST(item.fault(true) == "");  // dscale and dbias beside dx
        spec = over(KILN_NORMALIZATION_GROUP, 1);
        spec.affine = false;
        if (length < 5000) continue;
        BOOST_TEST(Case(problem_of(backward, spec, tensor_of(type, {2, 4, length / 4}))).fault() ==
                   "");
      }
}

// Channels last: blocks have whole groups, whatever vectors of channels they lie in; long ones are
// shared by clusters.
BOOST_AUTO_TEST_CASE(groups_of_any_size_with_channels_last) {
  auto share = share_of_cases(6);
  for (const auto& [channels, groups, space] : {std::array<std::int64_t, 3>{320, 32, 9},
                                                {64, 32, 30},
                                                {60, 4, 70},
                                                {36, 36, 9},
                                                {132, 11, 5},
                                                {48, 1, 9},
                                                {31, 31, 12},
                                                {512, 2, 9},
                                                {30, 3, 200}})
    for (const DataType type : {KILN_DATA_HALF, KILN_DATA_FLOAT})
      for (const bool backward : {false, true}) {
        if (!share.takes(channels, space, type, backward)) continue;
        const Tensor t = tensor_of(type, {2, channels, space, space}, KILN_TENSOR_NHWC);
        Case item(
            problem_of(backward, over(KILN_NORMALIZATION_GROUP, groups, KILN_ACTIVATION_SILU), t));
        item.move_x(-3, 2);
        BOOST_TEST(item.fault() == "");
        BOOST_TEST(item.fault(true) == "");
      }
}

BOOST_AUTO_TEST_CASE(means_of_many_deviations_and_constant_rows) {
  for (const auto statistics : all_statistics)
    for (const kilnTensorFormat_t layout : normalization_layouts) {
      const std::int64_t groups = statistics == KILN_NORMALIZATION_GROUP ? 3 : 0;
      const Tensor t = tensor_of(KILN_DATA_FLOAT, {2, 24, 12, 20}, layout);
      Case far(problem_of(false, over(statistics, groups), t));
      far.move_x(1e4, std::sqrt(3.0));
      const Case::Run run = far.run();
      BOOST_TEST(far.fault_of(run) == "");
      // The inverse deviation; that of 24 elements varies.
      const HostTensor& deviation = run.tensors[index_of(far, "deviation")];
      const double off = statistics == KILN_NORMALIZATION_PIXEL ? 0.8 : 0.2;
      for (std::int64_t i = 0; i < deviation.operand.count(); ++i)
        BOOST_TEST(std::fabs(deviation.at(i) - 1) < off);

      Case outlier = far;  // an element around which the kernel takes sums
      outlier["x"].values[0] = -1e4;
      BOOST_TEST(outlier.fault() == "");

      Case constant(far.problem);
      constant.move_x(1e4, 0);
      const Case::Run same = constant.run();
      BOOST_TEST(constant.fault_of(same) == "");
      const HostTensor& bias = constant["bias"];
      for (std::int64_t i = 0; i < constant.result().operand.count(); ++i)
        BOOST_TEST(same.tensors.back().at(i) == bias.at(i / 240 % 24));
    }
}

// As PyTorch has them: a NaN makes all of its row NaN. So does an infinity; not centered, the
// deviation is 0 then, and the infinity alone becomes NaN.
BOOST_AUTO_TEST_CASE(a_nan_or_an_infinity_stays_in_its_row) {
  for (const auto statistics : all_statistics)
    for (const bool centered : {true, false})
      for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity(), -HUGE_VAL}) {
        const std::int64_t groups = statistics == KILN_NORMALIZATION_GROUP ? 2 : 0;
        NormalizationSpec spec = over(statistics, groups);
        spec.centered = centered;
        const Tensor t = tensor_of(KILN_DATA_FLOAT, {2, 4, 5, 5});
        Case item(problem_of(false, spec, t));
        constexpr std::int64_t place = 100 + 25 + 7;  // image 1, channel 1, pixel 7
        item["x"].values[place] = bad;
        const Case::Run run = item.run();
        BOOST_TEST(item.fault_of(run) == "");
        for (std::int64_t i = 0; i < 200; ++i) {
          bool shares = i / 100 == 1 && i / 25 == 5;
          if (groups > 0) shares = i / 50 == 2;
          if (statistics == KILN_NORMALIZATION_PIXEL) shares = i / 100 == 1 && i % 25 == 7;
          const bool all = centered || std::isnan(bad);
          BOOST_TEST(std::isnan(run.tensors.back().at(i)) == (all ? shares : i == place));
        }
      }
}

BOOST_AUTO_TEST_CASE(long_rows_have_the_same_bits_each_time) {
  for (const kilnTensorFormat_t layout : normalization_layouts)
    for (const bool backward : {false, true}) {
      const Tensor t = tensor_of(KILN_DATA_HALF, {2, 20, 60, 64}, layout);
      Case item(problem_of(backward, over(KILN_NORMALIZATION_GROUP, 2), t));
      item.move_x(-2, 0.5);
      for (const bool staged : {false, true}) {
        const Case::Run run = item.run(staged);
        BOOST_TEST(item.fault_of(run) == "");
        BOOST_TEST((item.run(staged).bytes == run.bytes));
      }
    }
}

BOOST_AUTO_TEST_CASE(every_rank_and_any_strides) {
  const auto f32 = KILN_DATA_FLOAT;
  Tensor gaps = tensor_of(f32, {3, 4, 5, 6});
  gaps.strides = {200, 37, 6, 1};  // padded rows of channels
  const Tensor last = tensor_of(f32, {3, 4, 5, 6}, KILN_TENSOR_NHWC);
  Tensor turned = tensor_of(f32, {3, 4, 5, 6});
  turned.strides = {120, 30, 1, 5};  // columns of a plane are contiguous
  // No two axes of space are one.
  Tensor apart = tensor_of(f32, {2, 4, 3, 5, 6});
  apart.strides = {3000, 700, 200, 20, 2};
  const Tensor dense = tensor_of(f32, {2, 4, 3, 5, 6}),
               seven = tensor_of(f32, {2, 4, 2, 3, 2, 2, 2});
  for (const auto statistics : all_statistics) {
    const NormalizationSpec spec =
        over(statistics, statistics == KILN_NORMALIZATION_GROUP ? 2 : 0, KILN_ACTIVATION_TANH);
    for (const std::vector<std::int64_t>& dims :
         {std::vector<std::int64_t>{2, 6}, {300, 2, 3}, {3, 4, 2, 3, 4}, {2, 4, 1}})
      BOOST_TEST(Case(problem_of(false, spec, tensor_of(f32, dims), true)).fault() == "");
    BOOST_TEST(Case(make_normalization_training(spec, gaps, &last, turned)).fault() == "");
    BOOST_TEST(Case(make_normalization_training(spec, apart, nullptr, dense)).fault() == "");
    BOOST_TEST(Case(make_normalization_training(spec, turned, nullptr, turned)).fault() == "");
    BOOST_TEST(Case(make_normalization_backward(spec, last, &gaps, turned, &gaps, last)).fault() ==
               "");
    BOOST_TEST(
        Case(make_normalization_backward(spec, apart, nullptr, dense, nullptr, apart)).fault() ==
        "");
    if (statistics != KILN_NORMALIZATION_PIXEL)
      BOOST_TEST(Case(problem_of(true, spec, seven)).fault() == "");
    for (const bool backward : {false, true})  // of nothing, the sums are 0
      BOOST_TEST(Case(problem_of(backward, spec, tensor_of(f32, {0, 4, 3}))).fault() == "");
  }
}

// In stages blocks share a row that no cluster holds: forward, and where the sums of channels are
// wanted, of channels.
BOOST_AUTO_TEST_CASE(rows_in_stages) {
  auto share = share_of_cases(6);
  for (const auto& [channels, groups] :
       {std::array<std::int64_t, 2>{8, 1}, {24, 4}, {6, 6}, {12, 2}, {40, 2}})
    for (const kilnTensorFormat_t layout : normalization_layouts)
      for (const bool backward : {false, true})
        for (const bool affine : {true, false}) {
          if (!share.takes(channels, groups, layout, backward, affine)) continue;
          NormalizationSpec spec = over(KILN_NORMALIZATION_GROUP, groups, KILN_ACTIVATION_SILU);
          spec.affine = affine;
          spec.centered = channels != 12;
          const std::int64_t side = channels == 8 ? 130 : 66;
          Case item(problem_of(backward, spec,
                               tensor_of(KILN_DATA_HALF, {2, channels, side, side + 2}, layout)));
          item.move_x(5, 1);
          BOOST_TEST(item.fault_of(item.run(true)) == "");
          BOOST_TEST(item.fault_of(item.run(true, true), true) == "");  // in place
        }
}

// Blocks take pixels in turn, the last ones fewer.
BOOST_AUTO_TEST_CASE(sums_of_channels_beside_dx) {
  auto share = share_of_cases(6);
  for (const std::int64_t channels : {1, 5, 24, 96, 200})
    for (const kilnTensorFormat_t layout : normalization_layouts)
      for (const DataType type : all_types) {
        if (!share.takes(channels, layout, type)) continue;
        NormalizationSpec spec = over(KILN_NORMALIZATION_PIXEL, 0, KILN_ACTIVATION_GELU_TANH);
        spec.bias = spec.centered = channels != 24;
        Case item(
            problem_of(true, spec, tensor_of(type, {3, channels, 22, 24}, layout), channels == 96));
        item.move_x(2, 1);
        const Case::Run run = item.run(true);
        BOOST_TEST(item.fault_of(run) == "");
        BOOST_TEST((item.run(true).bytes == run.bytes));
        BOOST_TEST(item.fault_of(item.run(true, true), true) == "");  // in place
      }
}

// Not centered, dx needs no sum of g, but dbias does.
BOOST_AUTO_TEST_CASE(a_bias_without_a_mean) {
  for (const kilnTensorFormat_t layout : normalization_layouts) {
    NormalizationSpec spec = over(KILN_NORMALIZATION_GROUP, 2);
    spec.centered = false;
    Case item(problem_of(true, spec, tensor_of(KILN_DATA_HALF, {2, 12, 20, 22}, layout)));
    BOOST_TEST(item.fault() == "");
    BOOST_TEST(item.fault(true) == "");
  }
}

BOOST_AUTO_TEST_CASE(results_in_place_of_x) {
  for (const auto statistics : all_statistics)
    for (const bool backward : {false, true})
      for (const std::int64_t space : {6, 64}) {
        const NormalizationSpec spec =
            over(statistics, statistics == KILN_NORMALIZATION_GROUP ? 2 : 0, KILN_ACTIVATION_RELU);
        const Case item(
            problem_of(backward, spec,
                       tensor_of(KILN_DATA_BFLOAT16, {2, 16, space, space}, KILN_TENSOR_NHWC)));
        BOOST_TEST(item.fault_of(item.run(false, true), true) == "");
      }
}

BOOST_AUTO_TEST_CASE(without_scale_or_bias) {
  for (const bool backward : {false, true})
    for (const bool affine : {false, true}) {
      NormalizationSpec spec = over(KILN_NORMALIZATION_PIXEL, 0, KILN_ACTIVATION_GELU_TANH);
      spec.affine = affine;
      spec.bias = false;
      BOOST_TEST(Case(problem_of(backward, spec, tensor_of(KILN_DATA_FLOAT, {5, 24, 3}))).fault() ==
                 "");
    }
  NormalizationSpec batch;
  batch.bias = false;
  const Tensor t = tensor_of(KILN_DATA_FLOAT, {5, 24, 3});
  BOOST_TEST(Case(problem_of(false, batch, t)).fault() == "");
  BOOST_TEST(Case(problem_of(true, batch, t)).fault() == "");
}

BOOST_AUTO_TEST_SUITE_END()
