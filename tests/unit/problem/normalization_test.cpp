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

BOOST_AUTO_TEST_SUITE_END()
