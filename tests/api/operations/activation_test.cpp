// Activation descriptors, activations and their gradients.
#include <cmath>
#include <limits>

#include "operation_check.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;
const std::vector<kilnActivationMode_t> all_modes = kiln::all_of<kilnActivationMode_t>();

void check_forward(const Activation& activation, const Tensor& from, const Tensor& to) {
  const auto f = describe(activation);
  const auto x = describe(from), y = describe(to);
  Calls calls{.operation = "ActivationForward",
              .names = {"x", "y"},
              .create =
                  [=](kilnHandle_t h, kilnPlan_t* plan) {
                    return kilnCreateActivationForwardPlan(h, *f, *x, *y, plan);
                  },
              .execute = usual_execute<1>(kilnExecuteActivationForward),
              .immediate =
                  [=](kilnHandle_t h, const Arguments& a) {
                    return kilnActivationForward(h, *f, a.alpha, *x, a.at[0], a.beta, *y, a.at[1]);
                  }};
  if (from.strides == to.strides) calls.in_place = {"x"};
  check(make_activation_forward(activation, from, to), calls);
}

// Checks the gradient with only the tensor, y or x, that the mode reads; the other one is null.
void check_backward(const Activation& activation, const Tensor& t) {
  const bool from_y = gradient_from_output(activation);
  const auto f = describe(activation);
  const auto d = describe(t);
  const kilnTensorDescriptor_t y = from_y ? static_cast<kilnTensorDescriptor_t>(*d) : nullptr;
  const kilnTensorDescriptor_t x = from_y ? nullptr : static_cast<kilnTensorDescriptor_t>(*d);
  const auto y_of = [=](const Arguments& a) { return from_y ? a.at[0] : nullptr; };
  const auto x_of = [=](const Arguments& a) { return from_y ? nullptr : a.at[0]; };
  check(make_activation_backward(activation, t, from_y ? "yDesc" : "xDesc", t, t),
        {.operation = "ActivationBackward",
         .names = {from_y ? "y" : "x", "dy", "dx"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateActivationBackwardPlan(h, *f, y, *d, x, *d, plan);
             },
         .execute =
             [=](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
               return kilnExecuteActivationBackward(h, plan, a.alpha, y_of(a), a.at[1], x_of(a),
                                                    a.beta, a.at[2]);
             },
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnActivationBackward(h, *f, a.alpha, y, y_of(a), *d, a.at[1], x, x_of(a),
                                             a.beta, *d, a.at[2]);
             },
         .in_place = {from_y ? "y" : "x", "dy"}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(activation)

// A negative slope: y is positive on both sides of 0, so the gradient is taken from x.
BOOST_AUTO_TEST_CASE(negative_slopes_of_leaky_relu) {
  const ActivationDesc leaky(KILN_ACTIVATION_LEAKY_RELU, -0.5);
  const TensorDesc t(KILN_DATA_FLOAT, {5});
  const TestHandle handle;
  const float one = 1, zero = 0;
  const Buffer<float> x({-4, -1, 0, 1, 4}), dy({1, 2, 3, 4, 5}), y({9, 9, 9, 9, 9}),
      dx({9, 9, 9, 9, 9});
  succeeds(kilnActivationForward(handle, leaky, &one, t, x.data(), &zero, t, y.data()));
  BOOST_TEST((y.read() == std::vector<float>{2, 0.5, 0, 1, 4}));
  succeeds(kilnActivationBackward(handle, leaky, &one, nullptr, nullptr, t, dy.data(), t, x.data(),
                                  &zero, t, dx.data()));
  BOOST_TEST((dx.read() == std::vector<float>{-0.5, -1, -1.5, 4, 5}));
  bad_param(kilnActivationBackward(handle, leaky, &one, t, y.data(), t, dy.data(), nullptr, nullptr,
                                   &zero, t, dx.data()),
            {"xDesc is null"});
  const Tensor wide = tensor(KILN_DATA_FLOAT, {2, 3, 5, 7});
  check_forward({KILN_ACTIVATION_LEAKY_RELU, -0.5}, wide, wide);
  check_backward({KILN_ACTIVATION_LEAKY_RELU, -0.5}, wide);
}

BOOST_AUTO_TEST_CASE(descriptors) {
  bad_param(kilnCreateActivationDescriptor(nullptr), {"descriptor is null"});
  succeeds(kilnDestroyActivationDescriptor(nullptr));
  const ActivationDesc descriptor;
  kilnActivationMode_t mode{};
  double coefficient = -7;
  fails(kilnGetActivationDescriptor(descriptor, &mode, &coefficient), KILN_STATUS_NOT_INITIALIZED,
        {"descriptor was created but never set"});
  const auto set = [&](int value, double coef) {
    return kilnSetActivationDescriptor(descriptor, static_cast<kilnActivationMode_t>(value), coef);
  };
  succeeds(set(KILN_ACTIVATION_CLIPPED_RELU, 6));
  succeeds(kilnGetActivationDescriptor(descriptor, &mode, &coefficient));
  BOOST_TEST(mode == KILN_ACTIVATION_CLIPPED_RELU);
  BOOST_TEST(coefficient == 6);
  succeeds(kilnGetActivationDescriptor(descriptor, nullptr, nullptr));

  bad_param(set(12, 0),
            {"mode is 12; expected a kilnActivationMode_t, KILN_ACTIVATION_IDENTITY (700) to "});
  bad_param(set(-1, 0), {"mode is -1"});
  bad_param(set(KILN_ACTIVATION_ELU, -0.5),
            {"coef is -0.5; expected a finite value of at least 0"});
  bad_param(set(KILN_ACTIVATION_LEAKY_RELU, std::nan("")), {"coef is nan"});
  bad_param(set(KILN_ACTIVATION_CLIPPED_RELU, HUGE_VAL), {"coef is inf"});
  bad_param(kilnSetActivationDescriptor(nullptr, KILN_ACTIVATION_RELU, 0),
            {"descriptor is null; expected an activation descriptor"});
  bad_param(kilnGetActivationDescriptor(nullptr, &mode, &coefficient), {"descriptor is null"});
  succeeds(kilnGetActivationDescriptor(descriptor, &mode, &coefficient));
  BOOST_TEST(mode == KILN_ACTIVATION_CLIPPED_RELU);  // the failed calls changed nothing
  BOOST_TEST(coefficient == 6);
  succeeds(set(KILN_ACTIVATION_RELU, std::nan("")));  // relu ignores the coefficient
}

BOOST_AUTO_TEST_CASE(two_coefficients) {
  const ActivationDesc descriptor;
  const auto set = [&](kilnActivationMode_t mode, double coef, double coef2) {
    return kilnSetActivationDescriptorEx(descriptor, mode, coef, coef2);
  };
  bad_param(kilnSetActivationDescriptor(descriptor, KILN_ACTIVATION_POW, 2),
            {"mode is 717 (pow), which has two coefficients", "kilnSetActivationDescriptorEx"});
  bad_param(set(KILN_ACTIVATION_CLIP, 2, 1),
            {"coef is 2 and coef2 is 1; expected bounds of which coef is at most coef2"});
  bad_param(set(KILN_ACTIVATION_CLIP, std::nan(""), 1), {"coef is nan"});
  bad_param(set(KILN_ACTIVATION_POW, 1, HUGE_VAL), {"coef2 is inf; expected a finite value"});
  bad_param(set(KILN_ACTIVATION_LINEAR, std::nan(""), 1), {"coef is nan; expected a finite value"});
  bad_param(kilnSetActivationDescriptorEx(nullptr, KILN_ACTIVATION_LINEAR, 1, 1),
            {"descriptor is null"});
  succeeds(set(KILN_ACTIVATION_CLIP, -HUGE_VAL, 6));
  succeeds(set(KILN_ACTIVATION_HARD_SIGMOID, -0.2, 0.5));
  kilnActivationMode_t mode{};
  double coef = 0, coef2 = 0;
  succeeds(kilnGetActivationDescriptorEx(descriptor, &mode, &coef, &coef2));
  BOOST_TEST(mode == KILN_ACTIVATION_HARD_SIGMOID);
  BOOST_TEST(coef == -0.2);
  BOOST_TEST(coef2 == 0.5);
  succeeds(kilnGetActivationDescriptorEx(descriptor, nullptr, nullptr, nullptr));
  succeeds(set(KILN_ACTIVATION_ELU, 1, std::nan("")));  // elu has no second coefficient
  succeeds(kilnGetActivationDescriptorEx(descriptor, &mode, &coef, &coef2));
  BOOST_TEST(coef2 == 0);
}

BOOST_AUTO_TEST_CASE(forward) {
  for (const kilnActivationMode_t mode : all_modes) {
    const Tensor dense = tensor(all_types[mode % 4], {2, 3, 5, 7});
    check_forward({mode, 0.75, 2}, dense, dense);
  }
  check_forward({KILN_ACTIVATION_SILU, 0}, tensor(f32, {2, 3, 5, 7}),
                tensor(f32, {2, 3, 5, 7}, {200, 1, 35, 4}));
}

BOOST_AUTO_TEST_CASE(backward) {
  for (const kilnActivationMode_t mode : all_modes)
    check_backward({mode, 0.75, 2}, tensor(all_types[(mode + 1) % 4], {2, 3, 5, 7}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  const ActivationDesc relu(KILN_ACTIVATION_RELU), silu(KILN_ACTIVATION_SILU), unset;
  const TensorDesc t(f32, {2, 3, 5, 7}), small(f32, {2, 3, 5, 1}), line(f32, {2, 3, 5}), never,
      half(KILN_DATA_HALF, {2, 3, 5, 7}), folded(f32, {2, 3, 5, 7}, Sizes{105, 35, 7, 0});
  const auto forward = [&](kilnActivationDescriptor_t f, kilnTensorDescriptor_t x,
                           kilnTensorDescriptor_t y) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateActivationForwardPlan(h, f, x, y, plan);
    });
  };
  const auto backward = [&](kilnActivationDescriptor_t f, kilnTensorDescriptor_t y,
                            kilnTensorDescriptor_t dy, kilnTensorDescriptor_t x,
                            kilnTensorDescriptor_t dx) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateActivationBackwardPlan(h, f, y, dy, x, dx, plan);
    });
  };
  bad_param(forward(nullptr, t, t), {"activationDesc is null"});
  fails(forward(unset, t, t), KILN_STATUS_NOT_INITIALIZED, {"activationDesc was created"});
  bad_param(forward(relu, nullptr, t), {"xDesc is null"});
  bad_param(forward(relu, t, nullptr), {"yDesc is null"});
  fails(forward(relu, never, t), KILN_STATUS_NOT_INITIALIZED, {"xDesc was created"});
  fails(forward(relu, t, never), KILN_STATUS_NOT_INITIALIZED, {"yDesc was created"});
  bad_param(forward(relu, small, t), {"xDesc has sizes 2x3x5x1; expected 2x3x5x7, as yDesc has"});
  bad_param(forward(relu, line, t), {"xDesc has 3 dimensions; expected 4, as yDesc has"});
  bad_param(forward(relu, half, t), {"xDesc has data type f16; expected f32, as yDesc has"});
  bad_param(forward(relu, t, folded), {"yDesc: strides are 105:35:7:0"});
  succeeds(forward(relu, folded, t));

  bad_param(backward(relu, nullptr, t, t, t), {"yDesc is null"});
  bad_param(backward(silu, t, t, nullptr, t), {"xDesc is null"});
  succeeds(backward(relu, t, t, nullptr, t));
  succeeds(backward(silu, nullptr, t, t, t));
  bad_param(backward(relu, t, nullptr, t, t), {"dyDesc is null"});
  bad_param(backward(relu, t, t, t, nullptr), {"dxDesc is null"});
  fails(backward(unset, t, t, t, t), KILN_STATUS_NOT_INITIALIZED, {"activationDesc was created"});
  bad_param(backward(relu, small, t, t, t), {"yDesc has sizes 2x3x5x1"});
  bad_param(backward(silu, t, t, small, t), {"xDesc has sizes 2x3x5x1"});
  bad_param(backward(silu, t, half, t, t), {"dyDesc has data type f16"});
  bad_param(backward(silu, t, t, t, folded), {"dxDesc: strides are"});
}

