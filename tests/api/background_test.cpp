// Finalization in the background, and the library's counters.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "api/operations/convolution_case.hpp"
#include "kiln/kiln.hpp"

using namespace test;

namespace {

kilnCacheStats_t stats() {
  kilnCacheStats_t now{};
  now.structSize = sizeof now;
  succeeds(kilnGetCacheStats(&now));
  return now;
}

// Allows few compilers, so that plans wait in the queue on any number of CPUs.
struct FewCompilers {
  FewCompilers() { setenv("KILN_COMPILE_THREADS", "2", 0); }
};
BOOST_TEST_GLOBAL_FIXTURE(FewCompilers);

// A plan whose kernel is in no cache: the distance between images is random.
struct NewPlan {
  TensorDesc x{KILN_DATA_FLOAT, {2, 3, 6, 6}, {108 + distance(), 36, 6, 1}},
      y{KILN_DATA_FLOAT, {2, 4, 6, 6}};
  FilterDesc w{KILN_DATA_FLOAT, {4, 3, 3, 3}};
  ConvolutionDesc convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  TestPlan plan;

  explicit NewPlan(kilnHandle_t handle) : plan(handle, x, w, convolution, y) {}

  static std::int64_t distance() {
    static std::random_device random;
    return random() % 1'000'000;
  }
};

bool is_strict() {
  const char* const mode = std::getenv("KILN_CACHE");
  return mode != nullptr && std::string(mode) == "strict";
}

int poll(kilnPlan_t plan) {
  int done = -1;
  succeeds(kilnPollFinalizePlan(plan, &done));
  return done;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(background)

BOOST_AUTO_TEST_CASE(start_poll_wait) {
  const TestHandle handle;
  std::deque<NewPlan> plans;
  const kilnCacheStats_t before = stats();
  for (int i = 0; i < 4; ++i) plans.emplace_back(handle);
  for (const NewPlan& each : plans) succeeds(kilnStartFinalizePlan(each.plan));
  succeeds(kilnStartFinalizePlan(plans[0].plan));  // nothing more

  // Until a caller has been told that finalization is over, the plan cannot be used.
  const float one = 1, zero = 0;
  const Buffer<float> memory(std::vector<float>(1'100'000));
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  const char* text = nullptr;
  fails(kilnExecuteConvolutionForward(handle, plans[3].plan, &one, memory.data(),
                                      memory.data() + 1'020'000, &zero, memory.data()),
        KILN_STATUS_NOT_INITIALIZED, {"being finalized", "kilnWaitFinalizePlan"});
  fails(kilnGetPlanInfo(plans[3].plan, &info), KILN_STATUS_NOT_INITIALIZED, {"being finalized"});
  fails(kilnGetPlanText(plans[3].plan, KILN_PLAN_ENGINE, &text), KILN_STATUS_NOT_INITIALIZED,
        {"being finalized"});
  succeeds(kilnGetPlanText(plans[3].plan, KILN_PLAN_PROBLEM, &text));

  for (int i = 0; i < 60'000 && poll(plans[0].plan) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  BOOST_TEST(poll(plans[0].plan) == 1);
  for (std::size_t i = 1; i < 3; ++i) succeeds(kilnWaitFinalizePlan(plans[i].plan));
  succeeds(kilnFinalizePlan(plans[3].plan));  // waits for the background thread, too
  for (const NewPlan& each : plans) {
    succeeds(kilnWaitFinalizePlan(each.plan));
    BOOST_TEST(poll(each.plan) == 1);
    succeeds(kilnStartFinalizePlan(each.plan));
    succeeds(kilnGetPlanInfo(each.plan, &info));
    BOOST_TEST(info.origin == KILN_KERNEL_COMPILED);
    succeeds(kilnExecuteConvolutionForward(handle, each.plan, &one, memory.data(),
                                           memory.data() + 1'020'000, &zero,
                                           memory.data() + 1'050'000));
  }
  const kilnCacheStats_t after = stats();
  BOOST_TEST(after.compiled - before.compiled == 4u);
  BOOST_TEST(after.missesAbsent + after.missesDisabled - before.missesAbsent -
                 before.missesDisabled ==
             4u);
  BOOST_TEST(after.compileMs > before.compileMs);
}

BOOST_AUTO_TEST_CASE(cancel) {
  const TestHandle handle;
  std::deque<NewPlan> plans;
  for (int i = 0; i < 12; ++i) plans.emplace_back(handle);
  int cancelled = -1, withdrawn = 0;
  succeeds(kilnCancelFinalizePlan(plans[0].plan, &cancelled));
  BOOST_TEST(cancelled == 0);  // never started
  const kilnCacheStats_t before = stats();
  for (const NewPlan& each : plans) succeeds(kilnStartFinalizePlan(each.plan));
  // Backwards, because finalizations that were started last have not begun.
  for (std::size_t i = plans.size(); --i > 0;) {
    succeeds(kilnCancelFinalizePlan(plans[i].plan, &cancelled));
    if (cancelled == 0) {
      succeeds(kilnWaitFinalizePlan(plans[i].plan));
      continue;
    }
    ++withdrawn;
    int done = -1;
    fails(kilnPollFinalizePlan(plans[i].plan, &done), KILN_STATUS_NOT_INITIALIZED,
          {"not being finalized", "kilnStartFinalizePlan"});
    succeeds(kilnCancelFinalizePlan(plans[i].plan, nullptr));
  }
  succeeds(kilnWaitFinalizePlan(plans[0].plan));
  BOOST_TEST(withdrawn > 0);
  BOOST_TEST(stats().compiled - before.compiled == static_cast<unsigned>(12 - withdrawn));
  if (withdrawn > 0) {  // the last plan, which was last in the queue; now it is finalized after all
    succeeds(kilnStartFinalizePlan(plans[11].plan));
    succeeds(kilnWaitFinalizePlan(plans[11].plan));
  }
}

// Plans that are destroyed during or before their finalization.
BOOST_AUTO_TEST_CASE(destroyed_while_it_waits) {
  const TestHandle handle;
  for (int round = 0; round < 2; ++round) {
    std::deque<NewPlan> plans;
    for (int i = 0; i < 6; ++i) plans.emplace_back(handle);
    for (const NewPlan& each : plans) succeeds(kilnStartFinalizePlan(each.plan));
    if (round == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// A forked child has none of its parent's threads. It must not wait for them, and starts its own.
BOOST_AUTO_TEST_CASE(forked_meanwhile) {
  if (device_kind() == KILN_DEVICE_CUDA) return;  // a context does not survive a fork
  const TestHandle handle;
  NewPlan begun(handle), own(handle);
  succeeds(kilnStartFinalizePlan(begun.plan));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int done = -1;
    if (kilnPollFinalizePlan(begun.plan, &done) != KILN_STATUS_NOT_INITIALIZED || done != 1)
      _exit(1);
    if (kilnWaitFinalizePlan(begun.plan) != KILN_STATUS_NOT_INITIALIZED) _exit(2);
    if (kilnStartFinalizePlan(own.plan) != KILN_STATUS_SUCCESS) _exit(3);
    if (kilnWaitFinalizePlan(own.plan) != KILN_STATUS_SUCCESS) _exit(4);
    _exit(0);
  }
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  succeeds(kilnWaitFinalizePlan(begun.plan));
}

BOOST_AUTO_TEST_CASE(wrong_arguments) {
  const TestHandle handle;
  const NewPlan plan(handle);
  int done = 0;
  bad_param(kilnStartFinalizePlan(nullptr), {"plan is null"});
  bad_param(kilnPollFinalizePlan(nullptr, &done), {"plan is null"});
  bad_param(kilnPollFinalizePlan(plan.plan, nullptr), {"done is null"});
  bad_param(kilnWaitFinalizePlan(nullptr), {"plan is null"});
  bad_param(kilnCancelFinalizePlan(nullptr, &done), {"plan is null"});
  fails(kilnWaitFinalizePlan(plan.plan), KILN_STATUS_NOT_INITIALIZED, {"not being finalized"});
  bad_param(kilnGetCacheStats(nullptr), {"stats is null"});
  kilnCacheStats_t wrong{};
  bad_param(kilnGetCacheStats(&wrong), {"structSize is 0"});
  wrong.structSize = sizeof wrong + 1;
  bad_param(kilnGetCacheStats(&wrong), {"structSize is"});
  wrong.structSize = offsetof(kilnCacheStats_t, compiled);  // an older header's
  wrong.compiled = 12345;
  succeeds(kilnGetCacheStats(&wrong));
  BOOST_TEST(wrong.compiled == 12345u);
}

BOOST_AUTO_TEST_CASE(in_cpp) {
  const kiln::Handle handle(device_kind());
  const kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 3, 6, 6}),
      y(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {2, 4, 6, 6});
  const kiln::FilterDescriptor w(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {4, 3, 3, 3});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
  kiln::ConvolutionForward plan(handle, {.x = x, .w = w, .convolution = convolution, .y = y});
  BOOST_TEST(!plan.cancel_finalize());
  plan.start_finalize();
  while (!plan.poll_finalize()) std::this_thread::yield();
  plan.wait_finalize();
  kiln::ConvolutionForward again(handle, {.x = x, .w = w, .convolution = convolution, .y = y});
  const auto before = kiln::cache_stats();
  again.start_finalize();
  again.wait_finalize();
  BOOST_TEST(again.info().origin == KILN_KERNEL_MEMORY);
  BOOST_TEST(kiln::cache_stats().memoryHits == before.memoryHits + 1);
}

BOOST_AUTO_TEST_SUITE_END()

// Runs as a test of its own with KILN_CACHE=strict: no plan can be finalized, and the callers get
// the failure.
BOOST_AUTO_TEST_SUITE(strict)

BOOST_AUTO_TEST_CASE(failures_arrive) {
  if (!is_strict()) return;
  const TestHandle handle;
  const NewPlan plan(handle);
  const char* text = nullptr;
  succeeds(kilnGetPlanText(plan.plan, KILN_PLAN_PROBLEM, &text));
  const std::string problem = text;
  fails(kilnFinalizePlan(plan.plan), KILN_STATUS_NOT_CACHED, {problem.c_str(), "kernel "});
  succeeds(kilnStartFinalizePlan(plan.plan));
  fails(kilnWaitFinalizePlan(plan.plan), KILN_STATUS_NOT_CACHED, {problem.c_str(), "kernel "});
  fails(kilnWaitFinalizePlan(plan.plan), KILN_STATUS_NOT_INITIALIZED, {"not being finalized"});
  succeeds(kilnStartFinalizePlan(plan.plan));
  kilnStatus_t status = KILN_STATUS_SUCCESS;
  for (int done = 0; done == 0;) status = kilnPollFinalizePlan(plan.plan, &done);
  fails(status, KILN_STATUS_NOT_CACHED, {problem.c_str(), "strict"});
  succeeds(kilnGetPlanText(plan.plan, KILN_PLAN_PROBLEM, &text));
  BOOST_TEST(stats().compiled == 0u);
  BOOST_TEST(stats().missesAbsent + stats().missesDisabled == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
