// Threads and memory that are not to be had: ALLOC_FAILED and a sentence, and the next try
// succeeds.
#include "denial.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "compile/compiler.hpp"
#include "core/process/per_process.hpp"
#include "folder.hpp"
#include "in_child.hpp"
#include "work.hpp"

namespace test {
namespace {

constexpr unsigned long_enough = 60;  // seconds

bool is_tolerable(kilnStatus_t status) {
  return status == KILN_STATUS_SUCCESS || status == KILN_STATUS_ALLOC_FAILED;
}

// All that a caller does with plans, as far as it gets with the memory there is: 0, or the step
// that ended with anything but SUCCESS and ALLOC_FAILED, or with wrong sums.
int do_what_is_possible(int number) {
  int step = 0;
  kilnStatus_t status = KILN_STATUS_SUCCESS;
  const auto ok = [&](kilnStatus_t now) {
    ++step;
    return (status = now) == KILN_STATUS_SUCCESS;
  };
  bool wrong = false;
  const auto right = [&](const Work& work) { return !(wrong = !work.right()); };
  kilnHandle_t handle = nullptr;
  kilnPlan_t plan = nullptr, background = nullptr, at_once = nullptr;
  Work work(number);
  static_cast<void>(
      ok(work.status()) && ok(kilnCreate(&handle, KILN_DEVICE_HOST, 0)) &&             // 2
      ok(work.run(handle)) && right(work) && ok(work.plan(handle, &plan)) &&           // 4
      ok(kilnFinalizePlan(plan)) && ok(work.execute(handle, plan)) && right(work) &&   // 6
      ok(work.plan(handle, &background)) && ok(kilnStartFinalizePlan(background)) &&   // 8
      ok(kilnWaitFinalizePlan(background)) && ok(work.execute(handle, background)) &&  // 10
      right(work) && ok(work.plan(handle, &at_once)) &&
      ok(kilnSetPlanStandIn(at_once, KILN_STAND_IN_ANY)) &&  // 12
      ok(kilnStartFinalizePlan(at_once)) && ok(kilnWaitFinalizePlan(at_once)) &&
      ok(work.execute(handle, at_once)) && right(work));
  const bool says_why = status == KILN_STATUS_SUCCESS || *kilnGetLastErrorMessage() != '\0';
  for (const kilnStatus_t end : {kilnDestroyPlan(at_once), kilnDestroyPlan(background),
                                 kilnDestroyPlan(plan), kilnDestroy(handle)})
    if (end != KILN_STATUS_SUCCESS) return 50;
  return is_tolerable(status) && !wrong && says_why ? 0 : step;
}

// Run in a child of its own, which makes anew what its parent had loaded. A child that went wrong
// ends with the step, plus 100 where memory was there again.
int with_denial(long nth, bool goes_on) {
  return in_child(long_enough, [&] {
    deny_memory(nth, goes_on);
    const int step = do_what_is_possible(20);
    deny_memory(0, false);
    if (step != 0) return step;
    const int after = do_everything(20);
    return after == 0 ? 0 : 100 + after;
  });
}

int immediate_call() {
  kilnHandle_t handle = nullptr;
  Work work(21);
  kilnStatus_t status = work.status();
  if (status == KILN_STATUS_SUCCESS) status = kilnCreate(&handle, KILN_DEVICE_HOST, 0);
  if (status == KILN_STATUS_SUCCESS) status = work.run(handle);
  const bool wrong = status == KILN_STATUS_SUCCESS && !work.right();
  if (handle != nullptr && kilnDestroy(handle) != KILN_STATUS_SUCCESS) return 1;
  if (wrong) return 2;
  return is_tolerable(status) ? 0 : 3;
}

int compile_with_nvrtc() {
  std::string why;
  const auto nvrtc = kiln::find_nvrtc(why);
  if (!nvrtc) return 0;
  const std::string source = "extern \"C\" __global__ void k(float* p) { p[threadIdx.x] *= 2; }";
  return nvrtc->compile(source, "k.cu", kiln::nvrtc_options("sm_80")).binary.empty() ? 1 : 0;
}

// Runs work on a thread with a stack of so many bytes.
int on_stack(std::size_t bytes, int (*work)()) {
  struct Task {
    int (*work)();
    int result;
  } task{work, 80};
  const auto run = [](void* argument) -> void* {
    auto& mine = *static_cast<Task*>(argument);
    mine.result = mine.work();
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, bytes) != 0 ||
      pthread_create(&thread, &attributes, run, &task) != 0)
    return 81;
  pthread_join(thread, nullptr);
  return task.result;
}

// A process that has to find and run the compiler. What it prints on its standard output or writes
// into its descriptor 3, or into the folder it is in, is somebody else's doing.
template <class Body>
int with_compiler(const Body& body) {
  return in_child(long_enough, [&] {
    setenv("KILN_CACHE", "off", 1);
    setenv("KILN_HOST_CXX", copying_compiler().c_str(), 1);
    for (auto* state = kiln::ProcessState::first(); state != nullptr; state = state->next())
      state->forget();
    char own[] = "/tmp/kiln-test-own-XXXXXX";
    if (mkdtemp(own) == nullptr || chdir(own) != 0) return 90;
    const int output = open("output", O_RDWR | O_CREAT, 0600);
    if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, 3) < 0) return 91;
    int end = body();
    if (end == 0 && lseek(output, 0, SEEK_END) != 0) end = 92;
    if (unlink("output") != 0 || (rmdir(own) != 0 && end == 0)) end = 93;
    return end;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(denial)

// The compiler is never run in part: not in the program's folder, not with its descriptors.
BOOST_AUTO_TEST_CASE(no_means_to_start_a_program) {
  BOOST_REQUIRE(with_compiler(immediate_call) == 0);  // compiles the kernel
  const int all = with_compiler([&] {
    deny_spawn(0);
    return immediate_call() != 0 ? 0 : static_cast<int>(spawn_calls());
  });
  BOOST_REQUIRE(all > 3 * 10);
  BOOST_REQUIRE(all < 90);
  for (int nth = 1; nth <= all; ++nth) BOOST_TEST_CONTEXT("call " << nth << " of " << all) {
      const int end = with_compiler([&] {
        deny_spawn(nth);
        const int step = immediate_call();
        if (step != 0 || spawn_calls() < nth) return 10 + step;
        deny_spawn(0);
        return immediate_call();
      });
      BOOST_TEST(end == 0);
    }
}

BOOST_AUTO_TEST_CASE(no_thread_for_the_background) {
  kilnHandle_t handle = nullptr;
  BOOST_REQUIRE(do_everything(20) == 0);
  BOOST_REQUIRE(kilnCreate(&handle, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
  for (int i = 0; i < times(100, 1000); ++i) {
    Work work(20);
    kilnPlan_t plan = nullptr;
    BOOST_REQUIRE(work.plan(handle, &plan) == KILN_STATUS_SUCCESS);
    deny_threads = true;
    const kilnStatus_t status = kilnStartFinalizePlan(plan);
    const std::string message = kilnGetLastErrorMessage();
    int cancelled = -1, done = -1;
    BOOST_TEST(kilnCancelFinalizePlan(plan, &cancelled) == KILN_STATUS_SUCCESS);
    BOOST_TEST(cancelled == 0);  // nothing is in the row
    BOOST_TEST(kilnPollFinalizePlan(plan, &done) == KILN_STATUS_NOT_INITIALIZED);
    deny_threads = false;
    BOOST_TEST(status == KILN_STATUS_ALLOC_FAILED);
    BOOST_TEST(message.find("thread") != std::string::npos, message);
    if (i % 2 == 0) {  // the same plan after all; the others are destroyed
      BOOST_TEST(kilnStartFinalizePlan(plan) == KILN_STATUS_SUCCESS);
      BOOST_TEST(kilnWaitFinalizePlan(plan) == KILN_STATUS_SUCCESS);
      BOOST_TEST(work.execute(handle, plan) == KILN_STATUS_SUCCESS);
      BOOST_TEST(work.right());
    }
    BOOST_TEST(kilnDestroyPlan(plan) == KILN_STATUS_SUCCESS);
  }
  BOOST_TEST(do_everything(20) == 0);
  kilnDestroy(handle);
}

// The host device runs its blocks on threads, and on the caller's alone where there are no more.
BOOST_AUTO_TEST_CASE(no_thread_for_a_launch) {
  kilnHandle_t handle = nullptr;
  Work work(20);
  BOOST_REQUIRE(kilnCreate(&handle, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
  deny_threads = true;
  const kilnStatus_t status = work.run(handle);
  deny_threads = false;
  BOOST_TEST(status == KILN_STATUS_SUCCESS);
  BOOST_TEST(work.right());
  kilnDestroy(handle);
}

BOOST_AUTO_TEST_CASE(no_memory) {
  if (!can_deny_memory) return;
  BOOST_REQUIRE(do_everything(20) == 0);
  auto* const counted = static_cast<long*>(
      mmap(nullptr, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  BOOST_REQUIRE(counted != MAP_FAILED);
  BOOST_REQUIRE(in_child(long_enough, [&] {
                  deny_memory(0, false);
                  const int step = do_what_is_possible(20);
                  *counted = memory_requests();
                  return step;
                }) == 0);
  const long all = *counted;
  BOOST_REQUIRE(all > 100);
  const int count = times(30, static_cast<int>(all));
  for (const bool goes_on : {true, false})
    for (int i = 0; i < count; ++i) {
      // The first ones one by one, the others spread over all; in full every one.
      const bool each = i < count / 2 || count == all;
      const long nth = each ? i + 1 : all * (i - count / 2) / (count - count / 2);
      BOOST_TEST_CONTEXT("request " << nth << (goes_on ? " and all after it" : " alone"))
      BOOST_TEST(with_denial(nth, goes_on) == 0);
    }
}

// What a process keeps of kernels is bounded by KILN_LOADED_KERNELS: from there on, and after the
// answers for the last hundred problems or so, new ones take no more memory.
BOOST_AUTO_TEST_CASE(memory_of_ever_new_kernels_levels) {
  if (!can_deny_memory) return;  // a sanitizer's allocator is not asked
  constexpr int level = 140, more = 20;
  const int end = with_compiler([] {
    setenv("KILN_LOADED_KERNELS", "20", 1);
    kilnHandle_t handle = nullptr;
    if (kilnCreate(&handle, KILN_DEVICE_HOST, 0) != KILN_STATUS_SUCCESS) return 1;
    std::size_t before = 0;
    for (int i = 0; i < level + more; ++i) {
      if (i == level) before = mallinfo2().uordblks;
      Work work(300 + i);
      kilnPlan_t plan = nullptr;
      if (work.plan(handle, &plan) != KILN_STATUS_SUCCESS) return 2;
      if (kilnFinalizePlan(plan) != KILN_STATUS_SUCCESS) return 3;
      kilnDestroyPlan(plan);
    }
    return mallinfo2().uordblks < before + more * 4096 ? 0 : 4;  // of 115 KiB that a kernel takes
  });
  BOOST_TEST(end == 0);
}

// The stacks that finalizing a plan needs, as src/plan/README.md has them.
BOOST_AUTO_TEST_CASE(small_stacks_are_enough) {
  if (!can_deny_memory) return;  // a sanitizer's frames are larger
  BOOST_TEST(with_compiler([] { return on_stack(64 * 1024, immediate_call); }) == 0);
  BOOST_TEST(with_compiler([] { return on_stack(256 * 1024, compile_with_nvrtc); }) == 0);
}

// A thread that has never been in the library, and has no memory at all.
BOOST_AUTO_TEST_CASE(no_memory_from_the_start) {
  if (!can_deny_memory) return;
  const int end = in_child(long_enough, [] {
    std::atomic<int> go{0};
    int result = 1;
    std::thread other([&] {
      while (go == 0) std::this_thread::yield();
      kilnHandle_t handle = nullptr;
      kilnTensorDescriptor_t tensor = nullptr;
      if (kilnCreateTensorDescriptor(&tensor) != KILN_STATUS_ALLOC_FAILED) return;
      if (std::strstr(kilnGetLastErrorMessage(), "memory") == nullptr) return;
      if (kilnCreate(&handle, KILN_DEVICE_HOST, 7) != KILN_STATUS_ALLOC_FAILED) return;
      result = 0;
    });
    deny_memory(1, true);
    go = 1;
    other.join();
    deny_memory(0, false);
    return result;
  });
  BOOST_TEST(end == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace test
