// Whole operations on the device under test (KILN_TEST_DEVICE).
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

#include "ops/conv/forward_case.hpp"

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
