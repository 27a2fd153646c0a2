#include "cudnn/library/handle.hpp"

#include <atomic>

#include "core/log/log.hpp"
#include "core/text.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/settings.hpp"
#include "cudnn/library/status.hpp"
#include "device/cuda/driver.hpp"

using kiln::api::check_pointer;
using kiln::cudnn::context_of;
using kiln::cudnn::guarded;

namespace {

// The device of the thread's current context; without a context 0, as in the CUDA runtime.
int current_ordinal() {
  const kiln::cuda::Driver& driver = kiln::cuda::driver();
  CUdevice device = 0;
  if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  return device;  // a CUdevice is the ordinal
}

// Once: programs print a status at most, and not what to do without a GPU.
void tell_of_host_device(const char* why) {
  static constinit std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  kiln::log::warn(kiln::cat("cudnnCreate: ", why,
                            "; KILN_CUDNN_DEVICE=host runs the program on the host device"));
}

}  // namespace

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return guarded([&] {
    check_pointer(handle, "handle", "where to store the new handle");
    *handle = nullptr;
    const kilnDeviceKind_t device = kiln::cudnn::settings().device;
    try {
      *handle = new cudnnContext(device, device == KILN_DEVICE_CUDA ? current_ordinal() : 0);
    } catch (const kiln::Exception& error) {
      if (error.status() == KILN_STATUS_NO_DEVICE) tell_of_host_device(error.what());
      throw;
    }
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return guarded([&] {
    if (handle == nullptr) return;
    cudnnContext& context = context_of(handle);
    kiln::cudnn::end_twin(context.twin);
    delete &context;
  });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  return guarded([&] {
    cudnnContext& context = context_of(handle);
    context.handle.set_stream(streamId);
    context.stream = streamId;
    kiln::cudnn::renew(context.twin);
  });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId) {
  return guarded([&] {
    check_pointer(streamId, "streamId", "where to store the stream");
    *streamId = static_cast<cudaStream_t>(context_of(handle).stream);
  });
}
