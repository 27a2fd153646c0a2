#include "device/cuda/clusters.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/relaxed_capture.hpp"

namespace kiln::cuda {
namespace {

// The driver counts the clusters of a kernel. Any will do, and PTX of the first architecture with
// clusters suits all later ones.
constexpr const char* empty_kernel =
    ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry kiln_empty() { ret; }\n";

class Module {
 public:
  explicit Module(const char* image) {
    const RelaxedCapture relaxed;
    check(driver().cuModuleLoadData(&module_, image), "cuModuleLoadData");
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() { driver().cuModuleUnload(module_); }

  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    check(driver().cuModuleGetFunction(&found, module_, name), "cuModuleGetFunction");
    return found;
  }

 private:
  CUmodule module_ = nullptr;
};

}  // namespace

ClusterCounts ask_clusters(const DeviceDescription& device) {
  const Module module(empty_kernel);
  CUfunction kernel = module.function("kiln_empty");
  for (const auto& [attribute, value] :
       {std::pair(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, device.shared_memory_per_block),
        std::pair(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)})
    check(driver().cuFuncSetAttribute(kernel, attribute, value), "cuFuncSetAttribute");
  ClusterCounts counts{};
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (std::size_t resident = 1; resident <= counts[i].size(); ++resident) {
      constexpr int reserved = 1024;  // bytes of a block, by the driver
      const auto size = static_cast<unsigned>(counted_cluster_sizes[i]);
      CUlaunchAttribute cluster{};
      cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      cluster.value.clusterDim = {size, 1, 1};
      CUlaunchConfig launch{};
      launch.gridDimX = size;
      launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
      launch.blockDimX = 128;
      launch.sharedMemBytes = static_cast<unsigned>(std::min(
          device.shared_memory_per_block,
          device.shared_memory_per_multiprocessor / static_cast<int>(resident) - reserved));
      launch.attrs = &cluster;
      launch.numAttrs = 1;
      int count = 0;
      // A size that is more than the device can have is an error, too.
      if (driver().cuOccupancyMaxActiveClusters(&count, kernel, &launch) == CUDA_SUCCESS)
        counts[i][resident - 1] = count;
    }
  return counts;
}

void count_clusters(DeviceDescription& device) {
  try {
    const ClusterCounts counts = ask_clusters(device);
    if (counts == ClusterCounts{})
      fail(KILN_STATUS_EXECUTION_FAILED, "cuOccupancyMaxActiveClusters has no answer");
    device.clusters_at_once = counts;
    int largest = 1;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i][0] > 0) largest = std::max(largest, counted_cluster_sizes[i]);
    device.largest_cluster = std::min(device.largest_cluster, largest);
  } catch (const Error& error) {
    log::info(cat("the clusters of ", device.name, " were not counted: ", error.what()));
  }
}

}  // namespace kiln::cuda
