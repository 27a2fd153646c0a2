#include "engines/cost/chips.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr Rates rates[] = {
    {75, 1.59, 64, 2, 0, 0, 0.32e12},      {80, 1.41, 64, 32, 512, 64, 1.55e12},
    {86, 1.70, 128, 2, 256, 0, 0.60e12},   {89, 2.52, 128, 2, 256, 0, 0.86e12},
    {90, 1.98, 128, 64, 640, 128, 4.2e12}, {100, 1.92, 128, 64, 640, 64, 7.7e12},
    {120, 2.41, 128, 2, 256, 0, 1.79e12},
};
// The host device counts as a chip that has everything, so that tests reach every engine.
constexpr int host_capability = 90;

constexpr double launch_seconds = 2e-6;  // from one kernel's end to the next one's beginning

// How many clusters of `size` blocks run at once according to `counts`, with `resident` blocks on a
// multiprocessor; 0 if that was not counted.
int counted_clusters(const ClusterCounts& counts, int size, int resident) {
  const auto* const found =
      std::find(counted_cluster_sizes.begin(), counted_cluster_sizes.end(), size);
  if (found == counted_cluster_sizes.end()) return 0;
  const auto& row = counts.at(static_cast<std::size_t>(found - counted_cluster_sizes.begin()));
  const int blocks = std::min(resident, static_cast<int>(row.size()));
  return row.at(static_cast<std::size_t>(blocks - 1)) * resident / blocks;
}

// Where nobody counted them, as many for each multiprocessor as on an H100.
int most_clusters(int size, int resident, const DeviceDescription& device) {
  // A description that somebody changed may have more clusters than multiprocessors.
  if (const int count = counted_clusters(device.clusters_at_once, size, resident); count > 0)
    return std::min(count, device.multiprocessors * resident / size);
  constexpr int h100_multiprocessors = 132;
  const int count = counted_clusters(known_clusters(90, h100_multiprocessors), size, resident);
  return count * device.multiprocessors / h100_multiprocessors;
}

}  // namespace

const Rates& rates_of(const DeviceDescription& device) {
  const int capability =
      device.kind == KILN_DEVICE_HOST ? host_capability : device.compute_capability;
  const Rates* found = rates;
  for (const Rates& each : rates)
    if (each.capability <= capability) found = &each;
  return *found;
}

double cluster_places(int parts, int resident, const DeviceDescription& device) {
  if (parts == 1) return device.multiprocessors;
  return static_cast<double>(std::max(most_clusters(parts, resident, device), 1) * parts) /
         resident;
}

bool certainly_runs(int size, const DeviceDescription& device) {
  if (device.clusters_at_once != ClusterCounts{})
    return counted_clusters(device.clusters_at_once, size, 1) > 0;
  // A chip has at most so many processing clusters, so one of them has at least the mean of their
  // multiprocessors.
  constexpr int most_processing_clusters = 8;
  return device.multiprocessors > most_processing_clusters * (size - 1);
}

double clocks_to_seconds(double clocks, double bytes, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  return launch_seconds + std::max(clocks / (chip.gigahertz * 1e9), bytes / chip.memory);
}

}  // namespace kiln
