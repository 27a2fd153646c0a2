// The cuDNN API of Kiln's library, on the host device or, with KILN_TEST_DEVICE=cuda, on a GPU.
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>

#include "api/test_device.hpp"
#include "cudnn/objects.hpp"

namespace {

constexpr int skipped = 77;  // CTest's SKIP_RETURN_CODE

}  // namespace

boost::unit_test::test_suite* init_unit_test_suite(int, char**) {
  boost::unit_test::framework::master_test_suite().p_name.value = "the cuDNN API";
  const bool on_host = test::device_kind() == KILN_DEVICE_HOST;
  setenv("KILN_CUDNN_DEVICE", on_host ? "host" : "cuda", 1);
  cudnnHandle_t handle = nullptr;
  if (!on_host && cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) {
    std::printf("skipped: no GPU\n");
    std::fflush(stdout);
    std::_Exit(skipped);
  }
  cudnnDestroy(handle);
  return nullptr;
}
