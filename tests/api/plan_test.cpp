// Plans: finalized once, executed many times; and the information that a plan gives.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>

#include "api/operations/convolution_case.hpp"
#include "core/enumeration.hpp"

using namespace test;

namespace {

template <class T>
void run(const Case<T>& problem, T alpha = 1, T beta = 0) {
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  succeeds(kilnFinalizePlan(plan));
  const Buffer<T> x(problem.x), w(problem.w), y(problem.y);
  succeeds(
      kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(), &beta, y.data()));
  BOOST_TEST(y.read() == problem.expected(alpha, beta, problem.y),
             boost::test_tools::per_element());
}

std::string text(kilnPlan_t plan, kilnPlanText_t which) {
  const char* out = nullptr;
  succeeds(kilnGetPlanText(plan, which, &out));
  BOOST_TEST_REQUIRE(out != nullptr);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plans)

BOOST_AUTO_TEST_CASE(both_modes_give_the_right_answer) {
  Geometry geometry;
  run(Case<float>(geometry));
  geometry.mode = KILN_CONVOLUTION;
  run(Case<float>(geometry));
  run(Case<double>(geometry), 2.0, -3.0);
}

BOOST_AUTO_TEST_CASE(any_strides) {
  Geometry geometry;
  geometry.x_strides = {400, 1, 40, 5};     // channels last, in rows and images with room to spare
  geometry.w_strides = {1, 36, 12, 6};      // output channels contiguous
  geometry.y_strides = {1000, 2, 200, 20};  // every second channel of a larger tensor
  run(Case<float>(geometry), 1.f, 1.f);
  geometry.x_strides = {0, 1, 40, 5};  // one image for the whole batch
  geometry.w_strides = {0, 6, 2, 1};   // one filter for all output channels
  run(Case<float>(geometry));
}

BOOST_AUTO_TEST_CASE(executing_twice_accumulates_through_beta) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  succeeds(kilnFinalizePlan(plan));
  succeeds(kilnFinalizePlan(plan));  // does nothing
  std::vector<float> nan(problem.y.size(), std::numeric_limits<float>::quiet_NaN());
  const Buffer<float> x(problem.x), w(problem.w), y(nan);
  const float one = 1, zero = 0, two = 2;
  const auto execute = [&](const float& alpha, const float& beta) {
    succeeds(
        kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(), &beta, y.data()));
  };
  execute(one, zero);  // y is not read: no NaN survives
  const auto once = problem.expected(1, 0, problem.y);
  BOOST_TEST(y.read() == once, boost::test_tools::per_element());
  execute(two, one);
  BOOST_TEST(y.read() == problem.expected(2, 1, once), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_empty_batch_does_nothing) {
  Geometry geometry;
  geometry.n = 0;
  run(Case<float>(geometry));
}

