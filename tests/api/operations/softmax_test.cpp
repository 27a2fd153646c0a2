// Softmax and its gradient.
#include <cmath>
#include <limits>

#include "operation_check.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;
constexpr kilnSoftmaxAlgorithm_t algorithms[] = {KILN_SOFTMAX_FAST, KILN_SOFTMAX_ACCURATE,
                                                 KILN_SOFTMAX_LOG};
constexpr kilnSoftmaxMode_t modes[] = {KILN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_INSTANCE};

void check_forward(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode, const Tensor& from,
                   const Tensor& to) {
  const auto x = describe(from), y = describe(to);
  Calls calls{.operation = "SoftmaxForward",
              .names = {"x", "y"},
              .create =
                  [=](kilnHandle_t h, kilnPlan_t* plan) {
                    return kilnCreateSoftmaxForwardPlan(h, algorithm, mode, *x, *y, plan);
                  },
              .execute = usual_execute<1>(kilnExecuteSoftmaxForward),
              .immediate =
                  [=](kilnHandle_t h, const Arguments& a) {
                    return kilnSoftmaxForward(h, algorithm, mode, a.alpha, *x, a.at[0], a.beta, *y,
                                              a.at[1]);
                  }};
  if (from.strides == to.strides) calls.in_place = {"x"};
  check(make_softmax_forward(algorithm, mode, from, to), calls);
}

void check_backward(kilnSoftmaxAlgorithm_t algorithm, kilnSoftmaxMode_t mode, const Tensor& t) {
  const auto d = describe(t);
  check(make_softmax_backward(algorithm, mode, t, t, t),
        {.operation = "SoftmaxBackward",
         .names = {"y", "dy", "dx"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateSoftmaxBackwardPlan(h, algorithm, mode, *d, *d, *d, plan);
             },
         .execute = usual_execute<2>(kilnExecuteSoftmaxBackward),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnSoftmaxBackward(h, algorithm, mode, a.alpha, *d, a.at[0], *d, a.at[1],
                                          a.beta, *d, a.at[2]);
             },
         .in_place = {"dy"}});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(softmax)

BOOST_AUTO_TEST_CASE(forward) {
  int turn = 0;
  for (const auto algorithm : algorithms)
    for (const auto mode : modes) {
      const Tensor t = tensor(all_types[turn++ % 4], {2, 7, 3, 5});
      check_forward(algorithm, mode, t, t);
    }
  check_forward(KILN_SOFTMAX_LOG, KILN_SOFTMAX_MODE_CHANNEL, tensor(f32, {2, 7, 3, 5}),
                tensor(f32, {2, 7, 3, 5}, {200, 1, 60, 8}));
}

// Rows too long to be kept in registers are read twice.
BOOST_AUTO_TEST_CASE(in_place_where_rows_are_read_twice) {
  const Tensor t = tensor(f32, {1, 40000, 1, 1});
  check_forward(KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_CHANNEL, t, t);
  check_backward(KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_CHANNEL, t);
}

