// Workspace that a caller grants, and tuning on the caller's own buffers.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "api/operations/convolution_case.hpp"

using namespace test;

namespace {

struct SumOfAll {
  TestHandle handle;
  TensorDesc x{KILN_DATA_FLOAT, Sizes{4, 64, 64, 65}}, y{KILN_DATA_FLOAT, Sizes{1, 1, 1, 1}};
  std::size_t count = std::size_t{4} * 64 * 64 * 65;
  kilnPlan_t plan = nullptr;

  SumOfAll() { succeeds(kilnCreateReduceTensorPlan(handle, KILN_REDUCE_SUM, x, y, &plan)); }
  SumOfAll(const SumOfAll&) = delete;
  SumOfAll& operator=(const SumOfAll&) = delete;
  ~SumOfAll() { kilnDestroyPlan(plan); }

  kilnPlanInfo_t info() const {
    kilnPlanInfo_t info{};
    info.structSize = sizeof info;
    succeeds(kilnGetPlanInfo(plan, &info));
    return info;
  }
  kilnStatus_t execute(const Buffer<float>& from, const Buffer<float>& to) const {
    const float one = 1, zero = 0;
    return kilnExecuteReduceTensor(handle, plan, &one, from.data(), &zero, to.data());
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(workspace)

BOOST_AUTO_TEST_CASE(without_a_grant_there_is_none) {
  const SumOfAll sum;
  succeeds(kilnFinalizePlan(sum.plan));
  BOOST_TEST(sum.info().workspaceBytes == 0u);
  BOOST_TEST(sum.info().steps == 1);
  const Buffer<float> x(std::vector<float>(sum.count, 1)), y(std::vector<float>{-1});
  succeeds(sum.execute(x, y));
  BOOST_TEST(y.read()[0] == static_cast<float>(sum.count));
}

BOOST_AUTO_TEST_CASE(a_plan_takes_what_it_was_granted_and_no_more) {
  const std::size_t limit = std::size_t{1} << 20;
  const SumOfAll sum;
  succeeds(kilnSetPlanWorkspaceLimit(sum.plan, limit));
  succeeds(kilnFinalizePlan(sum.plan));
  const kilnPlanInfo_t info = sum.info();
  BOOST_TEST(info.workspaceBytes <= limit);
  BOOST_TEST(info.workspaceBytes == info.bestWorkspaceBytes);  // a megabyte is enough here
  BOOST_TEST(info.steps == (info.workspaceBytes > 0 ? 2 : 1));
  const Buffer<float> x(std::vector<float>(sum.count, 1)), y(std::vector<float>{-1});
  if (info.workspaceBytes > 0)
    bad_param(sum.execute(x, y), {"the handle's workspace has 0 bytes", "kilnSetWorkspace"});
  const Buffer<float> lent(
      std::vector<float>(limit / 4 + 64, std::numeric_limits<float>::quiet_NaN()));
  succeeds(kilnSetWorkspace(sum.handle, aligned(lent), limit));
  succeeds(sum.execute(x, y));
  BOOST_TEST(y.read()[0] == static_cast<float>(sum.count));
  if (info.workspaceBytes > 0) {
    succeeds(kilnSetWorkspace(sum.handle, aligned(x), limit));
    bad_param(sum.execute(x, y), {"a is at", "overlaps the handle's workspace"});
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  const SumOfAll sum;
  const Buffer<float> memory(std::vector<float>(256));
  void* address = nullptr;
  std::size_t bytes = 0;
  bad_param(kilnSetWorkspace(nullptr, nullptr, 0), {"handle is null"});
  bad_param(kilnSetWorkspace(sum.handle, nullptr, 16), {"workspace is null and bytes is 16"});
  bad_param(kilnSetWorkspace(sum.handle, static_cast<char*>(aligned(memory)) + 4, 16),
            {"workspace is at", "expected a multiple of 256"});
  bad_param(kilnGetWorkspace(sum.handle, nullptr, &bytes), {"workspace is null"});
  bad_param(kilnGetWorkspace(sum.handle, &address, nullptr), {"bytes is null"});
  succeeds(kilnSetWorkspace(sum.handle, aligned(memory), 512));
  succeeds(kilnGetWorkspace(sum.handle, &address, &bytes));
  BOOST_TEST(address == aligned(memory));
  BOOST_TEST(bytes == 512u);
  bad_param(kilnSetPlanWorkspaceLimit(nullptr, 16), {"plan is null"});
  succeeds(kilnFinalizePlan(sum.plan));
  bad_param(kilnSetPlanWorkspaceLimit(sum.plan, 16),
            {"plan is finalized", "kilnSetPlanWorkspaceLimit before kilnFinalizePlan"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tune_plan)

BOOST_AUTO_TEST_CASE(finalizes_with_a_right_kernel) {
  Geometry g;
  g.n = 2, g.c = 3, g.h = 7, g.w = 8, g.k = 2, g.r = 2, g.s = 2, g.groups = 1;
  g.stride = {1, 1}, g.dilation = {1, 1};
  const Case<float> c(g);
  const TestHandle handle;
  const TestPlan plan(handle, c.x_desc, c.w_desc, c.convolution, c.y_desc);
  const Buffer<float> x(c.x), w(c.w), y(c.y);
  const void* operands[] = {x.data(), w.data(), y.data()};
  bad_param(kilnTunePlan(nullptr, plan, operands, 3, 10), {"handle is null"});
  bad_param(kilnTunePlan(handle, nullptr, operands, 3, 10), {"plan is null"});
  bad_param(kilnTunePlan(handle, plan, nullptr, 3, 10), {"operands is null"});
  bad_param(kilnTunePlan(handle, plan, operands, 2, 10), {"count is 2; expected 3"});
  bad_param(kilnTunePlan(handle, plan, operands, 3, -1), {"budgetMs is -1"});
  bad_param(kilnTunePlan(handle, plan, operands, 3, std::numeric_limits<double>::quiet_NaN()),
            {"budgetMs is"});
  const void* incomplete[] = {x.data(), nullptr, y.data()};
  bad_param(kilnTunePlan(handle, plan, incomplete, 3, 10), {"w is null"});
  succeeds(kilnTunePlan(handle, plan, operands, 3, 10));
  const float one = 1, zero = 0;
  succeeds(kilnExecuteConvolutionForward(handle, plan, &one, x.data(), w.data(), &zero, y.data()));
  BOOST_TEST(y.read() == c.expected(1, 0, c.y), boost::test_tools::per_element());
  bad_param(kilnTunePlan(handle, plan, operands, 3, 10),
            {"plan is finalized", "kilnTunePlan before kilnFinalizePlan"});
}

// Workspace beyond the plan's grant holds copies of the operands; nothing else is written.
BOOST_AUTO_TEST_CASE(on_copies_in_the_workspace) {
  Geometry g;
  g.n = 2, g.c = 3, g.h = 7, g.w = 8, g.k = 2, g.r = 2, g.s = 2, g.groups = 1;
  g.stride = {1, 1}, g.dilation = {1, 1};
  const Case<float> c(g);
  const TestHandle handle;
  const TestPlan plan(handle, c.x_desc, c.w_desc, c.convolution, c.y_desc);
  constexpr std::size_t granted = 4096, bytes = 65536, guard = 256;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Buffer<float> x(c.x), w(c.w), y(c.y),
      lent(std::vector<float>((bytes + 2 * guard) / 4, nan));
  auto* const memory = static_cast<std::byte*>(aligned(lent));
  succeeds(kilnSetPlanWorkspaceLimit(plan, granted));
  succeeds(kilnSetWorkspace(handle, memory, bytes));
  const void* operands[] = {x.data(), w.data(), y.data()};
  succeeds(kilnTunePlan(handle, plan, operands, 3, 1));
  BOOST_TEST(x.read() == c.x, boost::test_tools::per_element());
  BOOST_TEST(w.read() == c.w, boost::test_tools::per_element());
  const std::vector<float> all = lent.read();
  const std::size_t first = (memory - static_cast<std::byte*>(static_cast<void*>(lent.data()))) / 4;
  const auto copies = [&](std::size_t begin, std::size_t end) {
    std::size_t found = 0;
    for (std::size_t at = begin; at + c.x.size() <= end; ++at)
      found += std::equal(c.x.begin(), c.x.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    return found;
  };
  BOOST_TEST(copies(first + granted / 4, first + bytes / 4) >= 2u);
  BOOST_TEST(copies(0, first + granted / 4) == 0u);
  for (std::size_t at = first + bytes / 4; at < all.size(); ++at) BOOST_TEST(std::isnan(all[at]));
  const float one = 1, zero = 0;
  succeeds(kilnExecuteConvolutionForward(handle, plan, &one, x.data(), w.data(), &zero, y.data()));
  BOOST_TEST(y.read() == c.expected(1, 0, c.y), boost::test_tools::per_element());
}

// Where there is nothing to compare, operands are looked at all the same.
BOOST_AUTO_TEST_CASE(with_one_candidate) {
  Geometry g;
  g.n = 1, g.c = 2, g.h = 4, g.w = 4, g.k = 2, g.r = 2, g.s = 2, g.groups = 1;
  g.stride = {1, 1}, g.dilation = {1, 1};
  const Case<float> c(g);
  const TestHandle handle;
  const TestPlan plan(handle, c.x_desc, c.w_desc, c.convolution, c.y_desc);
  succeeds(kilnSetPlanEngine(plan, "direct"));
  const Buffer<float> x(c.x), w(c.w), y(c.y);
  const void* nothing[] = {nullptr, nullptr, nullptr};
  bad_param(kilnTunePlan(handle, plan, nothing, 3, 10), {"x is null"});
  const void* operands[] = {x.data(), w.data(), y.data()};
  succeeds(kilnTunePlan(handle, plan, operands, 3, 10));
  const float one = 1, zero = 0;
  succeeds(kilnExecuteConvolutionForward(handle, plan, &one, x.data(), w.data(), &zero, y.data()));
  BOOST_TEST(y.read() == c.expected(1, 0, c.y), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
