// A program that opens the library, closes it while plans are being finalized in the background,
// and ends some time later.
//
//   closing LIBRARY MICROSECONDS
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "kiln/kiln.h"

namespace {

void* library = nullptr;

template <class Function>
Function* find(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}
#define CALL(function, ...) find(&::function, #function)(__VA_ARGS__)

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || (library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL)) == nullptr) return 2;
  kilnHandle_t handle = nullptr;
  kilnTensorDescriptor_t x = nullptr;
  kilnActivationDescriptor_t activation = nullptr;
  if (CALL(kilnCreate, &handle, KILN_DEVICE_HOST, 0) != KILN_STATUS_SUCCESS) return 3;
  CALL(kilnCreateTensorDescriptor, &x);
  CALL(kilnCreateActivationDescriptor, &activation);
  for (int i = 0; i < 30; ++i) {
    const int64_t dims[] = {2, 1 + i % 6, 3, 3}, strides[] = {100, 9, 3, 1};
    kilnPlan_t plan = nullptr;
    if (CALL(kilnSetTensorNdDescriptor, x, KILN_DATA_FLOAT, 4, dims, strides) !=
            KILN_STATUS_SUCCESS ||
        CALL(kilnSetActivationDescriptor, activation, KILN_ACTIVATION_RELU, 0) !=
            KILN_STATUS_SUCCESS ||
        CALL(kilnCreateActivationForwardPlan, handle, activation, x, x, &plan) !=
            KILN_STATUS_SUCCESS ||
        CALL(kilnStartFinalizePlan, plan) != KILN_STATUS_SUCCESS)
      return 4;
  }
  usleep(static_cast<useconds_t>(std::atoi(arguments[2])));
  dlclose(library);
  usleep(20'000);
  return 0;
}
