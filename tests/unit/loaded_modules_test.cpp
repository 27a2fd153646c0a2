// A GPU's kernels are modules of the driver: loaded with the kernel, unloaded with it, in the
// device's context, whatever the calling thread has current or another one captures.
#include <dlfcn.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "device/device.hpp"
#include "process/in_child.hpp"
#include "support/fake_driver.hpp"

namespace {

using namespace kiln;

constexpr int not_here = 100;  // the process has a driver of its own

// In a forked child, which opens the fake driver. 0, or the number of the step that went wrong.
int load_and_unload() {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) return not_here;
  // The loader then takes it for the libcuda.so.1 that the library opens.
  void* const library = dlopen(KILN_FAKE_DRIVER, RTLD_NOW);
  if (library == nullptr) return 1;
  const auto seen = reinterpret_cast<FakeDriverState* (*)()>(dlsym(library, "fake_driver_state"));
  const std::shared_ptr<Device> device = open_cuda_device(0);
  const std::array<std::byte, 64> binary{};
  const auto load = [&] { return device->load(binary, "entry", 0); };

  std::unique_ptr<Kernel> first = load(), second = load();
  if (seen()->loaded != 2) return 2;
  first.reset();
  if (seen()->loaded != 1) return 3;
  second->launch({}, binary, nullptr);
  if (seen()->launches != 1) return 4;
  std::thread([&] { second.reset(); }).join();
  if (seen()->loaded != 0) return 5;

  seen()->capturing = true;
  first = load();
  if (seen()->loaded != 1) return 6;
  first.reset();
  if (seen()->loaded != 0) return 7;
  return seen()->faults == 0 ? 0 : 8;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(loaded_modules)

BOOST_AUTO_TEST_CASE(a_module_lives_as_long_as_its_kernel) {
  const int end = test::in_child(60, load_and_unload);
  if (end == not_here)
    BOOST_TEST_MESSAGE("skipped: this process has opened a CUDA driver");
  else
    BOOST_TEST(end == 0);
}

BOOST_AUTO_TEST_SUITE_END()
