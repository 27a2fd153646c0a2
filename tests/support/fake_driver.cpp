// A libcuda.so.1 for tests of how modules are loaded and unloaded, of one GPU that executes
// nothing. fake_driver_state() tells what happened. Functions that are not needed for that succeed
// and do nothing; they are called with arguments that they do not declare.
#include "fake_driver.hpp"

#include <cstddef>
#include <set>

#define KILN_FAKE extern "C" __attribute__((visibility("default")))

namespace {

FakeDriverState state;
std::set<const void*> modules;
int context, device_count = 1;
thread_local const void* current = nullptr;
thread_local int capture_mode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL

// Whether the driver would load or unload a module now.
bool permitted() {
  constexpr int relaxed = 2;
  const bool good = current == &context && (!state.capturing || capture_mode == relaxed);
  if (!good) ++state.faults;
  return good;
}

}  // namespace

KILN_FAKE FakeDriverState* fake_driver_state();
FakeDriverState* fake_driver_state() {
  state.loaded = static_cast<int>(modules.size());
  return &state;
}

#define KILN_SUCCEEDS(name) \
  KILN_FAKE int name();     \
  int name() { return 0; }
KILN_SUCCEEDS(cuInit)
KILN_SUCCEEDS(cuGetErrorName)
KILN_SUCCEEDS(cuGetErrorString)
KILN_SUCCEEDS(cuDeviceTotalMem_v2)
KILN_SUCCEEDS(cuDevicePrimaryCtxRelease_v2)
KILN_SUCCEEDS(cuCtxGetDevice)
KILN_SUCCEEDS(cuFuncSetAttribute)
KILN_SUCCEEDS(cuFuncGetAttribute)
KILN_SUCCEEDS(cuLaunchKernelEx)
KILN_SUCCEEDS(cuMemAlloc_v2)
KILN_SUCCEEDS(cuMemFree_v2)
KILN_SUCCEEDS(cuMemcpyHtoD_v2)
KILN_SUCCEEDS(cuMemcpyDtoH_v2)
KILN_SUCCEEDS(cuMemcpyDtoDAsync_v2)
KILN_SUCCEEDS(cuMemsetD8_v2)
KILN_SUCCEEDS(cuStreamSynchronize)
KILN_SUCCEEDS(cuEventCreate)
KILN_SUCCEEDS(cuEventDestroy_v2)
KILN_SUCCEEDS(cuEventRecord)
KILN_SUCCEEDS(cuEventSynchronize)
KILN_SUCCEEDS(cuEventElapsedTime)
KILN_SUCCEEDS(cuEventElapsedTime_v2)
KILN_SUCCEEDS(cuOccupancyMaxActiveClusters)
KILN_SUCCEEDS(cuStreamIsCapturing)

#define KILN_ANSWERS(name, type, value) \
  KILN_FAKE int name(type* out);        \
  int name(type* out) {                 \
    *out = value;                       \
    return 0;                           \
  }
KILN_ANSWERS(cuDriverGetVersion, int, 13000)
KILN_ANSWERS(cuDeviceGetCount, int, device_count)
KILN_ANSWERS(cuDeviceGet, int, 0)
KILN_ANSWERS(cuDeviceGetName, char, '\0')
KILN_ANSWERS(cuDevicePrimaryCtxRetain, const void*, &context)
KILN_ANSWERS(cuCtxGetCurrent, const void*, current)

KILN_FAKE int cuDeviceGetAttribute(int* out, int attribute, int device);
int cuDeviceGetAttribute(int* out, int attribute, int) {
  constexpr int major = 75, minor = 76;
  *out = attribute == major ? 8 : attribute == minor ? 0 : 65536;
  return 0;
}

KILN_FAKE int cuCtxPushCurrent_v2(const void* pushed);
int cuCtxPushCurrent_v2(const void* pushed) {
  current = pushed;  // a stack of one: the library pushes on threads that have no context
  return 0;
}
KILN_FAKE int cuCtxPopCurrent_v2(const void** popped);
int cuCtxPopCurrent_v2(const void** popped) {
  *popped = current;
  current = nullptr;
  return 0;
}
KILN_FAKE int cuThreadExchangeStreamCaptureMode(int* mode);
int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return 0;
}

KILN_FAKE int cuModuleLoadData(const void** module, const void* image);
int cuModuleLoadData(const void** module, const void*) {
  if (!permitted()) return 1;
  *module = new char;
  modules.insert(*module);
  return 0;
}
KILN_FAKE int cuModuleGetFunction(const void** function, const void* module, const char* name);
int cuModuleGetFunction(const void** function, const void* module, const char*) {
  *function = module;
  return 0;
}
KILN_FAKE int cuModuleUnload(const void* module);
int cuModuleUnload(const void* module) {
  if (!permitted()) return 1;
  if (modules.erase(module) == 0) ++state.faults;
  delete static_cast<const char*>(module);
  return 0;
}
KILN_FAKE int cuLaunchKernel(const void* function);
int cuLaunchKernel(const void* function) {
  ++(modules.contains(function) ? state.launches : state.faults);
  return 0;
}