// The immediate call reads the mode before it has checked the descriptor.
BOOST_AUTO_TEST_CASE(an_object_of_another_kind_is_refused) {
  const TestHandle handle;
  const TensorDesc t(f32, {97, 98, 99, 100});
  const float one = 1;
  const Buffer<float> data(std::vector<float>{1});
  const kilnTensorDescriptor_t right = t;
  kilnActivationDescriptor_t wrong = nullptr;
  std::memcpy(&wrong, &right, sizeof wrong);
  const auto call = [&](kilnActivationDescriptor_t activation) {
    return kilnActivationBackward(handle, activation, &one, t, data.data(), t, data.data(), t,
                                  data.data(), &one, t, data.data());
  };
  bad_param(call(wrong), {"activationDesc is not an activation descriptor", "not destroyed"});
  bad_param(call(nullptr), {"activationDesc is null"});
}

BOOST_AUTO_TEST_CASE(nan_gives_nan_and_infinities_their_limits) {
  const TestHandle handle;
  const TensorDesc t(f32, {1, 1, 1, 3});
  const float one = 1, zero = 0, inf = std::numeric_limits<float>::infinity();
  const Buffer<float> x({std::nanf(""), inf, -inf}), y({0, 0, 0});
  struct Row {
    kilnActivationMode_t mode;
    float above, below;
  };
  const float nan = std::nanf("");
  const Row rows[] = {
      {KILN_ACTIVATION_IDENTITY, inf, -inf},  {KILN_ACTIVATION_SIGMOID, 1, 0},
      {KILN_ACTIVATION_RELU, inf, 0},         {KILN_ACTIVATION_TANH, 1, -1},
      {KILN_ACTIVATION_CLIPPED_RELU, 0.5, 0}, {KILN_ACTIVATION_LEAKY_RELU, inf, -inf},
      {KILN_ACTIVATION_ELU, inf, -0.5},       {KILN_ACTIVATION_GELU_ERF, inf, 0},
      {KILN_ACTIVATION_GELU_TANH, inf, 0},    {KILN_ACTIVATION_SILU, inf, 0},
      {KILN_ACTIVATION_SOFTPLUS, inf, 0},     {KILN_ACTIVATION_HARD_SWISH, inf, 0},
      {KILN_ACTIVATION_ABS, inf, inf},        {KILN_ACTIVATION_EXP, inf, 0},
      {KILN_ACTIVATION_LOG, inf, nan},        {KILN_ACTIVATION_SQRT, inf, nan},
      {KILN_ACTIVATION_SQUARE, inf, inf},     {KILN_ACTIVATION_POW, inf, inf},
      {KILN_ACTIVATION_MISH, inf, 0},         {KILN_ACTIVATION_HARD_SIGMOID, 1, 0},
      {KILN_ACTIVATION_CLIP, 2, 0.5},         {KILN_ACTIVATION_LINEAR, inf, -inf}};
  BOOST_TEST(std::size(rows) == all_modes.size());
  for (const Row& row : rows) {
    succeeds(kilnActivationForward(handle, ActivationDesc(row.mode, 0.5, 2), &one, t, x.data(),
                                   &zero, t, y.data()));
    const std::vector<float> got = y.read();
    BOOST_TEST(std::isnan(got[0]), "mode " << row.mode << " gave " << got[0]);
    BOOST_TEST(got[1] == row.above, "mode " << row.mode << " gave " << got[1]);
    BOOST_TEST((got[2] == row.below || (std::isnan(got[2]) && std::isnan(row.below))),
               "mode " << row.mode << " gave " << got[2]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
