// The canonical pointwise problem and its line.
#include "problem/pointwise.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "problem_support.hpp"

using namespace kiln;
using test::expected;
using test::fault_of;
using test::names_of;
using test::tensor;

BOOST_AUTO_TEST_SUITE(pointwise_problems)

BOOST_AUTO_TEST_CASE(broadcast_inputs_have_strides_of_0) {
  const PointwiseProblem problem =
      make_add(tensor(4, {1, 3, 1, 5}), tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NHWC));
  BOOST_TEST((problem.dims == Dims{2, 3, 1, 4, 5}));
  BOOST_TEST((problem.views[0].strides == Dims{0, 5, 0, 0, 1}));
  BOOST_TEST((problem.output().strides == Dims{60, 1, 0, 15, 3}));
  BOOST_TEST(problem.inputs() == 1u);
  // Broadcasting by sizes of 1 and by strides of 0 gives the same problem.
  Tensor by_strides = tensor(4, {2, 3, 4, 5});
  by_strides.strides = {0, 5, 0, 1};
  BOOST_TEST((make_add(by_strides, tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NHWC)) == problem));
}

BOOST_AUTO_TEST_CASE(set_scale_transform_and_add_are_two_kinds) {
  const Tensor t = tensor(3, {2, 3, 4});
  BOOST_TEST((make_fill(t).op == PointwiseOp::fill));
  BOOST_TEST((make_transform(t, t) == make_add(t, t)));
}

BOOST_AUTO_TEST_CASE(arithmetic_is_in_double_if_any_operand_is) {
  const auto transform = [](DataType from, DataType to) {
    return make_transform(tensor(3, {2, 3, 4}, KILN_TENSOR_NCHW, from),
                          tensor(3, {2, 3, 4}, KILN_TENSOR_NCHW, to))
        .compute_type();
  };
  BOOST_TEST(transform(KILN_DATA_HALF, KILN_DATA_BFLOAT16) == KILN_DATA_FLOAT);
  BOOST_TEST(transform(KILN_DATA_HALF, KILN_DATA_DOUBLE) == KILN_DATA_DOUBLE);
  BOOST_TEST(transform(KILN_DATA_DOUBLE, KILN_DATA_HALF) == KILN_DATA_DOUBLE);
}

BOOST_AUTO_TEST_CASE(coefficients_of_modes_without_one_make_no_difference) {
  const Tensor t = tensor(3, {2, 3, 4});
  const auto forward = [&](kilnActivationMode_t mode, double coefficient) {
    return make_activation_forward({mode, coefficient}, t, t);
  };
  BOOST_TEST((forward(KILN_ACTIVATION_TANH, 3) == forward(KILN_ACTIVATION_TANH, std::nan(""))));
  BOOST_TEST(!(forward(KILN_ACTIVATION_ELU, 3) == forward(KILN_ACTIVATION_ELU, 4)));
}

BOOST_AUTO_TEST_CASE(operands_in_the_order_of_execution) {
  const Tensor t = tensor(3, {2, 3, 4});
  const auto backward = [&](kilnActivationMode_t mode) {
    return names_of(operands_of(make_activation_backward({mode, 0}, t, "saved", t, t)));
  };
  BOOST_TEST(names_of(operands_of(make_fill(t))) == "y!");
  BOOST_TEST(names_of(operands_of(make_transform(t, t))) == "x y!");
  BOOST_TEST(names_of(operands_of(make_binary(KILN_OP_TENSOR_MUL, t, t, t))) == "a b c!");
  BOOST_TEST(backward(KILN_ACTIVATION_TANH) == "y dy dx!");
  BOOST_TEST(backward(KILN_ACTIVATION_SILU) == "x dy dx!");
  BOOST_TEST(names_of(operands_of(make_activation_backward({KILN_ACTIVATION_LEAKY_RELU, -0.5}, t,
                                                           "xDesc", t, t))) == "x dy dx!");
}

BOOST_AUTO_TEST_CASE(what_gradients_of_activations_look_at) {
  for (const auto from_x :
       {KILN_ACTIVATION_GELU_ERF, KILN_ACTIVATION_GELU_TANH, KILN_ACTIVATION_SILU,
        KILN_ACTIVATION_SOFTPLUS, KILN_ACTIVATION_HARD_SWISH, KILN_ACTIVATION_ABS,
        KILN_ACTIVATION_LOG, KILN_ACTIVATION_SQUARE, KILN_ACTIVATION_POW, KILN_ACTIVATION_MISH,
        KILN_ACTIVATION_HARD_SIGMOID})
    BOOST_TEST(!gradient_from_output({from_x, 0}));
  for (const auto from_y : {KILN_ACTIVATION_ELU, KILN_ACTIVATION_EXP, KILN_ACTIVATION_SQRT,
                            KILN_ACTIVATION_CLIP, KILN_ACTIVATION_LINEAR})
    BOOST_TEST(gradient_from_output({from_y, 1, 2}));
  BOOST_TEST(gradient_from_output({KILN_ACTIVATION_LEAKY_RELU, 0.1}));
  BOOST_TEST(gradient_from_output({KILN_ACTIVATION_LEAKY_RELU, 0}));
  BOOST_TEST(!gradient_from_output({KILN_ACTIVATION_LEAKY_RELU, -0.1}));
}

