// Immediate calls, in the style of the cuDNN paper; the handle keeps the plans.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>

#include "api/operations/convolution_case.hpp"

using namespace test;

namespace {

template <class T>
kilnStatus_t forward(kilnHandle_t handle, const Case<T>& problem, T alpha, const Buffer<T>& x,
                     const Buffer<T>& w, T beta, const Buffer<T>& y) {
  return kilnConvolutionForward(handle, &alpha, problem.x_desc, x.data(), problem.w_desc, w.data(),
                                problem.convolution, &beta, problem.y_desc, y.data());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(immediate_calls)

BOOST_AUTO_TEST_CASE(repeated_and_alternating_problems) {
  const TestHandle handle;
  Geometry flipped;
  flipped.mode = KILN_CONVOLUTION;
  const Case<float> first(Geometry{}), second(flipped);
  const Buffer<float> x(first.x), w(first.w), y(first.y);
  auto expected = first.y;
  for (int i = 0; i < 4; ++i) {
    const Case<float>& problem = i % 2 == 0 ? first : second;
    succeeds(forward(handle, problem, 2.f, x, w, -1.f, y));
    expected = problem.expected(2, -1, expected);
    BOOST_TEST(y.read() == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(more_batch_sizes_than_plans_are_kept) {
  const TestHandle handle;
  Geometry geometry;
  geometry.h = 3, geometry.w = 3, geometry.c = 2, geometry.k = 2, geometry.groups = 1;
  geometry.n = 300;
  const Case<float> largest(geometry);
  const Buffer<float> x(largest.x), w(largest.w), y(largest.y);
  for (const int round : {0, 1}) {
    for (std::int64_t n = 1; n <= 300; ++n) {
      geometry.n = n;
      const Case<float> problem(geometry);
      BOOST_TEST_INFO("batch " << n << " in round " << round);
      succeeds(forward(handle, problem, 1.f, x, w, 0.f, y));
    }
  }
  BOOST_TEST(y.read() == largest.expected(1, 0, largest.y), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_handle_serves_many_threads) {
  const TestHandle handle;
  Geometry geometry;
  geometry.dilation = {2, 1};  // a problem for which no other test makes a plan
  const Case<float> problem(geometry);
  const auto expected = problem.expected(1, 0, problem.y);
  std::atomic<int> right{0};
  constexpr int count = 4;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
        right += forward(handle, problem, 1.f, x, w, 0.f, y) == KILN_STATUS_SUCCESS &&
                 y.read() == expected;
      });
    }
  }
  BOOST_TEST(right == count);
}

BOOST_AUTO_TEST_CASE(doubles_take_double_scalars) {
  const TestHandle handle;
  const Case<double> problem(Geometry{});
  const Buffer<double> x(problem.x), w(problem.w), y(problem.y);
  succeeds(forward(handle, problem, 0.5, x, w, 0.25, y));
  BOOST_TEST(y.read() == problem.expected(0.5, 0.25, problem.y), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_arguments) {
  const TestHandle handle;
  const Case<float> problem(Geometry{});
  const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
  const float alpha = 1, beta = 0;
  const TensorDesc unset;
  bad_param(kilnConvolutionForward(nullptr, &alpha, problem.x_desc, x.data(), problem.w_desc,
                                   w.data(), problem.convolution, &beta, problem.y_desc, y.data()),
            {"handle is null"});
  bad_param(kilnConvolutionForward(handle, nullptr, problem.x_desc, x.data(), problem.w_desc,
                                   w.data(), problem.convolution, &beta, problem.y_desc, y.data()),
            {"alpha is null"});
  bad_param(kilnConvolutionForward(handle, &alpha, nullptr, x.data(), problem.w_desc, w.data(),
                                   problem.convolution, &beta, problem.y_desc, y.data()),
            {"xDesc is null"});
  bad_param(
      kilnConvolutionForward(handle, &alpha, problem.x_desc, x.data(), problem.w_desc, w.data(),
                             problem.convolution, nullptr, problem.y_desc, y.data()),
      {"beta is null"});
  bad_param(kilnConvolutionForward(handle, &alpha, problem.x_desc, x.data(), problem.w_desc,
                                   w.data(), problem.convolution, &beta, problem.y_desc, nullptr),
            {"y", "null"});
  fails(kilnConvolutionForward(handle, &alpha, problem.x_desc, x.data(), problem.w_desc, w.data(),
                               problem.convolution, &beta, unset, y.data()),
        KILN_STATUS_NOT_INITIALIZED, {"yDesc", "never set"});
  bad_param(kilnConvolutionForward(handle, &alpha, problem.x_desc, x.data(), problem.w_desc,
                                   w.data(), problem.convolution, &beta, problem.x_desc, y.data()),
            {"yDesc has sizes 2x4x9x8; the convolution gives 2x6x5x7"});
}

BOOST_AUTO_TEST_SUITE_END()
