// Plans that can be executed at once: a stand-in executes them while their own kernel is compiled.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "api/operations/convolution_case.hpp"
#include "kiln/kiln.hpp"

using namespace test;

namespace {

// A layer that tiled engines take, whose kernel is in no cache: the distance between images is
// random.
Geometry new_layer() {
  static std::random_device random;
  Geometry g;
  g.n = 2, g.c = 32, g.h = 10, g.w = 9, g.k = 24, g.r = 3, g.s = 3, g.groups = 1;
  g.stride = {1, 1}, g.dilation = {1, 1};
  g.x_strides = dense(g.x_dims());
  g.x_strides[0] += 1 + random() % 1'000'000;
  return g;
}

// A depthwise layer, whose kernel shares no file with a stand-in's.
Geometry new_depthwise_layer() {
  Geometry g = new_layer();
  g.c = g.k = g.groups = 8, g.h = g.w = 30, g.r = g.s = 5;
  g.x_strides = {g.x_strides[0] + 7200, 900, 30, 1};
  return g;
}

// Small integers, so that every order of summation gives the same bits.
struct Layer {
  explicit Layer(const Geometry& geometry = new_layer()) : c(geometry) {}

  TestHandle handle;
  Case<float> c;
  Buffer<float> x{c.x}, w{c.w};
  std::vector<float> right = c.expected(1, 0, c.y);

  struct Plan : TestPlan {
    Plan(const Layer& layer, kilnStandIn_t allowed)
        : TestPlan(layer.handle, layer.c.x_desc, layer.c.w_desc, layer.c.convolution,
                   layer.c.y_desc) {
      succeeds(kilnSetPlanStandIn(*this, allowed));
    }
  };
  Plan plan(kilnStandIn_t allowed = KILN_STAND_IN_ANY) const { return {*this, allowed}; }
  kilnStatus_t execute(kilnHandle_t on, kilnPlan_t plan, const Buffer<float>& y) const {
    const float one = 1, zero = 0;
    return kilnExecuteConvolutionForward(on, plan, &one, x.data(), w.data(), &zero, y.data());
  }
  bool executes_right(kilnPlan_t plan) const {
    const Buffer<float> y(c.y);
    return execute(handle, plan, y) == KILN_STATUS_SUCCESS && y.read() == right;
  }
};

kilnPlanInfo_t info_of(kilnPlan_t plan) {
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  succeeds(kilnGetPlanInfo(plan, &info));
  return info;
}

std::string text_of(kilnPlan_t plan, kilnPlanText_t which) {
  const char* text = "";
  succeeds(kilnGetPlanText(plan, which, &text));
  return text;
}

bool is_over(kilnPlan_t plan) {
  int done = -1;
  succeeds(kilnPollFinalizePlan(plan, &done));
  return done == 1;
}

constexpr auto nap = std::chrono::milliseconds(1);

}  // namespace

BOOST_AUTO_TEST_SUITE(stand_in)

BOOST_AUTO_TEST_CASE(a_new_plan_executes_at_once_and_switches_when_polled) {
  const Layer layer;
  const auto plan = layer.plan();
  succeeds(kilnStartFinalizePlan(plan));
  succeeds(kilnStartFinalizePlan(plan));  // nothing more
  BOOST_TEST(info_of(plan).standIn == 1);
  const std::string engine = text_of(plan, KILN_PLAN_ENGINE);
  const std::string constants = text_of(plan, KILN_PLAN_CONSTANTS);
  const void* binary = nullptr;
  std::size_t size = 0;
  succeeds(kilnGetPlanBinary(plan, &binary, &size));
  BOOST_TEST(size > 0u);
  BOOST_TEST(layer.executes_right(plan));
  fails(kilnSetPlanEngine(plan, "direct"), KILN_STATUS_NOT_INITIALIZED, {"being finalized"});
  while (!is_over(plan)) {
    BOOST_TEST(info_of(plan).standIn == 1);
    BOOST_TEST(layer.executes_right(plan));
    std::this_thread::sleep_for(nap);
  }
  BOOST_TEST(info_of(plan).standIn == 0);
  BOOST_TEST(info_of(plan).origin == KILN_KERNEL_COMPILED);
  BOOST_TEST(text_of(plan, KILN_PLAN_ENGINE) != engine);
  BOOST_TEST(text_of(plan, KILN_PLAN_CONSTANTS) != constants);
  BOOST_TEST(layer.executes_right(plan));
  BOOST_TEST(is_over(plan));
  bad_param(kilnSetPlanStandIn(plan, KILN_STAND_IN_ANY),
            {"plan is finalized", "kilnSetPlanStandIn before"});
}

// A plan switches to its own kernel only in a call that polls or waits, and says so.
BOOST_AUTO_TEST_CASE(a_wait_switches_and_nothing_else_does) {
  const Layer layer;
  const auto one = layer.plan(), other = layer.plan();
  succeeds(kilnStartFinalizePlan(one));
  succeeds(kilnStartFinalizePlan(other));
  BOOST_TEST(info_of(other).standIn == 1);
  succeeds(kilnWaitFinalizePlan(one));
  BOOST_TEST(info_of(one).standIn == 0);
  std::this_thread::sleep_for(50 * nap);  // the other plan has the same kernel, so it is ready, too
  BOOST_TEST(info_of(other).standIn == 1);
  BOOST_TEST(layer.executes_right(other));
  succeeds(kilnFinalizePlan(other));
  BOOST_TEST(info_of(other).standIn == 0);
  BOOST_TEST(layer.executes_right(other));
}