BOOST_AUTO_TEST_CASE(lines_say_what_is_not_usual) {
  const Tensor t = tensor(4, {2, 3, 4, 5}), nhwc = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NHWC);
  BOOST_TEST(to_line(make_fill(t)) == "--op fill 2x3x4x5");
  BOOST_TEST(to_line(make_transform(t, nhwc)) == "--op copy --layout nchw:nhwc 2x3x4x5");
  BOOST_TEST(to_line(make_binary(KILN_OP_TENSOR_MAX, tensor(4, {1, 3, 4, 5}), t, t)) ==
             "--op max --a-strides 0:20:5:1 1x3x4x5:2x3x4x5:2x3x4x5");
  BOOST_TEST(to_line(make_activation_forward({KILN_ACTIVATION_POW, 1, 0.5}, t, t)) ==
             "--act pow --coef 1 --coef2 0.5 2x3x4x5");
  BOOST_TEST(to_line(make_activation_forward({KILN_ACTIVATION_CLIP, -HUGE_VAL, 6}, t, t)) ==
             "--act clip --coef -inf --coef2 6 2x3x4x5");
  BOOST_TEST(to_line(make_binary(KILN_OP_TENSOR_GE, t, t, t)) == "--op ge 2x3x4x5");
  BOOST_TEST(to_line(make_activation_forward({KILN_ACTIVATION_ELU, 0.25}, t, t)) ==
             "--act elu --coef 0.25 2x3x4x5");
  BOOST_TEST(
      to_line(make_activation_backward({KILN_ACTIVATION_SILU, 0}, nhwc, "xDesc", nhwc, nhwc)) ==
      "--dir bwd --act silu --layout nhwc 2x3x4x5");
}

BOOST_AUTO_TEST_CASE(faults_name_the_field) {
  const Tensor t = tensor(4, {2, 3, 4, 5}), wider = tensor(4, {2, 3, 4, 6}),
               half = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NCHW, KILN_DATA_HALF);
  Tensor folded = t;
  folded.strides[2] = 4;
  BOOST_TEST(fault_of([&] { make_transform(half, t); }) == "no fault");
  BOOST_TEST(fault_of([&] { make_add(half, t); }) ==
             "xDesc has data type f16; expected f32, as yDesc has");
  BOOST_TEST(fault_of([&] {
               make_transform(tensor(4, {1, 3, 4, 5}), t);
             }) == "xDesc has sizes 1x3x4x5; expected 2x3x4x5, as yDesc has");
  BOOST_TEST(fault_of([&] { make_add(wider, t); }) ==
             "xDesc: dims[3] is 6; expected 1 or 5, as yDesc has");
  BOOST_TEST(fault_of([&] {
               make_add(tensor(3, {2, 3, 4}), t);
             }) == "xDesc has 3 dimensions; expected 4, as yDesc has");
  BOOST_TEST(fault_of([&] { make_fill(folded); }).starts_with("yDesc: strides are 60:20:4:1"));
  BOOST_TEST(fault_of([&] { make_binary(KILN_OP_TENSOR_ADD, t, wider, t); }) ==
             "bDesc: dims[3] is 6; expected 1 or 5, as cDesc has");
  BOOST_TEST(fault_of([&] { make_binary(static_cast<kilnOpTensorOp_t>(9), t, t, t); }) ==
             "op is 9; expected " + expected<kilnOpTensorOp_t>());
  BOOST_TEST(fault_of([&] {
               make_activation_forward({static_cast<kilnActivationMode_t>(12), 0}, t, t);
             }) == "mode is 12; expected " + expected<kilnActivationMode_t>());
  BOOST_TEST(fault_of([&] {
               make_activation_forward({KILN_ACTIVATION_ELU, -1}, t, t);
             }) == "coef is -1; expected a finite value of at least 0");
  BOOST_TEST(fault_of([&] {
               make_activation_backward({KILN_ACTIVATION_RELU, 0}, wider, "yDesc", t, t);
             }) == "yDesc has sizes 2x3x4x6; expected 2x3x4x5, as dxDesc has");
  BOOST_TEST(fault_of([&] { make_fill(Tensor{}); }).starts_with("yDesc was created but never set"));
}

BOOST_AUTO_TEST_SUITE_END()
