// The canonical softmax problem and its line.
#include "problem/softmax.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "problem_support.hpp"

using namespace kiln;
using test::expected;
using test::fault_of;
using test::names_of;
using test::tensor;

namespace {

SoftmaxProblem forward(const Tensor& x, const Tensor& y) {
  return make_softmax_forward(KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_CHANNEL, x, y);
}
SoftmaxProblem backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  return make_softmax_backward(KILN_SOFTMAX_LOG, KILN_SOFTMAX_MODE_INSTANCE, y, dy, dx);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(softmax_problems)

BOOST_AUTO_TEST_CASE(fewer_dimensions_become_three) {
  const Tensor t = tensor(3, {2, 6, 7});
  const SoftmaxProblem problem = forward(t, t);
  BOOST_TEST(problem.rank == 1);
  BOOST_TEST((problem.dims == Dims{2, 6, 1, 1, 7}));
  BOOST_TEST((problem.x_strides == Dims{42, 7, 0, 0, 1}));
  BOOST_TEST((problem.dy_strides == Dims{}));
  BOOST_TEST(to_line(problem) == "2x6x7");
}

BOOST_AUTO_TEST_CASE(equal_problems_compare_equal) {
  Tensor t = tensor(4, {2, 6, 1, 7});
  const SoftmaxProblem problem = forward(t, t);
  t.strides[2] = 1234;  // has no effect, because the dimension has one element
  BOOST_TEST((forward(t, t) == problem));
  BOOST_TEST(
      !(make_softmax_forward(KILN_SOFTMAX_FAST, KILN_SOFTMAX_MODE_CHANNEL, t, t) == problem));
  t.strides[0] = 43;
  BOOST_TEST(!(forward(t, t) == problem));
}

BOOST_AUTO_TEST_CASE(lines_say_what_is_not_usual) {
  const Tensor nchw = tensor(4, {16, 64, 28, 28}, KILN_TENSOR_NCHW, KILN_DATA_HALF),
               nhwc = tensor(4, {16, 64, 28, 28}, KILN_TENSOR_NHWC, KILN_DATA_HALF);
  BOOST_TEST(to_line(forward(nchw, nhwc)) == "--dt f16 --layout nchw:nhwc 16x64x28x28");
  Tensor gaps = nchw;
  gaps.strides[0] += 8;
  BOOST_TEST(to_line(backward(nchw, gaps, nchw)) ==
             "--dir bwd --algorithm log --over image --dt f16 --dy-strides 50184:784:28:1 "
             "16x64x28x28");
}

BOOST_AUTO_TEST_CASE(operands_in_the_order_of_execution) {
  const Tensor t = tensor(4, {2, 3, 4, 5});
  BOOST_TEST(names_of(operands_of(forward(t, t))) == "x y!");
  BOOST_TEST(names_of(operands_of(backward(t, t, t))) == "y dy dx!");
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_legal) {
  const Tensor t = tensor(4, {0, 3, 4, 5});
  BOOST_TEST(forward(t, t).dims[0] == 0);
}

BOOST_AUTO_TEST_CASE(faults_name_the_field) {
  const Tensor t = tensor(4, {2, 3, 4, 5}), wider = tensor(4, {2, 3, 4, 6}),
               half = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NCHW, KILN_DATA_HALF);
  Tensor broadcast = t;
  broadcast.strides[1] = 0;
  BOOST_TEST(fault_of([&] { forward(wider, t); }) ==
             "xDesc has sizes 2x3x4x6; expected 2x3x4x5, as yDesc has");
  BOOST_TEST(fault_of([&] { backward(t, half, t); }) ==
             "dyDesc has data type f16; expected f32, as dxDesc has");
  BOOST_TEST(fault_of([&] { forward(t, broadcast); }).starts_with("yDesc: strides are 60:0:5:1"));
  BOOST_TEST(fault_of([&] { forward(broadcast, t); }) == "no fault");
  BOOST_TEST(
      fault_of([&] { forward(Tensor{}, t); }).starts_with("xDesc was created but never set"));
  BOOST_TEST(fault_of([&] {
               make_softmax_forward(static_cast<kilnSoftmaxAlgorithm_t>(7),
                                    KILN_SOFTMAX_MODE_CHANNEL, t, t);
             }) == "algorithm is 7; expected " + expected<kilnSoftmaxAlgorithm_t>());
  BOOST_TEST(fault_of([&] {
               make_softmax_backward(KILN_SOFTMAX_FAST, static_cast<kilnSoftmaxMode_t>(2), t, t, t);
             }) == "mode is 2; expected " + expected<kilnSoftmaxMode_t>());
}

BOOST_AUTO_TEST_SUITE_END()
