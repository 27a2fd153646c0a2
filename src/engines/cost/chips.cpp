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

// How many clusters of `size` blocks run at once on an H100 or H200 with 132 multiprocessors, with
// one, two, three and four blocks on a multiprocessor, according to the driver
// (cuOccupancyMaxActiveClusters). A cluster runs within one processing cluster (GPC), and those
// have different numbers of multiprocessors.
constexpr int resident_rows = 4;
struct ClustersAtOnce {
  int size, clusters[resident_rows];
};
constexpr ClustersAtOnce clusters_at_once[] = {
    {2, {66, 132, 198, 264}}, {3, {39, 79, 124, 163}}, {4, {30, 62, 92, 124}},
    {5, {22, 47, 69, 94}},    {6, {17, 39, 62, 79}},   {8, {15, 30, 45, 62}},
    {16, {7, 14, 21, 28}},
};
constexpr int others_processing_cluster = 16;

int most_clusters(int size, int resident, const DeviceDescription& device) {
  if (device.multiprocessors == 132)
    for (const ClustersAtOnce& each : clusters_at_once)
      if (each.size == size) {
        const int row = std::min(resident, resident_rows);
        return each.clusters[row - 1] * resident / row;
      }
  return others_processing_cluster * resident / size * device.multiprocessors /
         others_processing_cluster;
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

double clocks_to_seconds(double clocks, double bytes, const DeviceDescription& device) {
  const Rates& chip = rates_of(device);
  return launch_seconds + std::max(clocks / (chip.gigahertz * 1e9), bytes / chip.memory);
}

}  // namespace kiln
