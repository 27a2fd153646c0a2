#include "cudnn/operations/measure.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "device/cuda/driver.hpp"

namespace kiln::cudnn {
namespace {

class Event {
 public:
  Event() {
    cuda::check(cuda::driver().cuEventCreate(&handle_, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cuda::driver().cuEventDestroy(handle_); }
  void record(void* stream) const {
    cuda::check(cuda::driver().cuEventRecord(handle_, static_cast<CUstream>(stream)),
                "cuEventRecord");
  }
  float milliseconds_to(const Event& later) const {
    float out = 0;
    cuda::check(cuda::driver().cuEventSynchronize(later.handle_), "cuEventSynchronize");
    cuda::check(cuda::driver().cuEventElapsedTime(&out, handle_, later.handle_),
                "cuEventElapsedTime");
    return out;
  }

 private:
  CUevent handle_ = nullptr;
};

}  // namespace

HandlesContext::HandlesContext(const cudnnContext& context) {
  if (context.device_kind == KILN_DEVICE_HOST) return;
  const cuda::Driver& driver = cuda::driver();
  CUdevice device = 0;
  CUcontext primary = nullptr;
  cuda::check(driver.cuDeviceGet(&device, context.ordinal), "cuDeviceGet");
  cuda::check(driver.cuDevicePrimaryCtxRetain(&primary, device), "cuDevicePrimaryCtxRetain");
  // Kiln's device retains the primary context for the life of the process, so it may be released
  // here.
  driver.cuDevicePrimaryCtxRelease(device);
  current_.emplace(primary);
}

float milliseconds(const cudnnContext& context, const std::function<void()>& work) {
  work();
  if (context.device_kind == KILN_DEVICE_HOST) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    work();
    return std::chrono::duration<float, std::milli>(Clock::now() - begin).count();
  }
  constexpr int runs = 5;
  const Event begin, end;
  begin.record(context.stream);
  for (int i = 0; i < runs; ++i) work();
  end.record(context.stream);
  return begin.milliseconds_to(end) / runs;
}

DeviceMemory::DeviceMemory(const cudnnContext& context, std::size_t bytes)
    : memory_(nullptr, nullptr) {
  if (context.device_kind == KILN_DEVICE_HOST) {
    constexpr std::size_t alignment = 256;
    void* const memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    memory_ = {memory, std::free};
    return;
  }
  CUdeviceptr memory = 0;
  const CUresult result = cuda::driver().cuMemAlloc(&memory, bytes > 0 ? bytes : 1);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    fail(KILN_STATUS_ALLOC_FAILED, "no ", bytes,
         " bytes of device memory for a tensor to try with");
  cuda::check(result, "cuMemAlloc");
  memory_ = {reinterpret_cast<void*>(memory), [](void* address) {
               cuda::driver().cuMemFree(reinterpret_cast<CUdeviceptr>(address));
             }};
  cuda::check(cuda::driver().cuMemsetD8(memory, 0, bytes), "cuMemsetD8");
}

}  // namespace kiln::cudnn
