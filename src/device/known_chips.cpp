// A table of known chips, so that a machine without a GPU chooses the same engines and tiles as the
// target machine. An architecture's name stands for its first chip in the table.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "core/error.hpp"
#include "device/chip_name.hpp"
#include "device/device.hpp"

namespace kiln {
namespace {

// Multiprocessors and L2 are from the vendor's architecture papers and data sheets, shared memory
// is from the CUDA C++ Programming Guide, "Compute Capabilities". The L2 of the H200 and of the
// H100 (SXM, 80 GB of HBM3) are what the driver says of them.
struct KnownChip {
  const char* name;
  int compute_capability;
  int multiprocessors;
  int shared_memory_per_block, shared_memory_per_multiprocessor;  // KiB
  int l2;                                                         // MiB
};

constexpr KnownChip known_chips[] = {
    {"T4", 75, 40, 64, 64, 4},           {"RTX-2080-Ti", 75, 68, 64, 64, 5},
    {"A100", 80, 108, 163, 164, 40},     {"A30", 80, 56, 163, 164, 24},
    {"A10", 86, 72, 99, 100, 6},         {"A40", 86, 84, 99, 100, 6},
    {"RTX-3090", 86, 82, 99, 100, 6},    {"L40S", 89, 142, 99, 100, 96},
    {"L4", 89, 58, 99, 100, 48},         {"RTX-4090", 89, 128, 99, 100, 72},
    {"H200", 90, 132, 227, 228, 60},     {"H100", 90, 132, 227, 228, 50},
    {"GH200", 90, 132, 227, 228, 50},    {"H100-PCIe", 90, 114, 227, 228, 50},
    {"H20", 90, 78, 227, 228, 60},       {"B200", 100, 148, 227, 228, 126},
    {"RTX-5090", 120, 170, 99, 100, 96}, {"RTX-PRO-6000", 120, 188, 99, 100, 128},
};

// The driver's answers (device/cuda/clusters.hpp) for an H100 and an H200.
constexpr ClusterCounts clusters_of_hopper_132{{
    {66, 132, 198, 264},  // of 2 blocks
    {39, 79, 124, 163},   // of 3
    {30, 62, 92, 124},    // of 4
    {22, 47, 69, 94},     // of 5
    {17, 39, 62, 79},     // of 6
    {15, 30, 45, 62},     // of 8
    {7, 14, 21, 28},      // of 16
}};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

DeviceDescription describe(const KnownChip& chip) {
  DeviceDescription out;
  out.name = chip.name;
  out.arch = architecture_name(chip.compute_capability);
  out.compute_capability = chip.compute_capability;
  out.multiprocessors = chip.multiprocessors;
  out.largest_cluster = largest_cluster(chip.compute_capability);
  out.clusters_at_once = known_clusters(chip.compute_capability, chip.multiprocessors);
  out.shared_memory_per_block = chip.shared_memory_per_block * 1024;
  out.shared_memory_per_multiprocessor = chip.shared_memory_per_multiprocessor * 1024;
  out.l2_bytes = std::int64_t{chip.l2} << 20;
  return out;
}

}  // namespace

ClusterCounts known_clusters(int compute_capability, int multiprocessors) {
  return compute_capability == 90 && multiprocessors == 132 ? clusters_of_hopper_132
                                                            : ClusterCounts{};
}

DeviceDescription known_architecture(const std::string& arch) {
  if (const std::size_t colon = arch.find(':'); colon != std::string::npos) {
    constexpr int most = 100'000;
    const char* const end = arch.data() + arch.size();
    int count = 0;
    const auto [stop, error] = std::from_chars(arch.data() + colon + 1, end, count);
    if (error != std::errc() || stop != end || count < 1 || count > most)
      fail(KILN_STATUS_BAD_PARAM, "architecture is ", arch, "; expected 1 to ", most,
           " multiprocessors behind the colon, as in sm_90a:114");
    const DeviceDescription chip = known_architecture(arch.substr(0, colon));
    return chip.multiprocessors == count ? chip : known_chip_of_size(chip, count);
  }
  std::string names, chips;
  int last = 0;
  for (const KnownChip& chip : known_chips) {
    const std::string name = architecture_name(chip.compute_capability);
    if (arch == name || arch == cat("sm_", chip.compute_capability) ||
        lower(arch) == lower(chip.name))
      return describe(chip);
    if (chip.compute_capability != std::exchange(last, chip.compute_capability))
      names += cat(names.empty() ? "" : ", ", name);
    chips += cat(chips.empty() ? "" : ", ", lower(chip.name));
  }
  fail(KILN_STATUS_BAD_PARAM, "architecture is ", arch, "; expected one of ", names,
       ", or a chip: ", chips);
}

std::string chip_name(const DeviceDescription& device) {
  if (device.kind == KILN_DEVICE_HOST) return device.arch;
  const KnownChip* first = nullptr;
  for (const KnownChip& chip : known_chips) {
    if (chip.compute_capability != device.compute_capability ||
        chip.multiprocessors != device.multiprocessors)
      continue;
    if (std::int64_t{chip.l2} << 20 == device.l2_bytes) return lower(chip.name);
    if (first == nullptr) first = &chip;
  }
  return first != nullptr ? lower(first->name) : cat(device.arch, ":", device.multiprocessors);
}

std::vector<std::string> known_chip_names() {
  std::vector<std::string> names;
  int last = 0;
  for (const KnownChip& chip : known_chips) {
    if (chip.compute_capability != std::exchange(last, chip.compute_capability))
      names.push_back(architecture_name(chip.compute_capability));
    names.push_back(lower(chip.name));
  }
  return names;
}

DeviceDescription known_chip_of_size(const DeviceDescription& device, int multiprocessors) {
  for (const KnownChip& chip : known_chips)
    if (chip.compute_capability == device.compute_capability &&
        chip.multiprocessors == multiprocessors)
      return describe(chip);
  DeviceDescription out = device;
  out.multiprocessors = multiprocessors;
  out.clusters_at_once = {};
  return out;
}

}  // namespace kiln
