// The tests of the public C API, against the shared library alone.
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

#include "test_device.hpp"

namespace {

constexpr int skipped = 77;  // CTest's SKIP_RETURN_CODE

}  // namespace

boost::unit_test::test_suite* init_unit_test_suite(int, char**) {
  boost::unit_test::framework::master_test_suite().p_name.value = "kiln C API";
  kilnHandle_t handle = nullptr;
  if (test::device_kind() == KILN_DEVICE_CUDA &&
      kilnCreate(&handle, KILN_DEVICE_CUDA, 0) == KILN_STATUS_NO_DEVICE) {
    std::printf("skipped: %s\n", kilnGetLastErrorMessage());
    std::fflush(stdout);
    std::_Exit(skipped);
  }
  kilnDestroy(handle);
  return nullptr;
}
