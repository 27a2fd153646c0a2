#include "device/device.hpp"

#include "core/enumeration.hpp"
#include "core/error.hpp"

namespace kiln {
std::string architecture_name(int compute_capability) {
  return cat("sm_", compute_capability, compute_capability == 90 ? "a" : "");
}

// From the CUDA C++ Programming Guide, "Thread Block Clusters": 8 on all chips, and 16 on the large
// ones, where a kernel must opt in.
int largest_cluster(int compute_capability) {
  if (compute_capability < 90) return 1;
  return compute_capability == 90 || compute_capability == 100 ? 16 : 8;
}

std::shared_ptr<Device> open_device(kilnDeviceKind_t kind, int ordinal) {
  switch (kind) {
    case KILN_DEVICE_CUDA: return open_cuda_device(ordinal);
    case KILN_DEVICE_HOST:
      if (ordinal != 0)
        fail(KILN_STATUS_BAD_PARAM, "host device ordinal is ", ordinal, "; expected 0");
      return open_host_device();
  }
  refuse_enumerator(enumeration_of(kind), "kind", kind);
}

}  // namespace kiln
