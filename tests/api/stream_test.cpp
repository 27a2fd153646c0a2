// Executions on the caller's streams and inside CUDA graph capture; only on a GPU.
#include <dlfcn.h>

#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <string>
#include <thread>

#include "api/operations/convolution_case.hpp"
#include "expect.hpp"
#include "test_device.hpp"

namespace {

using namespace test;

// A driver function by name; each returns 0 for success.
template <class... Arguments>
void driver_call(const char* name, Arguments... arguments) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("no ") + name);
  const int result = function(arguments...);
  if (result != 0) throw std::runtime_error(std::string(name) + ": " + std::to_string(result));
}

class Stream {
 public:
  Stream() {
    constexpr unsigned non_blocking = 1;
    driver_call("cuStreamCreate", &stream_, non_blocking);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { driver_call("cuStreamDestroy_v2", stream_); }
  operator void*() const { return stream_; }
  void synchronize() const { driver_call("cuStreamSynchronize", stream_); }

 private:
  void* stream_ = nullptr;
};

boost::test_tools::assertion_result on_a_gpu(boost::unit_test::test_unit_id) {
  return device_kind() == KILN_DEVICE_CUDA;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(streams, *boost::unit_test::precondition(on_a_gpu))

BOOST_AUTO_TEST_CASE(an_execution_is_captured_and_replayed) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  succeeds(kilnFinalizePlan(plan));
  const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
  const Stream stream;
  succeeds(kilnSetStream(handle, stream));
  const float alpha = 1, beta = 1;

  void *graph = nullptr, *replayable = nullptr;
  constexpr int thread_local_mode = 1;
  driver_call("cuStreamBeginCapture_v2", static_cast<void*>(stream), thread_local_mode);
  succeeds(
      kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(), &beta, y.data()));
  succeeds(
      kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(), &beta, y.data()));
  driver_call("cuStreamEndCapture", static_cast<void*>(stream), &graph);
  BOOST_TEST(y.read() == problem.y, boost::test_tools::per_element());  // captured, not yet run

  driver_call("cuGraphInstantiateWithFlags", &replayable, graph, 0ull);
  driver_call("cuGraphLaunch", replayable, static_cast<void*>(stream));
  stream.synchronize();
  const auto once = problem.expected(1, 1, problem.y);
  BOOST_TEST(y.read() == problem.expected(1, 1, once), boost::test_tools::per_element());
  driver_call("cuGraphExecDestroy", replayable);
  driver_call("cuGraphDestroy", graph);
}

// Each thread has its own handle and stream; all share one plan.
BOOST_AUTO_TEST_CASE(threads_execute_on_streams_of_their_own) {
  const Case<float> problem(Geometry{});
  const TestHandle maker;
  const TestPlan plan(maker, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  succeeds(kilnFinalizePlan(plan));
  constexpr int count = 8, rounds = 50;
  std::vector<std::vector<float>> results(count);
  std::vector<kilnStatus_t> statuses(count, KILN_STATUS_SUCCESS);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
        const Stream stream;
        kilnHandle_t handle = nullptr;
        statuses[i] = kilnCreate(&handle, KILN_DEVICE_CUDA, 0);
        if (statuses[i] == KILN_STATUS_SUCCESS) statuses[i] = kilnSetStream(handle, stream);
        const float alpha = 1, beta = 0;
        for (int round = 0; round < rounds && statuses[i] == KILN_STATUS_SUCCESS; ++round)
          statuses[i] = kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(),
                                                      &beta, y.data());
        stream.synchronize();
        results[i] = y.read();
        kilnDestroy(handle);
      });
    }
  }
  const auto expected = problem.expected(1, 0, problem.y);
  for (int i = 0; i < count; ++i) {
    BOOST_TEST(statuses[i] == KILN_STATUS_SUCCESS);
    BOOST_TEST(results[i] == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
