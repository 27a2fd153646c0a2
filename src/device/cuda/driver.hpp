// The CUDA driver API, opened at run time.
#pragma once

#include <cuda.h>

#include <string>

namespace kiln::cuda {

// Every driver function in use. The preprocessor turns cuMemAlloc into cuMemAlloc_v2 and so on, so
// that the symbol looked up is the one whose signature cuda.h declares.
// clang-format off
#define KILN_DRIVER_FUNCTIONS(X)                                                                   \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount)        \
  X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem)                    \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxGetDevice)                       \
  X(cuCtxGetCurrent) X(cuCtxPushCurrent) X(cuCtxPopCurrent)                                        \
  X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncSetAttribute)               \
  X(cuFuncGetAttribute) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuMemAlloc) X(cuMemFree)           \
  X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoDAsync) X(cuMemsetD8) X(cuStreamSynchronize)        \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime)  \
  X(cuThreadExchangeStreamCaptureMode) X(cuStreamIsCapturing) X(cuOccupancyMaxActiveClusters)
// Functions that drivers before 12.0 do not have; they are null then.
#define KILN_NEWER_DRIVER_FUNCTIONS(X)                                                             \
  X(cuTensorMapEncodeTiled) X(cuTensorMapEncodeIm2col) X(cuTensorMapReplaceAddress)
// clang-format on

struct Driver {
#define KILN_DECLARE(name) decltype(&::name) name = nullptr;
  KILN_DRIVER_FUNCTIONS(KILN_DECLARE)
  KILN_NEWER_DRIVER_FUNCTIONS(KILN_DECLARE)
#undef KILN_DECLARE
};

// The driver; null if there is none or it cannot be initialized, and `why` then tells the reason.
const Driver* find_driver(std::string& why);

// The driver. Throws NO_DEVICE if there is none.
const Driver& driver();

// Throws EXECUTION_FAILED with the driver's name and words for `result`.
void check(CUresult result, const char* call);

}  // namespace kiln::cuda