BOOST_AUTO_TEST_CASE(one_plan_serves_many_threads) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  succeeds(kilnFinalizePlan(plan));
  constexpr int count = 4, rounds = 5;
  std::vector<std::vector<float>> results(count);
  std::vector<kilnStatus_t> statuses(count, KILN_STATUS_SUCCESS);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
        const float alpha = 1, beta = 0;
        for (int round = 0; round < rounds && statuses[i] == KILN_STATUS_SUCCESS; ++round) {
          statuses[i] = kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(),
                                                      &beta, y.data());
        }
        results[i] = y.read();
      });
    }
  }
  const auto expected = problem.expected(1, 0, problem.y);
  for (int i = 0; i < count; ++i) {
    BOOST_TEST(statuses[i] == KILN_STATUS_SUCCESS);
    BOOST_TEST_REQUIRE(results[i].size() == expected.size());
    BOOST_TEST(std::memcmp(results[i].data(), expected.data(), expected.size() * sizeof(float)) ==
               0);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_outlives_its_handle_and_serves_another) {
  const Case<float> problem(Geometry{});
  kilnPlan_t plan = nullptr;
  {
    const TestHandle first;
    succeeds(kilnCreateConvolutionForwardPlan(first, problem.x_desc, problem.w_desc,
                                              problem.convolution, problem.y_desc, &plan));
  }
  succeeds(kilnFinalizePlan(plan));
  const TestHandle second;
  const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
  const float alpha = 1, beta = 0;
  succeeds(
      kilnExecuteConvolutionForward(second, plan, &alpha, x.data(), w.data(), &beta, y.data()));
  BOOST_TEST(y.read() == problem.expected(1, 0, problem.y), boost::test_tools::per_element());
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_CASE(execution_refuses_bad_arguments) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
  const float alpha = 1, beta = 0;
  const auto execute = [&](const void* a, const void* x_data, const void* w_data, const void* b,
                           void* y_data) {
    return kilnExecuteConvolutionForward(handle, plan, a, x_data, w_data, b, y_data);
  };
  fails(execute(&alpha, x.data(), w.data(), &beta, y.data()), KILN_STATUS_NOT_INITIALIZED,
        {"plan", "finalize"});
  succeeds(kilnFinalizePlan(plan));
  bad_param(execute(nullptr, x.data(), w.data(), &beta, y.data()), {"alpha is null"});
  bad_param(execute(&alpha, x.data(), w.data(), nullptr, y.data()), {"beta is null"});
  bad_param(execute(&alpha, nullptr, w.data(), &beta, y.data()), {"x", "null"});
  bad_param(execute(&alpha, x.data(), nullptr, &beta, y.data()), {"w", "null"});
  bad_param(execute(&alpha, x.data(), w.data(), &beta, nullptr), {"y", "null"});
  const auto* misaligned = reinterpret_cast<const char*>(x.data()) + 1;
  bad_param(execute(&alpha, misaligned, w.data(), &beta, y.data()),
            {"x is at", "expected a multiple of"});
  bad_param(
      kilnExecuteConvolutionForward(nullptr, plan, &alpha, x.data(), w.data(), &beta, y.data()),
      {"handle is null"});
  bad_param(
      kilnExecuteConvolutionForward(handle, nullptr, &alpha, x.data(), w.data(), &beta, y.data()),
      {"plan is null", "kilnCreate...Plan"});
  bad_param(kilnFinalizePlan(nullptr), {"plan is null"});
  succeeds(kilnDestroyPlan(nullptr));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(plan_queries)

BOOST_AUTO_TEST_CASE(a_finalized_plan_tells_all) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  const std::string line = text(plan, KILN_PLAN_PROBLEM);
  BOOST_TEST(line.find("g2") != std::string::npos, line);
  BOOST_TEST(line.find("ic4") != std::string::npos, line);
  // The grant is in the line, which may be asked for before and after it; the first text stays.
  const char* before = nullptr;
  succeeds(kilnGetPlanText(plan, KILN_PLAN_PROBLEM, &before));
  succeeds(kilnSetPlanWorkspaceLimit(plan, 4096));
  BOOST_TEST(text(plan, KILN_PLAN_PROBLEM).find(" --workspace 4096 ") != std::string::npos);
  BOOST_TEST(before == line);
  succeeds(kilnSetPlanWorkspaceLimit(plan, 0));
  succeeds(kilnFinalizePlan(plan));
  BOOST_TEST(text(plan, KILN_PLAN_PROBLEM) == line);
  BOOST_TEST(text(plan, KILN_PLAN_ENGINE) != "");
  BOOST_TEST(text(plan, KILN_PLAN_TILE) != "");
  BOOST_TEST(text(plan, KILN_PLAN_CONSTANTS).find(" = ") != std::string::npos);
  BOOST_TEST(text(plan, KILN_PLAN_SOURCE).find("KILN_KERNEL") != std::string::npos);
  BOOST_TEST(text(plan, KILN_PLAN_CACHE_KEY).size() >= 32);
  BOOST_TEST(text(plan, KILN_PLAN_CACHE_KEY).find_first_not_of("0123456789abcdef-") ==
             std::string::npos);
  const bool host = device_kind() == KILN_DEVICE_HOST;
  BOOST_TEST((text(plan, KILN_PLAN_PTX) == "") == host);
  BOOST_TEST((text(plan, KILN_PLAN_ARCHITECTURE).rfind("sm_", 0) == 0) == !host);
  text(plan, KILN_PLAN_COMPILE_LOG);
  text(plan, KILN_PLAN_REFUSALS);

  const void* code = nullptr;
  std::size_t size = 0;
  succeeds(kilnGetPlanBinary(plan, &code, &size));
  BOOST_TEST_REQUIRE(size > 4u);
  BOOST_TEST(std::memcmp(code,
                         "\x7f"
                         "ELF",
                         4) == 0);

  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  succeeds(kilnGetPlanInfo(plan, &info));
  BOOST_TEST(info.structSize == sizeof info);
  BOOST_TEST(info.workspaceBytes == 0u);
  BOOST_TEST(info.alignment >= sizeof(float));
  BOOST_TEST(info.blocks > 0);
  BOOST_TEST(info.threadsPerBlock > 0);
  BOOST_TEST((info.registersPerThread > 0) == !host);
  BOOST_TEST(info.totalMs > 0);
  BOOST_TEST(info.totalMs >= info.compileMs);
  BOOST_TEST((info.compileMs > 0) == (info.origin == KILN_KERNEL_COMPILED));
}

