// The host device's barriers, shuffles and clusters: each planted defect must give a wrong result
// or an error, and the same kernel without the defect must be right.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <thread>

#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

namespace data = boost::unit_test::data;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<int> iota(std::size_t count, int first = 0) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// In each of 4 turns, a thread passes its value to the one DISTANCE before it, around the block.
constexpr std::string_view rotation = R"(
KILN_KERNEL(test, 256, 1, Params, p) {
  int* ring = shared_array<int, 256>(0);
  const int t = static_cast<int>(thread_x());
  int value = static_cast<const int*>(p.in)[block_x() * 256 + t];
  for (int turn = 0; turn < 4; ++turn) {
    ring[t] = value;
    if (BARRIER_BEFORE_READ) block_barrier();
    value = ring[(t + DISTANCE + 256) % 256];
    if (BARRIER_AFTER_READ) block_barrier();
  }
  static_cast<int*>(p.out)[block_x() * 256 + t] = value;
})";

std::vector<int> rotate(int distance, bool before_read, bool after_read) {
  const auto kernel =
      load_kernel(cat("constexpr int DISTANCE = ", distance,
                      "; constexpr bool BARRIER_BEFORE_READ = ", before_read ? "true" : "false",
                      ", BARRIER_AFTER_READ = ", after_read ? "true" : "false", ";"),
                  rotation, 1024);
  LaunchShape shape;
  shape.grid = {3, 1, 1};
  shape.block = {256, 1, 1};
  shape.shared_memory = 1024;
  return run_kernel<int>(*kernel, shape, iota(3 * 256), 3 * 256);
}

std::vector<int> rotated(int distance) {
  std::vector<int> expected(3 * 256);
  for (int i = 0; i < 3 * 256; ++i)
    expected[static_cast<std::size_t>(i)] = i / 256 * 256 + (i % 256 + 4 * distance + 1024) % 256;
  return expected;
}

LaunchShape one_block(std::uint32_t threads, std::uint32_t shared_memory = 0) {
  LaunchShape shape;
  shape.block = {threads, 1, 1};
  shape.shared_memory = shared_memory;
  return shape;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_device_barriers)

// Forward and backward, to the neighbour in the warp and to the other end of the block: no single
// order of threads is accidentally right for all of these.
BOOST_DATA_TEST_CASE(a_missing_barrier_is_a_wrong_result, data::make({1, -1, 32, 97}), distance) {
  BOOST_TEST(rotate(distance, true, true) == rotated(distance), boost::test_tools::per_element());
  BOOST_CHECK(rotate(distance, false, true) != rotated(distance));
  BOOST_CHECK(rotate(distance, true, false) != rotated(distance));
}

// Two stages are used by turns, as in kernels of matrix products: each thread writes to the next
// stage, shuffles within its warp, and reads values of other warps. If warps waited for each other
// at every shuffle, the missing barrier would have no effect.
BOOST_AUTO_TEST_CASE(a_missing_barrier_between_warps_that_shuffle_is_a_wrong_result) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 128, 1, Params, p) {
  int* stages = shared_array<int, 256>(0);
  const int t = static_cast<int>(thread_x());
  int sum = 0;
  for (int turn = 0; turn < 6; ++turn) {
    int* stage = stages + turn % 2 * 128;
    stage[t] = turn * 128 + t;
    sum = warp_shuffle_xor(warp_shuffle_xor(sum, 1), 1);
    if (BARRIER) block_barrier();
    sum += warp_shuffle_xor(warp_shuffle_xor(stage[(t + 64) % 128], 2), 2);
  }
  static_cast<int*>(p.out)[block_x() * 128 + t] = sum;
})";
  const auto run = [&](bool barrier) {
    const auto kernel =
        load_kernel(cat("constexpr bool BARRIER = ", barrier ? "true" : "false", ";"), body, 1024);
    LaunchShape shape = one_block(128, 1024);
    return run_kernel<int>(*kernel, shape, iota(1), 128);
  };
  std::vector<int> expected(128);
  for (int t = 0; t < 128; ++t)
    expected[static_cast<std::size_t>(t)] = 128 * 15 + 6 * ((t + 64) % 128);
  BOOST_TEST(run(true) == expected, boost::test_tools::per_element());
  BOOST_CHECK(run(false) != expected);
}

BOOST_AUTO_TEST_CASE(a_barrier_that_some_threads_skip_is_reported) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 256, 1, Params, p) {
  if (PLANTED && block_x() == 2 && thread_x() >= 100) return;
  block_barrier();
})";
  LaunchShape shape = one_block(256);
  shape.grid = {4, 1, 1};
  const std::string failure =
      failure_of(*load_kernel("constexpr bool PLANTED = true;", body), shape);
  BOOST_TEST(contains(failure, "kernel test, block (2, 0, 0)"), failure);
  BOOST_TEST(contains(failure, "of 256 threads 100 wait at block_barrier, 156 have exited"),
             failure);
  BOOST_TEST(failure_of(*load_kernel("constexpr bool PLANTED = false;", body), shape) == "");
}

