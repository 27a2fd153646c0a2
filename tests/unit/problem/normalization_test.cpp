// The canonical normalization problem and its line.
#include "problem/normalization.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "problem/problem.hpp"
#include "problem_support.hpp"

using namespace kiln;
using test::fault_of;
using test::names_of;
using test::tensor;

namespace {

NormalizationProblem training(const Tensor& x, const Tensor& y, const Tensor* residual = nullptr,
                              const NormalizationSpec& spec = {}) {
  return make_normalization_training(spec, x, residual, y);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(normalization_problems)

BOOST_AUTO_TEST_CASE(operands_in_the_order_of_execution) {
  const Tensor t = tensor(4, {2, 3, 4, 5});
  BOOST_TEST(names_of(operands_of(training(t, t, &t))) ==
             "x scale bias residual running_mean! running_variance! mean! deviation! y!");
  NormalizationSpec bare;
  bare.affine = bare.running = false;
  BOOST_TEST(names_of(operands_of(training(t, t, nullptr, bare))) == "x mean! deviation! y!");
  BOOST_TEST(names_of(operands_of(make_normalization_inference({}, t, nullptr, t))) ==
             "x scale bias mean variance y!");
  BOOST_TEST(names_of(operands_of(make_normalization_backward({}, t, &t, t, &t, t))) ==
             "x scale bias mean deviation residual dy dscale! dbias! dresidual! dx!");
  BOOST_TEST(names_of(operands_of(make_normalization_gradient({}, t, &t, t, t))) ==
             "x scale bias mean deviation residual dy dscale! dbias! dx!");
  BOOST_TEST(names_of(operands_of(make_normalization_backward_apply({}, t, t, t))) ==
             "x scale mean deviation dy dscale dbias dx!");
  BOOST_TEST(names_of(operands_of(make_normalization_moments(t))) == "x moments!");
  BOOST_TEST(names_of(operands_of(make_normalization_combine({}, KILN_DATA_HALF, 4, 3))) ==
             "parts running_mean! running_variance! mean! deviation! moments!");
}

BOOST_AUTO_TEST_CASE(statistics_of_groups_and_pixels_have_operands_of_their_own) {
  const Tensor t = tensor(5, {2, 6, 3, 4, 5});
  NormalizationSpec spec;
  spec.statistics = KILN_NORMALIZATION_GROUP;
  spec.groups = 3;
  const std::vector<Operand> groups = operands_of(training(t, t, &t, spec));
  BOOST_TEST(names_of(groups) == "x scale bias residual mean! deviation! y!");
  BOOST_TEST((groups[4].dims == Dims{2, 3, 1, 1, 1} && groups[4].strides[0] == 3));
  BOOST_TEST(training(t, t, nullptr, spec).count() == 2 * 60);
  spec.statistics = KILN_NORMALIZATION_PIXEL;
  spec.groups = 0;
  spec.bias = false;
  const std::vector<Operand> pixels = operands_of(training(t, t, nullptr, spec));
  BOOST_TEST(names_of(pixels) == "x scale mean! deviation! y!");
  BOOST_TEST((pixels[3].dims == Dims{2, 1, 3, 4, 5} && pixels[3].strides == Dims{60, 0, 20, 5, 1}));
  spec.centered = false;
  BOOST_TEST(names_of(operands_of(make_normalization_backward(spec, t, &t, t, &t, t))) ==
             "x scale deviation residual dy dscale! dresidual! dx!");
  spec.affine = false;
  BOOST_TEST(names_of(operands_of(make_normalization_backward(spec, t, nullptr, t, nullptr, t))) ==
             "x deviation dy dx!");
}

BOOST_AUTO_TEST_CASE(parameters_have_the_compute_type) {
  const Tensor t = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NCHW, KILN_DATA_HALF);
  const std::vector<Operand> operands = operands_of(training(t, t));
  BOOST_TEST((operands[0].type == KILN_DATA_HALF && operands[1].type == KILN_DATA_FLOAT));
  BOOST_TEST((operands[1].dims == Dims{1, 3, 1, 1, 1}));
}

BOOST_AUTO_TEST_CASE(lines_say_what_is_not_usual) {
  const Tensor t = tensor(4, {16, 64, 28, 28}, KILN_TENSOR_NHWC, KILN_DATA_HALF);
  BOOST_TEST(to_line(training(t, t)) == "--dt f16 --layout nhwc 16x64x28x28");
  NormalizationSpec spec;
  spec.frozen = true;
  spec.affine = false;
  spec.activation = make_activation({KILN_ACTIVATION_RELU});
  BOOST_TEST(to_line(make_normalization_backward(spec, t, &t, t, &t, t)) ==
             "--dir bwd --frozen --no-affine --residual --act relu --dt f16 --layout nhwc "
             "16x64x28x28");
  spec = {};
  spec.statistics = KILN_NORMALIZATION_GROUP;
  spec.groups = 32;
  spec.centered = spec.bias = false;
  BOOST_TEST(to_line(training(t, t, nullptr, spec)) ==
             "--over group --groups 32 --rms --no-bias --dt f16 --layout nhwc 16x64x28x28");
  spec = {};
  spec.statistics = KILN_NORMALIZATION_INSTANCE;
  BOOST_TEST(to_line(training(t, t, nullptr, spec)) ==
             "--over instance --dt f16 --layout nhwc 16x64x28x28");
  spec.statistics = KILN_NORMALIZATION_GROUP;
  spec.groups = 64;  // the same
  BOOST_TEST((training(t, t, nullptr, spec).groups == 64));
  BOOST_TEST(to_line(training(t, t, nullptr, spec)).starts_with("--over instance"));
  spec = {};
  spec.statistics = KILN_NORMALIZATION_PIXEL;
  BOOST_TEST(to_line(make_normalization_backward(spec, t, nullptr, t, nullptr, t)) ==
             "--dir bwd --over pixel --dt f16 --layout nhwc 16x64x28x28");
  spec = {};
  spec.running = false;
  spec.epsilon = 0.001;
  BOOST_TEST(to_line(make_normalization_combine(spec, KILN_DATA_DOUBLE, 8, 64)) ==
             "--dir combine --no-running --epsilon 0.001 --dt f64 8x64");
}

// What must move: both tensors once, and of running statistics what is read and written.
BOOST_AUTO_TEST_CASE(work_counts_every_operand) {
  const Tensor t = tensor(4, {2, 4, 4, 5});
  BOOST_TEST(work_of(training(t, t), false).bytes == 4 * (2 * 160 + 2 * 4 + 2 * 2 * 4 + 2 * 4));
}

BOOST_AUTO_TEST_CASE(faults_name_the_field) {
  const Tensor t = tensor(4, {2, 3, 4, 5}), one = tensor(4, {1, 3, 1, 1}),
               half = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NCHW, KILN_DATA_HALF),
               flat = tensor(1, {7});
  Tensor broadcast = t;
  broadcast.strides[1] = 0;
  BOOST_TEST(fault_of([&] { training(half, t); }) ==
             "xDesc has data type f16; expected f32, as yDesc has");
  BOOST_TEST(fault_of([&] { training(t, t, &one); }) ==
             "residualDesc has sizes 1x3x1x1; expected 2x3x4x5, as yDesc has");
  BOOST_TEST(fault_of([&] { training(t, broadcast); }).starts_with("yDesc: strides are 60:0:5:1"));
  BOOST_TEST(fault_of([&] { training(one, one); }) ==
             "xDesc has sizes 1x3x1x1, 1 element a channel; expected at least 2, from which "
             "training estimates a variance");
  BOOST_TEST(fault_of([&] { make_normalization_inference({}, one, nullptr, one); }) == "no fault");
  BOOST_TEST(fault_of([&] {
               training(flat, flat);
             }).starts_with("xDesc has 1 dimension; expected at least 2"));
  BOOST_TEST(fault_of([&] { make_normalization_backward({}, t, &t, t, nullptr, t); }) ==
             "dresidualDesc is null; expected both residualDesc and dresidualDesc, or neither");
  NormalizationSpec spec;
  spec.epsilon = -1;
  BOOST_TEST(fault_of([&] { training(t, t, nullptr, spec); }) ==
             "epsilon is -1; expected a finite number from 0");
  BOOST_TEST(fault_of([&] {
               make_normalization_combine({}, KILN_DATA_FLOAT, 0, 3);
             }).starts_with("parts is 0; expected 1 to "));
}