BOOST_AUTO_TEST_CASE(a_second_plan_of_the_same_problem_has_its_kernel_from_memory) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan first(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  const TestPlan second(handle, problem.x_desc, problem.w_desc, problem.convolution,
                        problem.y_desc);
  succeeds(kilnFinalizePlan(first));
  succeeds(kilnFinalizePlan(second));
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  succeeds(kilnGetPlanInfo(second, &info));
  BOOST_TEST(info.origin == KILN_KERNEL_MEMORY);
  BOOST_TEST(info.compileMs == 0);
  BOOST_TEST(text(first, KILN_PLAN_CACHE_KEY) == text(second, KILN_PLAN_CACHE_KEY));
}

BOOST_AUTO_TEST_CASE(the_size_of_the_info_is_checked) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  kilnPlanInfo_t info;
  std::memset(&info, 0xee, sizeof info);
  info.structSize = sizeof info;
  fails(kilnGetPlanInfo(plan, &info), KILN_STATUS_NOT_INITIALIZED, {"plan", "never finalized"});
  succeeds(kilnFinalizePlan(plan));
  info.structSize = 0;
  bad_param(kilnGetPlanInfo(plan, &info), {"structSize is 0", "sizeof(kilnPlanInfo_t)"});
  info.structSize = sizeof info + 8;
  bad_param(kilnGetPlanInfo(plan, &info), {"structSize is ", "older header"});
  bad_param(kilnGetPlanInfo(plan, nullptr), {"info is null"});
  bad_param(kilnGetPlanInfo(nullptr, &info), {"plan is null"});
  // A program compiled with an older header: bytes after its smaller struct are not changed.
  info.structSize = offsetof(kilnPlanInfo_t, blocks);
  const std::int64_t before = info.blocks;
  succeeds(kilnGetPlanInfo(plan, &info));
  BOOST_TEST(info.alignment >= sizeof(float));
  BOOST_TEST(info.blocks == before);
}

BOOST_AUTO_TEST_CASE(queries_refuse_bad_arguments) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  const char* out = nullptr;
  const void* code = nullptr;
  std::size_t size = 0;
  for (const kilnPlanText_t which : kiln::all_of<kilnPlanText_t>()) {
    if (which == KILN_PLAN_PROBLEM) continue;
    fails(kilnGetPlanText(plan, which, &out), KILN_STATUS_NOT_INITIALIZED,
          {"plan", "never finalized"});
  }
  fails(kilnGetPlanBinary(plan, &code, &size), KILN_STATUS_NOT_INITIALIZED, {"never finalized"});
  bad_param(kilnGetPlanText(plan, static_cast<kilnPlanText_t>(10), &out),
            {"which is 10", "expected a kilnPlanText_t, KILN_PLAN_PROBLEM (1400) to"});
  bad_param(kilnGetPlanText(plan, static_cast<kilnPlanText_t>(-1), &out), {"which is -1"});
  bad_param(kilnGetPlanText(plan, KILN_PLAN_PROBLEM, nullptr), {"text is null"});
  bad_param(kilnGetPlanText(nullptr, KILN_PLAN_PROBLEM, &out), {"plan is null"});
  bad_param(kilnGetPlanBinary(plan, nullptr, &size), {"data is null"});
  bad_param(kilnGetPlanBinary(plan, &code, nullptr), {"size is null"});
  bad_param(kilnGetPlanBinary(nullptr, &code, &size), {"plan is null"});
}

BOOST_AUTO_TEST_SUITE_END()
