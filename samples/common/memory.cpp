#include "common/memory.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

namespace {

class HostMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) override { return ::operator new(bytes); }
  void free(void* address) override { ::operator delete(address); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
};

// The CUDA driver API's calls, with their types written out: the sample needs no toolkit.
class CudaMemory final : public Memory {
 public:
  CudaMemory() {
    library_ = dlopen("libcuda.so.1", RTLD_NOW);
    if (library_ == nullptr) throw std::runtime_error("no CUDA driver: libcuda.so.1 is missing");
    find(init_, "cuInit");
    find(retain_, "cuDevicePrimaryCtxRetain");
    find(set_current_, "cuCtxSetCurrent");
    find(allocate_, "cuMemAlloc_v2");
    find(free_, "cuMemFree_v2");
    find(to_device_, "cuMemcpyHtoD_v2");
    find(to_host_, "cuMemcpyDtoH_v2");
    check(init_(0), "cuInit");
    void* context = nullptr;
    check(retain_(&context, 0), "cuDevicePrimaryCtxRetain");
    check(set_current_(context), "cuCtxSetCurrent");
  }

  void* allocate(std::size_t bytes) override {
    unsigned long long address = 0;
    check(allocate_(&address, bytes), "cuMemAlloc");
    return reinterpret_cast<void*>(address);
  }
  void free(void* address) override { free_(reinterpret_cast<unsigned long long>(address)); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    check(to_device_(reinterpret_cast<unsigned long long>(to), from, bytes), "cuMemcpyHtoD");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    check(to_host_(to, reinterpret_cast<unsigned long long>(from), bytes), "cuMemcpyDtoH");
  }

 private:
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(std::string("libcuda.so.1 lacks ") + name);
  }
  static void check(int result, const char* call) {
    if (result != 0)
      throw std::runtime_error(std::string(call) + " failed with " + std::to_string(result));
  }

  void* library_;
  int (*init_)(unsigned) = nullptr;
  int (*retain_)(void**, int) = nullptr;
  int (*set_current_)(void*) = nullptr;
  int (*allocate_)(unsigned long long*, std::size_t) = nullptr;
  int (*free_)(unsigned long long) = nullptr;
  int (*to_device_)(unsigned long long, const void*, std::size_t) = nullptr;
  int (*to_host_)(void*, unsigned long long, std::size_t) = nullptr;
};

}  // namespace

std::unique_ptr<Memory> Memory::open(kilnDeviceKind_t kind) {
  if (kind == KILN_DEVICE_HOST) return std::make_unique<HostMemory>();
  return std::make_unique<CudaMemory>();
}
