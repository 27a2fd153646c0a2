// Versions and other properties of the library. If calls are forwarded, the versions are the real
// library's, because the program was compiled against it.
#include "cudnn/forward/real_library.hpp"
#include "cudnn/library/handle.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::cudnn::guarded;
using kiln::cudnn::real_function;

namespace {

// The real library's answer if there is one, else Kiln's.
template <class Function>
std::size_t number_of(Function* function, const char* name, std::size_t ours) {
  auto* const real = real_function(function, name);
  return real != nullptr ? real() : ours;
}

}  // namespace

size_t cudnnGetVersion(void) { return number_of(cudnnGetVersion, __func__, CUDNN_VERSION); }

size_t cudnnGetMaxDeviceVersion(void) {
  return number_of(cudnnGetMaxDeviceVersion, __func__, CUDNN_MAX_DEVICE_VERSION);
}

size_t cudnnGetCudartVersion(void) { return number_of(cudnnGetCudartVersion, __func__, 0); }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  return guarded([&] {
    check_pointer(value, "value", "where to store the number");
    const std::size_t version = cudnnGetVersion();
    constexpr std::size_t minor = 100, major = 10000;
    switch (type) {
      case MAJOR_VERSION: *value = static_cast<int>(version / major); return;
      case MINOR_VERSION: *value = static_cast<int>(version / minor % minor); return;
      case PATCH_LEVEL: *value = static_cast<int>(version % minor); return;
    }
    kiln::fail(KILN_STATUS_BAD_PARAM, "type is ", static_cast<int>(type),
               "; expected MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL");
  });
}

// Kiln's kernels report no errors at run time; errors of a launch are returned by its call.
cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* rstatus,
                                     cudnnErrQueryMode_t, cudnnRuntimeTag_t*) {
  return guarded([&] {
    kiln::cudnn::context_of(handle);
    check_pointer(rstatus, "rstatus", "where to store the status");
    *rstatus = CUDNN_STATUS_SUCCESS;
  });
}

// Kiln is one library, so its parts cannot have different versions.
cudnnStatus_t cudnnGraphVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsInferVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnOpsTrainVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnInferVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnCnnTrainVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvInferVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnAdvTrainVersionCheck(void) { return CUDNN_STATUS_SUCCESS; }