BOOST_AUTO_TEST_CASE(backward) {
  int turn = 1;
  for (const auto algorithm : algorithms)
    for (const auto mode : modes)
      check_backward(algorithm, mode, tensor(all_types[turn++ % 4], {2, 7, 3, 5}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  const TensorDesc t(f32, {2, 3, 5, 7}), small(f32, {2, 1, 5, 7}), line(f32, {2, 3, 5}), never,
      half(KILN_DATA_HALF, {2, 3, 5, 7}), folded(f32, {2, 3, 5, 7}, Sizes{105, 0, 7, 1});
  constexpr int accurate = KILN_SOFTMAX_ACCURATE, channel = KILN_SOFTMAX_MODE_CHANNEL;
  const auto forward = [&](int algorithm, int mode, kilnTensorDescriptor_t x,
                           kilnTensorDescriptor_t y) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateSoftmaxForwardPlan(h, static_cast<kilnSoftmaxAlgorithm_t>(algorithm),
                                          static_cast<kilnSoftmaxMode_t>(mode), x, y, plan);
    });
  };
  const auto backward = [&](int algorithm, int mode, kilnTensorDescriptor_t y,
                            kilnTensorDescriptor_t dy, kilnTensorDescriptor_t dx) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateSoftmaxBackwardPlan(h, static_cast<kilnSoftmaxAlgorithm_t>(algorithm),
                                           static_cast<kilnSoftmaxMode_t>(mode), y, dy, dx, plan);
    });
  };
  bad_param(forward(3, channel, t, t), {"algorithm is 3; expected KILN_SOFTMAX_FAST (800), "});
  bad_param(forward(-1, channel, t, t), {"algorithm is -1"});
  bad_param(forward(accurate, 2, t, t),
            {"mode is 2; expected KILN_SOFTMAX_MODE_CHANNEL (900) or "});
  bad_param(forward(accurate, -1, t, t), {"mode is -1"});
  bad_param(forward(accurate, channel, nullptr, t), {"xDesc is null"});
  bad_param(forward(accurate, channel, t, nullptr), {"yDesc is null"});
  fails(forward(accurate, channel, never, t), KILN_STATUS_NOT_INITIALIZED, {"xDesc was created"});
  fails(forward(accurate, channel, t, never), KILN_STATUS_NOT_INITIALIZED, {"yDesc was created"});
  bad_param(forward(accurate, channel, small, t),
            {"xDesc has sizes 2x1x5x7; expected 2x3x5x7, as yDesc has"});
  bad_param(forward(accurate, channel, line, t),
            {"xDesc has 3 dimensions; expected 4, as yDesc has"});
  bad_param(forward(accurate, channel, half, t),
            {"xDesc has data type f16; expected f32, as yDesc has"});
  bad_param(forward(accurate, channel, t, folded),
            {"yDesc: strides are 105:0:7:1", "share an address"});
  succeeds(forward(accurate, channel, folded, t));

  bad_param(backward(3, channel, t, t, t), {"algorithm is 3"});
  bad_param(backward(accurate, 2, t, t, t), {"mode is 2"});
  bad_param(backward(accurate, channel, nullptr, t, t), {"yDesc is null"});
  bad_param(backward(accurate, channel, t, nullptr, t), {"dyDesc is null"});
  bad_param(backward(accurate, channel, t, t, nullptr), {"dxDesc is null"});
  fails(backward(accurate, channel, never, t, t), KILN_STATUS_NOT_INITIALIZED,
        {"yDesc was created"});
  bad_param(backward(accurate, channel, small, t, t),
            {"yDesc has sizes 2x1x5x7; expected 2x3x5x7, as dxDesc"});
  bad_param(backward(accurate, channel, t, half, t),
            {"dyDesc has data type f16; expected f32, as dxDesc has"});
  bad_param(backward(accurate, channel, t, t, folded), {"dxDesc: strides are 105:0:7:1"});
}

BOOST_AUTO_TEST_CASE(finite_for_every_finite_input_and_nan_for_the_rest) {
  const TestHandle handle;
  const TensorDesc t(f32, {4, 2, 1, 1});
  const float one = 1, zero = 0, inf = std::numeric_limits<float>::infinity(), most = 3e38f;
  const Buffer<float> x({most, -most, inf, 0, -inf, 0, -inf, -inf});
  const Buffer<float> y(std::vector<float>(8, 7));
  for (const auto algorithm : algorithms) {
    succeeds(kilnSoftmaxForward(handle, algorithm, KILN_SOFTMAX_MODE_CHANNEL, &one, t, x.data(),
                                &zero, t, y.data()));
    const std::vector<float> got = y.read();
    const bool log = algorithm == KILN_SOFTMAX_LOG;
    BOOST_TEST(got[0] == (log ? 0 : 1));
    BOOST_TEST(got[1] == (log ? -inf : 0));  // a logarithm below the range of f32
    BOOST_TEST((std::isnan(got[2]) && std::isnan(got[3])));
    BOOST_TEST(got[4] == (log ? -inf : 0));
    BOOST_TEST(got[5] == (log ? 0 : 1));
    BOOST_TEST((std::isnan(got[6]) && std::isnan(got[7])));
  }
}

BOOST_AUTO_TEST_SUITE_END()
