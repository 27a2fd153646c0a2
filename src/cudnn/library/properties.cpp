// Versions, and what a program may ask of the library as a whole. Where calls are forwarded the
// versions are those of the library behind, against which such a program was compiled.
#include "cudnn/forward/real_library.hpp"
#include "cudnn/library/handle.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::cudnn::guarded;
using kiln::cudnn::real_function;

namespace {

// What the library behind says, else what Kiln does.
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

// Kiln's kernels report no error of their own: what a launch says its call has returned.
cudnnStatus_t cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* rstatus,
                                     cudnnErrQueryMode_t, cudnnRuntimeTag_t*) {
  return guarded([&] {
    kiln::cudnn::context_of(handle);
    check_pointer(rstatus, "rstatus", "where to store the status");
    *rstatus = CUDNN_STATUS_SUCCESS;
  });
}

// One library is of one version.
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