// Each kernel gives the same bits every time; the stand-in and the plan's kernel agree within
// rounding.
BOOST_AUTO_TEST_CASE(bits_change_at_the_switch_alone) {
  Case<float> c(new_layer());
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  for (std::vector<float>* values : {&c.x, &c.w})
    for (float& value : *values) value = normal(generator);
  const TestHandle handle;
  const TestPlan plan(handle, c.x_desc, c.w_desc, c.convolution, c.y_desc);
  const Buffer<float> x(c.x), w(c.w);
  const auto execute = [&] {
    const Buffer<float> y(c.y);
    const float one = 1, zero = 0;
    succeeds(
        kilnExecuteConvolutionForward(handle, plan, &one, x.data(), w.data(), &zero, y.data()));
    return y.read();
  };
  succeeds(kilnSetPlanStandIn(plan, KILN_STAND_IN_ANY));
  succeeds(kilnStartFinalizePlan(plan));
  const std::vector<float> before = execute();
  while (!is_over(plan)) BOOST_TEST((execute() == before));
  const std::vector<float> after = execute();
  BOOST_TEST((execute() == after));
  int differ = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    BOOST_TEST(std::abs(before[i] - after[i]) < 2e-4);  // of 288 products of about 1
    if (before[i] != after[i]) ++differ;
  }
  BOOST_TEST_MESSAGE(differ << " of " << before.size() << " results differ in their bits");
}

BOOST_AUTO_TEST_CASE(threads_execute_while_another_one_polls) {
  const Layer layer;
  const auto plan = layer.plan();
  succeeds(kilnStartFinalizePlan(plan));
  BOOST_TEST(info_of(plan).standIn == 1);
  constexpr int threads = 2;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> executions[threads]{};
  std::vector<std::thread> at_work;
  for (std::atomic<int>& count : executions)
    at_work.emplace_back([&] {
      const TestHandle own;
      const Buffer<float> y(layer.c.y);
      while (!stop) {
        if (layer.execute(own, plan, y) != KILN_STATUS_SUCCESS || y.read() != layer.right) ++wrong;
        ++count;
      }
    });
  const auto let_all_execute = [&] {
    for (const std::atomic<int>& count : executions)
      for (const int before = count; count < before + 3;) std::this_thread::sleep_for(nap);
  };
  let_all_execute();
  while (!is_over(plan)) std::this_thread::sleep_for(nap);
  BOOST_TEST(info_of(plan).standIn == 0);
  let_all_execute();
  stop = true;
  for (std::thread& thread : at_work) thread.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_kernel_that_is_in_a_cache_needs_none) {
  const Layer layer;
  const auto first = layer.plan(KILN_STAND_IN_NONE), second = layer.plan();
  succeeds(kilnFinalizePlan(first));
  succeeds(kilnStartFinalizePlan(second));
  BOOST_TEST(info_of(second).standIn == 0);
  BOOST_TEST(info_of(second).origin == KILN_KERNEL_MEMORY);
  BOOST_TEST(text_of(second, KILN_PLAN_REFUSALS) == text_of(first, KILN_PLAN_REFUSALS));
  BOOST_TEST(layer.executes_right(second));
  BOOST_TEST(is_over(second));
}

// Whether there is a quick stand-in depends on the chip and on what was compiled before; it is
// never compiled for a plan.
BOOST_AUTO_TEST_CASE(a_quick_one_is_not_waited_for) {
  const Layer layer;
  const auto plan = layer.plan(KILN_STAND_IN_QUICK);
  succeeds(kilnStartFinalizePlan(plan));
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  if (kilnGetPlanInfo(plan, &info) == KILN_STATUS_SUCCESS) {
    BOOST_TEST(info.standIn == 1);
    BOOST_TEST(info.compileMs == 0);
    BOOST_TEST(layer.executes_right(plan));
  }
  succeeds(kilnWaitFinalizePlan(plan));
  BOOST_TEST(info_of(plan).standIn == 0);
  BOOST_TEST(layer.executes_right(plan));
}