BOOST_AUTO_TEST_CASE(faults_of_statistics_name_the_field) {
  const Tensor t = tensor(4, {2, 12, 4, 5}), six = tensor(6, {2, 3, 1, 2, 1, 2});
  NormalizationSpec spec;
  spec.statistics = KILN_NORMALIZATION_GROUP;
  BOOST_TEST(fault_of([&] { training(t, t, nullptr, spec); }) ==
             "groups is 0; expected at least 1");
  spec.groups = 5;
  BOOST_TEST(fault_of([&] { training(t, t, nullptr, spec); }) ==
             "groups is 5; expected a divisor of xDesc's 12 channels");
  spec.groups = 4;
  BOOST_TEST(fault_of([&] { make_normalization_apply(spec, t, nullptr, t); }) ==
             "normDesc has statistics of group; expected those of the batch, which alone this "
             "function takes");
  BOOST_TEST(fault_of([&] { make_normalization_combine(spec, KILN_DATA_FLOAT, 2, 3); }) ==
             "normDesc has statistics of group; expected those of the batch, whose parts have "
             "moments");
  spec.frozen = true;
  BOOST_TEST(fault_of([&] {
               make_normalization_backward(spec, t, nullptr, t, nullptr, t);
             }).starts_with("normDesc is frozen and has statistics of group; expected one"));
  spec = {};
  spec.groups = 4;
  BOOST_TEST(fault_of([&] { training(t, t, nullptr, spec); }) ==
             "groups is 4; expected 0 with statistics of batch");
  spec.groups = 0;
  spec.centered = false;
  BOOST_TEST(fault_of([&] { training(t, t, nullptr, spec); }) ==
             "centered is 0; expected 1 with statistics of the batch");
  spec.statistics = KILN_NORMALIZATION_PIXEL;
  BOOST_TEST(fault_of([&] {
               training(six, six, nullptr, spec);
             }).starts_with("yDesc has 6 dimensions; expected at most 5 with statistics of"));
  const Tensor one = tensor(4, {1, 1, 1, 1});
  BOOST_TEST(fault_of([&] { training(one, one, nullptr, spec); }) == "no fault");
}

BOOST_AUTO_TEST_SUITE_END()
