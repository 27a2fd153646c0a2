// Execution allocates nothing. On a GPU this covers the whole call, including the driver's part. On
// the host device the emulation of a GPU inside the launch (stacks of threads, shared memory of a
// block) may allocate; tests/unit/plan_execute_test.cpp covers the code around the launch.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <vector>

#include "api/operations/convolution_case.hpp"
#include "support/allocation_count.hpp"

using namespace test;

namespace {

boost::test_tools::assertion_result on_a_gpu(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(device_kind() == KILN_DEVICE_CUDA);
  result.message() << "launches of the host device are exempt";
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(the_instrument_counts) {
  const long before = allocation_count();
  auto value = std::make_unique<std::vector<int>>(1000);
  BOOST_TEST(value->size() == 1000u);
  BOOST_TEST((!counts_allocations || allocation_count() == before + 2));
}

BOOST_AUTO_TEST_CASE(execution_on_a_gpu_allocates_nothing,
                     *boost::unit_test::precondition(on_a_gpu)) {
  const Case<float> problem(Geometry{});
  const TestHandle handle;
  const TestPlan plan(handle, problem.x_desc, problem.w_desc, problem.convolution, problem.y_desc);
  succeeds(kilnFinalizePlan(plan));
  const Buffer<float> x(problem.x), w(problem.w), y(problem.y);
  const float alpha = 1, beta = 0;
  kilnStatus_t status = KILN_STATUS_SUCCESS;
  const auto execute = [&](int times) {
    for (int i = 0; i < times && status == KILN_STATUS_SUCCESS; ++i) {
      status =
          kilnExecuteConvolutionForward(handle, plan, &alpha, x.data(), w.data(), &beta, y.data());
    }
  };
  execute(100);  // the driver grows its queues with the first launches
  y.read();
  const long before = allocation_count();
  execute(100);
  const long after = allocation_count();
  succeeds(status);
  BOOST_TEST(after - before == 0);
}

BOOST_AUTO_TEST_SUITE_END()