// Two compilers run at a time (background_test.cpp), one of which waits for the other; plans behind
// them in the queue can be cancelled.
BOOST_AUTO_TEST_CASE(a_cancelled_plan_keeps_its_stand_in) {
  const Layer layer;
  const auto first = layer.plan(), second = layer.plan(), third = layer.plan();
  for (const kilnPlan_t each : {kilnPlan_t(first), kilnPlan_t(second), kilnPlan_t(third)})
    succeeds(kilnStartFinalizePlan(each));
  int cancelled = -1;
  succeeds(kilnCancelFinalizePlan(third, &cancelled));
  BOOST_TEST_REQUIRE(cancelled == 1);
  BOOST_TEST(info_of(third).standIn == 1);
  BOOST_TEST(layer.executes_right(third));
  bad_param(kilnSetPlanEngine(third, "direct"), {"plan has a stand-in", "kilnSetPlanEngine"});
  bad_param(kilnSetPlanWorkspaceLimit(third, 16), {"plan has a stand-in"});
  bad_param(kilnSetPlanStandIn(third, KILN_STAND_IN_NONE), {"plan has a stand-in"});
  const Buffer<float> y(layer.c.y);
  const void* operands[] = {layer.x.data(), layer.w.data(), y.data()};
  bad_param(kilnTunePlan(layer.handle, third, operands, 3, 1), {"plan has a stand-in"});
  int done = -1;
  fails(kilnPollFinalizePlan(third, &done), KILN_STATUS_NOT_INITIALIZED, {"not being finalized"});
  succeeds(kilnStartFinalizePlan(third));
  succeeds(kilnWaitFinalizePlan(third));
  BOOST_TEST(info_of(third).standIn == 0);
  BOOST_TEST(layer.executes_right(third));
}

BOOST_AUTO_TEST_CASE(destroyed_while_a_stand_in_serves) {
  const Layer layer;
  const auto plan = layer.plan();
  succeeds(kilnStartFinalizePlan(plan));
  BOOST_TEST(layer.executes_right(plan));
}

// An operation without stand-ins waits for its kernel.
BOOST_AUTO_TEST_CASE(an_operation_without_one_is_as_before) {
  const TestHandle handle;
  static std::random_device random;
  const std::int64_t distance = 16 + random() % 1'000'000;
  const TensorDesc x(KILN_DATA_FLOAT, {2, 4, 2, 2}, {distance, 4, 2, 1}),
      y(KILN_DATA_FLOAT, {2, 4, 2, 2});
  kilnPlan_t plan = nullptr;
  succeeds(kilnCreateSoftmaxForwardPlan(handle, KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_INSTANCE,
                                        x, y, &plan));
  succeeds(kilnSetPlanStandIn(plan, KILN_STAND_IN_ANY));
  succeeds(kilnStartFinalizePlan(plan));
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  fails(kilnGetPlanInfo(plan, &info), KILN_STATUS_NOT_INITIALIZED,
        {"being finalized", "There is no stand-in: a softmax plan"});
  succeeds(kilnWaitFinalizePlan(plan));
  BOOST_TEST(info_of(plan).standIn == 0);
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_CASE(wrong_arguments) {
  const Layer layer;
  const auto plan = layer.plan();
  bad_param(kilnSetPlanStandIn(nullptr, KILN_STAND_IN_ANY), {"plan is null"});
  bad_param(kilnSetPlanStandIn(plan, static_cast<kilnStandIn_t>(3)),
            {"allowed is 3", "KILN_STAND_IN_NONE"});
}

BOOST_AUTO_TEST_CASE(in_cpp) {
  static std::random_device random;
  const kiln::Handle handle(device_kind());
  const std::int64_t distance = 108 + random() % 1'000'000;
  const kiln::TensorDescriptor x(KILN_DATA_FLOAT, {2, 3, 6, 6}, {distance, 36, 6, 1}),
      y(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 4, 6, 6});
  const kiln::FilterDescriptor w(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {4, 3, 3, 3});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
  kiln::ConvolutionForward plan(handle, {.x = x, .w = w, .convolution = convolution, .y = y});
  plan.set_stand_in(KILN_STAND_IN_ANY);
  plan.start_finalize();
  BOOST_TEST(plan.info().standIn == 1);
  plan.wait_finalize();
  BOOST_TEST(plan.info().standIn == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// Runs as a test of its own with KILN_KERNEL_SOURCE_DIR=.../broken_kernels: the kernel of depthwise
// layers does not compile.
BOOST_AUTO_TEST_SUITE(broken_kernels)

BOOST_AUTO_TEST_CASE(the_stand_in_serves_on) {
  if (std::getenv("KILN_KERNEL_SOURCE_DIR") == nullptr) return;
  const Layer layer(new_depthwise_layer());
  const auto plan = layer.plan();
  for (int round = 0; round < 2; ++round) {
    succeeds(kilnStartFinalizePlan(plan));
    BOOST_TEST(layer.executes_right(plan));
    int done = 0;
    kilnStatus_t status = KILN_STATUS_SUCCESS;
    while (done == 0) status = kilnPollFinalizePlan(plan, &done);
    fails(status, KILN_STATUS_COMPILE_FAILED, {"this kernel is broken"});
    fails(kilnPollFinalizePlan(plan, &done), KILN_STATUS_NOT_INITIALIZED, {"not being finalized"});
    BOOST_TEST(info_of(plan).standIn == 1);
    BOOST_TEST(layer.executes_right(plan));
  }
  fails(kilnFinalizePlan(plan), KILN_STATUS_COMPILE_FAILED, {"this kernel is broken"});
  BOOST_TEST(layer.executes_right(plan));
}

BOOST_AUTO_TEST_SUITE_END()
