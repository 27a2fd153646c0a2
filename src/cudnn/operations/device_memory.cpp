#include "cudnn/operations/device_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "device/cuda/driver.hpp"

namespace kiln::cudnn {

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

DeviceMemory::DeviceMemory(const cudnnContext& context, std::size_t bytes, Contents contents)
    : memory_(nullptr, nullptr) {
  if (context.device_kind == KILN_DEVICE_HOST) {
    constexpr std::size_t alignment = 256;
    void* const memory = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    if (contents == Contents::zeros) std::memset(memory, 0, bytes);
    memory_ = {memory, std::free};
    return;
  }
  CUdeviceptr memory = 0;
  const CUresult result = cuda::driver().cuMemAlloc(&memory, bytes > 0 ? bytes : 1);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    fail(KILN_STATUS_ALLOC_FAILED, "the device has no ", bytes, " bytes of free memory");
  cuda::check(result, "cuMemAlloc");
  memory_ = {reinterpret_cast<void*>(memory), [](void* address) {
               cuda::driver().cuMemFree(reinterpret_cast<CUdeviceptr>(address));
             }};
  if (contents == Contents::zeros)
    cuda::check(cuda::driver().cuMemsetD8(memory, 0, bytes), "cuMemsetD8");
}

// Memory of one stream, which orders its uses. Freeing it waits for the kernels that use it.
class Scratch {
 public:
  Scratch(const cudnnContext& context, std::size_t bytes)
      : context_(context), stream_(context.stream), bytes_(bytes) {
    const HandlesContext current(context);
    memory_.emplace(context, bytes, Contents::any);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    try {
      const HandlesContext current(context_);
      memory_.reset();
    } catch (...) {  // the process ends, and the driver before it
    }
  }

  bool serves(std::size_t bytes) const { return bytes <= bytes_ && stream_ == context_.stream; }
  void* get() const { return memory_->get(); }

 private:
  const cudnnContext& context_;
  void* const stream_;
  const std::size_t bytes_;
  std::optional<DeviceMemory> memory_;
};

void* scratch_of(cudnnContext& context, std::size_t bytes) {
  if (context.device_kind == KILN_DEVICE_CUDA) {
    const HandlesContext current(context);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuda::check(cuda::driver().cuStreamIsCapturing(static_cast<CUstream>(context.stream), &status),
                "cuStreamIsCapturing");
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
      fail(KILN_STATUS_NOT_SUPPORTED, "the call needs ", bytes,
           " bytes of the handle's memory, and its stream is captured; expected a call with "
           "workspace, or one outside of a capture");
  }
  if (context.scratch == nullptr || !context.scratch->serves(bytes)) {
    constexpr std::size_t least = 64 << 10;
    context.scratch = nullptr;
    context.scratch = std::make_shared<Scratch>(context, std::max(bytes, least));
  }
  return context.scratch->get();
}

}  // namespace kiln::cudnn