BOOST_AUTO_TEST_CASE(threads_at_different_barriers_are_reported) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  if (PLANTED && thread_x() == 40) {
    warp_barrier();
  } else {
    block_barrier();
  }
})";
  const std::string failure =
      failure_of(*load_kernel("constexpr bool PLANTED = true;", body), one_block(64));
  BOOST_TEST(contains(failure, "63 wait at block_barrier, 1 wait at warp_barrier"), failure);
  BOOST_TEST(failure_of(*load_kernel("constexpr bool PLANTED = false;", body), one_block(64)) ==
             "");
}

BOOST_AUTO_TEST_CASE(a_shuffle_without_its_whole_warp_is_reported) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  int v = 1;
  if (!PLANTED || thread_x() != 3) v = warp_shuffle_xor(v, 1);
  static_cast<int*>(p.out)[thread_x()] = v;
})";
  const Buffer<int> out(64);
  const Params params{nullptr, out.get(), 64};
  const std::string failure =
      failure_of(*load_kernel("constexpr bool PLANTED = true;", body), one_block(64), params);
  BOOST_TEST(contains(failure, "31 wait at a warp shuffle, 33 have exited"), failure);
  BOOST_TEST(failure_of(*load_kernel("constexpr bool PLANTED = false;", body), one_block(64),
                        params) == "");
}

BOOST_AUTO_TEST_CASE(a_missing_warp_barrier_is_a_wrong_result) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 96, 1, Params, p) {
  int* values = shared_array<int, 96>(0);
  const u32 t = thread_x();
  values[t] = static_cast<const int*>(p.in)[t];
  if (!PLANTED) warp_barrier();
  static_cast<int*>(p.out)[t] = values[t ^ 31];
})";
  std::vector<int> expected(96);
  for (int i = 0; i < 96; ++i) expected[static_cast<std::size_t>(i)] = i ^ 31;
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body, 384);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body, 384);
  BOOST_CHECK(run_kernel<int>(*planted, one_block(96, 384), iota(96), 96) != expected);
  BOOST_TEST(run_kernel<int>(*corrected, one_block(96, 384), iota(96), 96) == expected,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shuffles_exchange_every_type) {
  constexpr std::string_view body = R"(
template <class T>
device_inline bool right(T base) {
  const u32 t = thread_x(), lane = t % 32, warp = t - lane;
  const auto value_of = [&](u32 thread) { return static_cast<T>(base + static_cast<T>(thread)); };
  const T mine = value_of(t);
  bool ok = true;
  for (u32 mask = 0; mask < 32; ++mask)
    ok &= warp_shuffle_xor(mine, mask) == value_of(warp + (lane ^ mask));
  for (u32 delta = 0; delta < 32; ++delta)
    ok &= warp_shuffle_down(mine, delta) == value_of(lane + delta < 32 ? t + delta : t);
  for (u32 source = 0; source < 40; ++source)
    ok &= warp_shuffle(mine, source) == value_of(warp + source % 32);
  T sum = mine;
  for (u32 delta = 16; delta > 0; delta /= 2) sum += warp_shuffle_down(sum, delta);
  if (lane == 0) ok &= sum == 32 * base + static_cast<T>(32 * warp + 496);
  return ok;
}
KILN_KERNEL(test, 256, 1, Params, p) {
  static_cast<int*>(p.out)[thread_x()] = right<int>(-70) + 2 * right<u32>(7) + 4 * right<float>(.5f) +
      8 * right<double>(1e10) + 16 * right<u64>(1ull << 60) + 32 * right<i64>(-(1ll << 50));
})";
  const auto out = run_kernel<int>(*load_kernel("", body), one_block(256), iota(1), 256);
  BOOST_TEST(out == std::vector<int>(256, 63), boost::test_tools::per_element());
}

// Block r of a cluster of 4 reads the values of block r + 1.
constexpr std::string_view exchange = R"(
KILN_KERNEL(test, 64, 1, Params, p) {
  int* mine = shared_array<int, 64>(16);
  const u32 i = block_x() * 64 + thread_x();
  mine[thread_x()] = static_cast<const int*>(p.in)[i];
  if (BARRIER_BEFORE_READ) cluster_barrier();
  const u32 other = (cluster_rank() + 1) % cluster_size();
  static_cast<int*>(p.out)[i] = cluster_shared(mine + thread_x(), other)[0];
  if (BARRIER_AFTER_READ) cluster_barrier();
})";

