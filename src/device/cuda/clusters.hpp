// How many clusters of thread blocks a GPU runs at once. A cluster lies within one processing
// cluster (GPC), and which of a chip's multiprocessors are in which only the driver knows.
#pragma once

#include "device/device.hpp"

namespace kiln::cuda {

// The driver's answers (cuOccupancyMaxActiveClusters) for blocks of 128 threads that share the
// multiprocessor's memory evenly; 0 for a size that does not fit. Needs a current context of the
// device. Throws EXECUTION_FAILED where the driver cannot load a kernel for the question.
ClusterCounts ask_clusters(const DeviceDescription& device);

// Sets clusters_at_once to the driver's answers, and largest_cluster to the largest size that fits.
// If the driver cannot answer, both stay as they are, and the log says why.
void count_clusters(DeviceDescription& device);

}  // namespace kiln::cuda
