// The counts of clusters that a GPU's driver answers with.
#include <boost/test/unit_test.hpp>
#include <chrono>

#include "core/text.hpp"
#include "device/cuda/clusters.hpp"
#include "ops/operation_case.hpp"

using namespace kiln;

BOOST_AUTO_TEST_SUITE(device_clusters)

BOOST_AUTO_TEST_CASE(fit_on_the_multiprocessors) {
  if (test::device_kind() == KILN_DEVICE_HOST) {  // which has no processing clusters
    BOOST_TEST((open_host_device()->description().clusters_at_once == ClusterCounts{}));
    return;
  }
  const std::shared_ptr<Device> device = open_cuda_device(0);
  const DeviceDescription& description = device->description();
  if (description.largest_cluster == 1) return;
  device->make_current();
  const auto start = std::chrono::steady_clock::now();
  const ClusterCounts counts = cuda::ask_clusters(description);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  BOOST_TEST_MESSAGE("the driver was asked for " << taken.count() << " ms");
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const int size = counted_cluster_sizes[i];
    BOOST_TEST_MESSAGE("clusters of " << size << ": " << join(counts[i], ", ") << "; known: "
                                      << join(description.clusters_at_once[i], ", "));
    for (std::size_t blocks = 1; blocks <= counts[i].size(); ++blocks) {
      const int count = counts[i][blocks - 1];
      const int places = description.multiprocessors * static_cast<int>(blocks);
      BOOST_TEST(count * size <= places);
      // Every pair of multiprocessors is within one processing cluster.
      if (size == 2) BOOST_TEST(count * size == places);
      if (size <= description.largest_cluster) BOOST_TEST(count > 0);
      if (blocks > 1) BOOST_TEST(count >= counts[i][blocks - 2]);
      if (i > 0) BOOST_TEST(count <= counts[i - 1][blocks - 1]);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
