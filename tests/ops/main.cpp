// Whole operations on the device under test (KILN_TEST_DEVICE).
#include <boost/test/results_collector.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

#include "ops/conv/forward_case.hpp"
#include "support/memory.hpp"

namespace {

// At the end of all tests.
struct Remembering {
  ~Remembering() {
    using namespace boost::unit_test;
    const auto all = framework::master_test_suite().p_id;
    kiln_test::Memory::instance().close(results_collector.results(all).passed());
  }
};

}  // namespace

BOOST_GLOBAL_FIXTURE(Remembering);

// Without a GPU, tests for GPUs are skipped: CTest takes the exit status 77 as that.
boost::unit_test::test_suite* init_unit_test_suite(int, char**) {
  boost::unit_test::framework::master_test_suite().p_name.value = "kiln operations";
  std::string why;
  if (test::device_kind() == KILN_DEVICE_CUDA && kiln::list_cuda_devices(why).empty()) {
    std::printf("skipped: %s\n", why.c_str());
    std::fflush(stdout);
    std::_Exit(77);
  }
  return nullptr;
}
