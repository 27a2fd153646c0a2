#include "device/device.hpp"

#include "core/error.hpp"

namespace kiln {
namespace {

// One well-known chip of each architecture, so that a machine without a GPU chooses engines and
// tiles as the target will. Shared memory: CUDA C++ Programming Guide, "Compute Capabilities".
struct KnownChip {
  int compute_capability;
  const char* name;
  int multiprocessors;
  int shared_memory_per_block, shared_memory_per_multiprocessor;  // KiB
  int l2;                                                         // MiB
};

constexpr KnownChip known_chips[] = {
    {75, "T4", 40, 64, 64, 4},
    {80, "A100", 108, 163, 164, 40},
    {86, "A10", 72, 99, 100, 6},
    {89, "L40S", 142, 99, 100, 96},
    {90, "H100 / H200", 132, 227, 228, 50},
    {100, "B200", 148, 227, 228, 126},
    {120, "RTX 5090", 170, 99, 100, 96},
};

}  // namespace

std::string architecture_name(int compute_capability) {
  return cat("sm_", compute_capability, compute_capability == 90 ? "a" : "");
}

// CUDA C++ Programming Guide, "Thread Block Clusters": 8 everywhere, 16 on the large chips, where a
// kernel must ask for it.
int largest_cluster(int compute_capability) {
  if (compute_capability < 90) return 1;
  return compute_capability == 90 || compute_capability == 100 ? 16 : 8;
}

DeviceDescription known_architecture(const std::string& arch) {
  std::string names;
  for (const KnownChip& chip : known_chips) {
    const std::string name = architecture_name(chip.compute_capability);
    if (arch == name || arch == cat("sm_", chip.compute_capability)) {
      DeviceDescription out;
      out.name = chip.name;
      out.arch = name;
      out.compute_capability = chip.compute_capability;
      out.multiprocessors = chip.multiprocessors;
      out.largest_cluster = largest_cluster(chip.compute_capability);
      out.shared_memory_per_block = chip.shared_memory_per_block * 1024;
      out.shared_memory_per_multiprocessor = chip.shared_memory_per_multiprocessor * 1024;
      out.l2_bytes = std::int64_t{chip.l2} << 20;
      return out;
    }
    names += cat(names.empty() ? "" : ", ", name);
  }
  fail(KILN_STATUS_BAD_PARAM, "architecture is ", arch, "; expected one of ", names);
}

std::shared_ptr<Device> open_device(kilnDeviceKind_t kind, int ordinal) {
  switch (kind) {
    case KILN_DEVICE_CUDA: return open_cuda_device(ordinal);
    case KILN_DEVICE_HOST:
      if (ordinal != 0)
        fail(KILN_STATUS_BAD_PARAM, "host device ordinal is ", ordinal, "; expected 0");
      return open_host_device();
  }
  fail(KILN_STATUS_BAD_PARAM, "device kind is ", static_cast<int>(kind),
       "; expected KILN_DEVICE_CUDA or KILN_DEVICE_HOST");
}

}  // namespace kiln
