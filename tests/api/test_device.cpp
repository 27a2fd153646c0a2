#include "test_device.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace test {

namespace {

// The few driver calls the tests need; every one returns 0 for success.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*alloc)(std::uint64_t*, std::size_t) = nullptr;
  int (*free)(std::uint64_t) = nullptr;
  int (*to_device)(std::uint64_t, const void*, std::size_t) = nullptr;
  int (*to_host)(void*, std::uint64_t, std::size_t) = nullptr;
  int (*synchronize)() = nullptr;
  void* context = nullptr;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) throw std::runtime_error(std::string("no ") + name);
    };
    find(init, "cuInit");
    find(retain, "cuDevicePrimaryCtxRetain");
    find(set_current, "cuCtxSetCurrent");
    find(alloc, "cuMemAlloc_v2");
    find(free, "cuMemFree_v2");
    find(to_device, "cuMemcpyHtoD_v2");
    find(to_host, "cuMemcpyDtoH_v2");
    find(synchronize, "cuCtxSynchronize");
    check(init(0), "cuInit");
    check(retain(&context, 0), "cuDevicePrimaryCtxRetain");
  }

  static void check(int result, const char* call) {
    if (result != 0) throw std::runtime_error(std::string(call) + ": " + std::to_string(result));
  }
};

// With the primary context current on the calling thread.
const Driver& driver() {
  static const Driver instance;
  Driver::check(instance.set_current(instance.context), "cuCtxSetCurrent");
  return instance;
}

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

kilnDeviceKind_t device_kind() {
  const char* wanted = std::getenv("KILN_TEST_DEVICE");
  const std::string name = wanted != nullptr ? wanted : "host";
  if (name == "host") return KILN_DEVICE_HOST;
  if (name == "cuda") return KILN_DEVICE_CUDA;
  throw std::runtime_error("KILN_TEST_DEVICE is " + name + "; expected host or cuda");
}

void* allocate(std::size_t bytes) {
  const std::size_t size = bytes > 0 ? bytes : 1;
  if (device_kind() == KILN_DEVICE_HOST) return ::operator new(size);
  std::uint64_t address = 0;
  Driver::check(driver().alloc(&address, size), "cuMemAlloc");
  return reinterpret_cast<void*>(address);
}

void release(void* address) {
  if (device_kind() == KILN_DEVICE_HOST) {
    ::operator delete(address);
  } else {
    driver().free(number(address));
  }
}

void copy_in(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  if (device_kind() == KILN_DEVICE_HOST) {
    std::memcpy(device, host, bytes);
  } else {
    Driver::check(driver().to_device(number(device), host, bytes), "cuMemcpyHtoD");
  }
}

void copy_out(void* host, const void* device, std::size_t bytes) {
  if (bytes == 0) return;
  if (device_kind() == KILN_DEVICE_HOST) {
    std::memcpy(host, device, bytes);
  } else {
    Driver::check(driver().synchronize(), "cuCtxSynchronize");
    Driver::check(driver().to_host(host, number(device), bytes), "cuMemcpyDtoH");
  }
}

}  // namespace test
