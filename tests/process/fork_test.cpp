// fork, while other threads hold any of the library's locks, are in the middle of making what is
// made once, or are at work on a handle or a plan that the child inherits. The child never hangs
// and gets right results.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "compile/compiler.hpp"
#include "core/error.hpp"
#include "core/process/per_process.hpp"
#include "folder.hpp"
#include "in_child.hpp"
#include "work.hpp"

namespace test {
namespace {

constexpr unsigned long_enough = 60;  // seconds

void forget_all() {
  for (auto* state = kiln::ProcessState::first(); state != nullptr; state = state->next())
    state->forget();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fork)

BOOST_AUTO_TEST_CASE(with_each_lock_held) {
  BOOST_REQUIRE(do_everything(1) == 0);
  std::string why;
  kiln::find_nvrtc(why);
  std::vector<kiln::ProcessState*> states;
  for (auto* state = kiln::ProcessState::first(); state != nullptr; state = state->next())
    states.push_back(state);
  std::ifstream file(KILN_LIST_OF_LOCKS);
  std::stringstream list;
  list << file.rdbuf();
  BOOST_TEST(states.size() >= 20u);  // those listed but the GPU's
  for (kiln::ProcessState* state : states) {
    BOOST_TEST_CONTEXT(state->name()) {
      BOOST_TEST(list.str().find(state->name()) != std::string::npos);
      const std::unique_lock held = state->hold();
      const int end = in_child(long_enough, [&] {
        forget_all();
        std::string ignored;
        kiln::find_nvrtc(ignored);
        return do_everything(1);
      });
      BOOST_TEST(end == 0);
    }
  }
}

// The child of a process in which something is being made for the first time, by a thread that will
// never be done with it.
BOOST_AUTO_TEST_CASE(while_the_host_compiler_is_looked_for) {
  BOOST_REQUIRE(do_everything(1) == 0);
  const int end = in_child(long_enough, [] {
    forget_all();
    make_compiler_slow(true);
    std::thread([] { do_everything(1); }).detach();
    wait_until_compiler_begins();
    make_compiler_slow(false);
    return in_child(long_enough, [] { return do_everything(1); });
  });
  BOOST_TEST(end == 0);
}

BOOST_AUTO_TEST_CASE(while_a_thread_is_in_an_immediate_call) {
  kilnHandle_t handle = nullptr;
  BOOST_REQUIRE(kilnCreate(&handle, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
  Work known(1), fresh(2), own(2);
  BOOST_REQUIRE(known.run(handle) == KILN_STATUS_SUCCESS);
  make_compiler_slow(true);
  kilnStatus_t status = KILN_STATUS_INTERNAL_ERROR;
  std::thread other([&] { status = fresh.run(handle); });
  wait_until_compiler_begins();
  make_compiler_slow(false);
  const int end = in_child(long_enough, [&] {
    if (known.run(handle) != KILN_STATUS_SUCCESS || !known.right()) return 1;
    if (own.run(handle) != KILN_STATUS_SUCCESS || !own.right()) return 2;
    return kilnDestroy(handle) == KILN_STATUS_SUCCESS ? 0 : 3;
  });
  BOOST_TEST(end == 0);
  other.join();
  BOOST_TEST(status == KILN_STATUS_SUCCESS);
  BOOST_TEST(fresh.right());
  BOOST_TEST(kilnDestroy(handle) == KILN_STATUS_SUCCESS);
}

// Such a plan is half made in the child, and stays so: it is refused, and can be destroyed.
BOOST_AUTO_TEST_CASE(while_threads_finalize_plans) {
  kilnHandle_t handle = nullptr;
  BOOST_REQUIRE(kilnCreate(&handle, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
  Work work(3), later(4);
  kilnPlan_t foreground = nullptr, begun = nullptr, queued = nullptr;
  kilnPlan_t rest[2];
  BOOST_REQUIRE(work.plan(handle, &foreground) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(later.plan(handle, &begun) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(work.plan(handle, &queued) == KILN_STATUS_SUCCESS);
  for (kilnPlan_t& each : rest) BOOST_REQUIRE(later.plan(handle, &each) == KILN_STATUS_SUCCESS);
  make_compiler_slow(true);
  kilnStatus_t status = KILN_STATUS_INTERNAL_ERROR;
  std::thread other([&] { status = kilnFinalizePlan(foreground); });
  wait_until_compiler_begins();
  BOOST_TEST(kilnStartFinalizePlan(begun) == KILN_STATUS_SUCCESS);
  for (const kilnPlan_t each : rest) BOOST_TEST(kilnStartFinalizePlan(each) == KILN_STATUS_SUCCESS);
  BOOST_TEST(kilnStartFinalizePlan(queued) == KILN_STATUS_SUCCESS);
  usleep(100'000);  // both compilers are at work, for two seconds
  make_compiler_slow(false);
  const int end = in_child(long_enough, [&] {
    for (const kilnPlan_t plan : {foreground, begun, queued}) {
      int done = -1;
      if (kilnFinalizePlan(plan) != KILN_STATUS_NOT_INITIALIZED) return 1;
      if (kilnWaitFinalizePlan(plan) != KILN_STATUS_NOT_INITIALIZED) return 2;
      if (kilnPollFinalizePlan(plan, &done) != KILN_STATUS_NOT_INITIALIZED || done != 1) return 3;
      if (kilnStartFinalizePlan(plan) != KILN_STATUS_NOT_INITIALIZED) return 4;
      if (work.execute(handle, plan) != KILN_STATUS_NOT_INITIALIZED) return 5;
    }
    int cancelled = -1;
    if (kilnCancelFinalizePlan(begun, &cancelled) != KILN_STATUS_SUCCESS || cancelled != 0)
      return 6;
    if (kilnFinalizePlan(begun) != KILN_STATUS_NOT_INITIALIZED) return 7;
    // What nobody had begun is as good as new.
    if (kilnCancelFinalizePlan(queued, &cancelled) != KILN_STATUS_SUCCESS || cancelled != 1)
      return 8;
    if (kilnFinalizePlan(queued) != KILN_STATUS_SUCCESS) return 9;
    if (work.execute(handle, queued) != KILN_STATUS_SUCCESS || !work.right()) return 10;
    for (const kilnPlan_t plan : {foreground, begun, queued, rest[0], rest[1]})
      if (kilnDestroyPlan(plan) != KILN_STATUS_SUCCESS) return 11;
    if (kilnDestroyPlan(begun) != KILN_STATUS_BAD_PARAM) return 12;
    return kilnDestroy(handle) == KILN_STATUS_SUCCESS ? 0 : 13;
  });
  BOOST_TEST(end == 0);
  other.join();
  BOOST_TEST(status == KILN_STATUS_SUCCESS);
  for (const kilnPlan_t plan : {begun, queued, rest[0], rest[1]})
    BOOST_TEST(kilnWaitFinalizePlan(plan) == KILN_STATUS_SUCCESS);
  for (const kilnPlan_t plan : {foreground, begun, queued, rest[0], rest[1]})
    BOOST_TEST(kilnDestroyPlan(plan) == KILN_STATUS_SUCCESS);
  kilnDestroy(handle);
}

// What a plan has beside its own kernel is whole: the child goes on with it.
BOOST_AUTO_TEST_CASE(while_a_stand_in_serves) {
  kilnHandle_t handle = nullptr;
  BOOST_REQUIRE(kilnCreate(&handle, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
  Work work(5), other(6);
  kilnPlan_t first = nullptr, quick = nullptr, plan = nullptr;
  const char* engine = nullptr;
  // So that the stand-in's kernel is there, and the compiler that is waited for is the plan's own.
  BOOST_REQUIRE(other.plan(handle, &first) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnSetPlanStandIn(first, KILN_STAND_IN_ANY) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnStartFinalizePlan(first) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnGetPlanText(first, KILN_PLAN_ENGINE, &engine) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(work.plan(handle, &quick) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnSetPlanEngine(quick, engine) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnFinalizePlan(quick) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnWaitFinalizePlan(first) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(work.plan(handle, &plan) == KILN_STATUS_SUCCESS);
  BOOST_REQUIRE(kilnSetPlanStandIn(plan, KILN_STAND_IN_ANY) == KILN_STATUS_SUCCESS);
  make_compiler_slow(true);
  BOOST_TEST(kilnStartFinalizePlan(plan) == KILN_STATUS_SUCCESS);
  wait_until_compiler_begins();
  make_compiler_slow(false);
  const int end = in_child(long_enough, [&] {
    int done = -1;
    if (work.execute(handle, plan) != KILN_STATUS_SUCCESS || !work.right()) return 1;
    if (kilnPollFinalizePlan(plan, &done) != KILN_STATUS_NOT_INITIALIZED || done != 1) return 2;
    if (kilnStartFinalizePlan(plan) != KILN_STATUS_NOT_INITIALIZED) return 3;
    if (work.execute(handle, plan) != KILN_STATUS_SUCCESS || !work.right()) return 4;
    return kilnDestroyPlan(plan) == KILN_STATUS_SUCCESS ? 0 : 5;
  });
  BOOST_TEST(end == 0);
  BOOST_TEST(kilnWaitFinalizePlan(plan) == KILN_STATUS_SUCCESS);
  BOOST_TEST(work.execute(handle, plan) == KILN_STATUS_SUCCESS);
  BOOST_TEST(work.right());
  for (const kilnPlan_t each : {plan, quick, first})
    BOOST_TEST(kilnDestroyPlan(each) == KILN_STATUS_SUCCESS);
  kilnDestroy(handle);
}

// The loader of the C library has locks, too. Here threads are inside it most of the time.
BOOST_AUTO_TEST_CASE(while_kernels_are_loaded_and_unloaded) {
  constexpr int threads = 3;
  for (int i = 0; i <= threads; ++i) BOOST_REQUIRE(do_everything(10 + i) == 0);
  const int forks = times(60, 10'000);
  // Of a child. A child that hangs does so for good, and other programs may take the processor.
  const unsigned enough = forks < 100 ? 10 : 600;
  const int end = in_child(forks < 100 ? long_enough : 6 * 3600, [&] {
    setenv("KILN_LOADED_KERNELS", "1", 1);
    forget_all();
    kilnHandle_t handle = nullptr;
    if (kilnCreate(&handle, KILN_DEVICE_HOST, 0) != KILN_STATUS_SUCCESS) return 100;
    for (int i = 0; i < threads; ++i)
      std::thread([i, handle] {
        for (int turn = 0;; ++turn)
          if (const int step = load_and_unload(handle, 10 + i + turn % 2); step != 0) _exit(step);
      }).detach();
    for (int i = 0; i < forks; ++i) {
      const int child = in_child(enough, [&] { return load_and_unload(handle, 10 + threads); });
      if (child != 0) return child < 0 ? 128 - child : 50 + child;
    }
    return 0;
  });
  BOOST_TEST(end == 0);
}

// NVRTC cannot be used in a child that was forked meanwhile. The child is told so, and does not
// hang.
BOOST_AUTO_TEST_CASE(while_nvrtc_compiles) {
  std::string why;
  const auto nvrtc = kiln::find_nvrtc(why);
  if (!nvrtc) {
    BOOST_TEST_MESSAGE("skipped: " << why);
    return;
  }
  const auto compile = [&] {
    const std::string source = "extern \"C\" __global__ void k(float* p) { p[0] = 1; }";
    return nvrtc->compile(source, "k.cu", kiln::nvrtc_options("sm_80"));
  };
  compile();  // opens it
  BOOST_TEST(in_child(long_enough, [&] { return compile().binary.empty() ? 1 : 0; }) == 0);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) compile();
  });
  int refused = 0;
  for (int i = 0; i < times(5, 50); ++i) {
    usleep(10'000 + 1'000 * i);
    const int end = in_child(long_enough, [&] {
      try {
        return compile().binary.empty() ? 1 : 0;
      } catch (const kiln::Error& error) {
        return error.status() == KILN_STATUS_NO_COMPILER ? 2 : 3;
      }
    });
    refused += end == 2;
    BOOST_TEST((end == 0 || end == 2), end);
  }
  BOOST_TEST(refused > 0);
  stop = true;
  other.join();
}

// At any moment: a process whose threads do everything over and over, some of them from the very
// beginning.
BOOST_AUTO_TEST_CASE(at_random_moments) {
  constexpr int forks = 10, kernels = 3;  // of one process
  for (int i = 0; i < kernels; ++i) BOOST_REQUIRE(do_everything(10 + i) == 0);
  std::minstd_rand random(20140);
  for (int process = 0; process < times(4, 100); ++process) {
    const unsigned seed = random();
    const int end = in_child(10 * long_enough, [&] {
      forget_all();
      kilnHandle_t handle = nullptr;
      if (kilnCreate(&handle, KILN_DEVICE_HOST, 0) != KILN_STATUS_SUCCESS) return 100;
      for (int i = 0; i < kernels; ++i)
        std::thread([i, handle] {
          for (;;) {
            do_everything(10 + i);
            Work(10 + i).run(handle);
          }
        }).detach();
      std::minstd_rand moments(seed);
      for (int i = 0; i < forks; ++i) {
        usleep(moments() % 20'000);
        const int child = in_child(long_enough, [&] {
          for (int k = 0; k < kernels; ++k) {
            Work work(10 + k);
            if (work.run(handle) != KILN_STATUS_SUCCESS || !work.right()) return 50;
            if (const int step = do_everything(10 + k); step != 0) return step;
          }
          return 0;
        });
        if (child != 0) return child < 0 ? 128 - child : child;
      }
      return 0;
    });
    BOOST_TEST(end == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace test
