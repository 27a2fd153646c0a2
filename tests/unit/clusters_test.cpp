// What known chips' drivers say of them: L2 caches, and how many clusters of blocks run at once,
// where that is known and where it is not.
#include <boost/test/unit_test.hpp>

#include "device/device.hpp"
#include "engines/cost/chips.hpp"

using namespace kiln;

BOOST_AUTO_TEST_SUITE(clusters)

BOOST_AUTO_TEST_CASE(the_driver_s_answers_for_an_h100) {
  const DeviceDescription device = known_architecture("h100");
  BOOST_TEST(cluster_places(1, 1, device) == 132);
  BOOST_TEST(cluster_places(2, 1, device) == 132);
  BOOST_TEST(cluster_places(3, 1, device) == 39 * 3);
  BOOST_TEST(cluster_places(16, 2, device) == 14 * 16 / 2.0);
  BOOST_TEST(cluster_places(4, 8, device) == 2 * 124 * 4 / 8.0);  // as with twice 4 blocks
  BOOST_TEST(certainly_runs(16, device));
}

BOOST_AUTO_TEST_CASE(the_driver_s_answers_for_l2) {
  BOOST_TEST(known_architecture("h100").l2_bytes == 52428800);
  BOOST_TEST(known_architecture("h200").l2_bytes == 62914560);
}

BOOST_AUTO_TEST_CASE(a_device_s_own_counts_are_used) {
  DeviceDescription device = known_architecture("h100");
  device.clusters_at_once[3][0] = 10;  // of 5 blocks
  device.clusters_at_once[6] = {};     // of 16 blocks
  BOOST_TEST(cluster_places(5, 1, device) == 50);
  BOOST_TEST(!certainly_runs(16, device));
  device.multiprocessors = 20;
  BOOST_TEST(cluster_places(4, 1, device) == 20);  // the counts say 30 clusters
}

BOOST_AUTO_TEST_CASE(a_device_whose_clusters_nobody_counted) {
  const DeviceDescription device = known_architecture("h100-pcie");
  BOOST_TEST((device.clusters_at_once == ClusterCounts{}));
  BOOST_TEST(cluster_places(4, 1, device) == 30 * 114 / 132 * 4);
  BOOST_TEST(!certainly_runs(16, device));  // 114 may be 8 times at most 15
  BOOST_TEST(certainly_runs(15, device));
}

BOOST_AUTO_TEST_CASE(chips_of_another_size) {
  const DeviceDescription h200 = known_architecture("h200");
  const DeviceDescription pcie = known_chip_of_size(h200, 114);
  BOOST_TEST(pcie.name == "H100-PCIe");
  BOOST_TEST((pcie.clusters_at_once == ClusterCounts{}));
  const DeviceDescription slice = known_chip_of_size(h200, 16);
  BOOST_TEST(slice.multiprocessors == 16);
  BOOST_TEST(slice.arch == "sm_90a");
  BOOST_TEST((slice.clusters_at_once == ClusterCounts{}));
  BOOST_TEST((known_chip_of_size(pcie, 132).clusters_at_once == h200.clusters_at_once));
}

BOOST_AUTO_TEST_SUITE_END()