BOOST_AUTO_TEST_CASE(clusters_exchange_shared_memory) {
  LaunchShape shape = one_block(64, 16 + 256);
  shape.grid = {8, 2, 1};
  const auto run = [&](bool before, bool after, std::uint32_t cluster) {
    const auto kernel =
        load_kernel(cat("constexpr bool BARRIER_BEFORE_READ = ", before ? "true" : "false",
                        ", BARRIER_AFTER_READ = ", after ? "true" : "false", ";"),
                    exchange, shape.shared_memory);
    shape.cluster = cluster;
    return run_kernel<int>(*kernel, shape, iota(8 * 64), 8 * 64);
  };
  std::vector<int> expected(8 * 64);
  for (int i = 0; i < 8 * 64; ++i)
    expected[static_cast<std::size_t>(i)] = i / 256 * 256 + (i % 256 + 64) % 256;
  BOOST_TEST(run(true, true, 4) == expected, boost::test_tools::per_element());
  BOOST_CHECK(run(false, true, 4) != expected);
  BOOST_TEST(run(true, true, 1) == iota(8 * 64), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_block_that_has_exited_is_void) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 32, 1, Params, p) {
  int* mine = shared_array<int, 32>(0);
  mine[thread_x()] = 7;
  cluster_barrier();
  const int* first = cluster_shared(mine, 0);
  if (PLANTED && cluster_rank() == 0) return;
  for (int i = 0; i < 3; ++i) warp_barrier();  // time passes
  static_cast<int*>(p.out)[block_x() * 32 + thread_x()] = first[thread_x()];
  if (!PLANTED) cluster_barrier();
})";
  LaunchShape shape = one_block(32, 128);
  shape.grid = {2, 1, 1};
  shape.cluster = 2;
  const auto planted = load_kernel("constexpr bool PLANTED = true;", body, 128);
  const auto corrected = load_kernel("constexpr bool PLANTED = false;", body, 128);
  BOOST_TEST(run_kernel<int>(*planted, shape, iota(1), 64).back() == -1);
  BOOST_TEST(run_kernel<int>(*corrected, shape, iota(1), 64) == std::vector<int>(64, 7),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_cluster_barrier_that_one_block_skips_is_reported) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 32, 1, Params, p) {
  if (!PLANTED || block_x() != 3) cluster_barrier();
})";
  LaunchShape shape = one_block(32);
  shape.grid = {4, 1, 1};
  shape.cluster = 2;
  const std::string failure =
      failure_of(*load_kernel("constexpr bool PLANTED = true;", body), shape);
  BOOST_TEST(contains(failure, "block (2, 0, 0): of 32 threads 32 wait at cluster_barrier"),
             failure);
  BOOST_TEST(failure_of(*load_kernel("constexpr bool PLANTED = false;", body), shape) == "");
}

BOOST_AUTO_TEST_CASE(every_thread_knows_where_it_is) {
  constexpr std::string_view body = R"(
KILN_KERNEL(test, 1024, 1, Params, p) {
  block_barrier();  // after it, the fibers run in another order
  const u32 block = (block_z() * grid_y() + block_y()) * grid_x() + block_x();
  const u32 thread = (thread_z() * 3 + thread_y()) * 5 + thread_x();
  static_cast<u32*>(p.out)[block * 30 + thread] = block * 1000 + thread + grid_z() * 100000;
})";
  LaunchShape shape;
  shape.grid = {3, 4, 5};
  shape.block = {5, 3, 2};
  const auto out = run_kernel<std::uint32_t>(*load_kernel("", body), shape, iota(1), 60 * 30);
  for (std::uint32_t i = 0; i < out.size(); ++i)
    BOOST_REQUIRE_EQUAL(out[i], i / 30 * 1000 + i % 30 + 500000);
}

BOOST_AUTO_TEST_CASE(launches_may_run_at_the_same_time_and_after_a_failed_one) {
  const auto kernel = load_kernel(
      "constexpr int DISTANCE = 1; constexpr bool BARRIER_BEFORE_READ = true, "
      "BARRIER_AFTER_READ = true;",
      rotation, 1024);
  const auto broken = load_kernel(
      "", "KILN_KERNEL(test, 256, 1, Params, p) { if (thread_x() == 0) block_barrier(); }");
  LaunchShape shape = one_block(256, 1024);
  shape.grid = {3, 1, 1};
  int right = 0;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 5; ++turn) {
        const bool failed = !failure_of(*broken, shape).empty();
        const bool same = run_kernel<int>(*kernel, shape, iota(768), 768) == rotated(1);
        const std::lock_guard lock(mutex);
        right += failed && same;
      }
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(right == 20);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
