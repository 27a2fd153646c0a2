// A library that replaces cuDNN for tests of kiln bench. Its forward convolution has three
// algorithms: 0 has no workspace, 1 has 4,096 bytes and writes to them, and 4 has none and fails
// when it is executed. Each writes its number plus 1 to y's first element.
#include <cstddef>
#include <cstring>

#include "cli/bench/cudnn_api.hpp"

using kiln::cli::bench::cudnn::Descriptor;
using kiln::cli::bench::cudnn::Handle;

namespace {
int something = 0;

int create(void** object) {
  *object = &something;
  return 0;
}
}  // namespace

#define KILN_FAKE extern "C" __attribute__((visibility("default")))

KILN_FAKE std::size_t cudnnGetVersion();
KILN_FAKE const char* cudnnGetErrorString(int status);

std::size_t cudnnGetVersion() { return 91900; }
const char* cudnnGetErrorString(int status) {
  return status == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_EXECUTION_FAILED";
}

KILN_FAKE int cudnnCreate(Handle* handle) { return create(handle); }
KILN_FAKE int cudnnDestroy(Handle) { return 0; }
KILN_FAKE int cudnnCreateTensorDescriptor(Descriptor* made) { return create(made); }
KILN_FAKE int cudnnDestroyTensorDescriptor(Descriptor) { return 0; }
KILN_FAKE int cudnnSetTensor4dDescriptor(Descriptor, int, int, int, int, int, int) { return 0; }
KILN_FAKE int cudnnCreateFilterDescriptor(Descriptor* made) { return create(made); }
KILN_FAKE int cudnnDestroyFilterDescriptor(Descriptor) { return 0; }
KILN_FAKE int cudnnSetFilter4dDescriptor(Descriptor, int, int, int, int, int, int) { return 0; }
KILN_FAKE int cudnnCreateConvolutionDescriptor(Descriptor* made) { return create(made); }
KILN_FAKE int cudnnDestroyConvolutionDescriptor(Descriptor) { return 0; }
KILN_FAKE int cudnnSetConvolution2dDescriptor(Descriptor, int, int, int, int, int, int, int, int) {
  return 0;
}
KILN_FAKE int cudnnSetConvolutionMathType(Descriptor, int) { return 0; }
KILN_FAKE int cudnnSetConvolutionGroupCount(Descriptor, int) { return 0; }

KILN_FAKE int cudnnGetConvolutionForwardWorkspaceSize(Handle, Descriptor, Descriptor, Descriptor,
                                                      Descriptor, int algorithm,
                                                      std::size_t* bytes) {
  *bytes = algorithm == 1 ? 4096 : 0;
  return algorithm == 0 || algorithm == 1 || algorithm == 4 ? 0 : 3000;
}

KILN_FAKE int cudnnConvolutionForward(Handle, const void* alpha, Descriptor, const void*,
                                      Descriptor, const void*, Descriptor, int algorithm,
                                      void* workspace, std::size_t bytes, const void* beta,
                                      Descriptor, void* y) {
  float one = 0, zero = 1;
  std::memcpy(&one, alpha, sizeof one);
  std::memcpy(&zero, beta, sizeof zero);
  if (algorithm == 4 || one != 1 || zero != 0) return 5000;
  if (bytes > 0) std::memset(workspace, 1, bytes);
  const auto written = static_cast<float>(algorithm + 1);
  std::memcpy(y, &written, sizeof written);
  return 0;
}
