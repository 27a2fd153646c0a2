// The host device's warpgroup products: right if the kernel waits for everything, and NaN if it
// lacks something that a GPU needs.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

// left(row, k) = row + 2 k, 16 x 8, in registers or IN_PLACE in shared memory; right(k, column) =
// in[8 column + k], 8 x 8.
constexpr std::string_view product = R"(
#include "target/sum_registers.cuh"
#include "target/wgmma.cuh"
KILN_KERNEL(test, 32, 1, Params, p) {
  float* const shared = shared_array<float, 192>(0);
  const int lane = static_cast<int>(thread_x()), g = lane / 4, t = lane % 4;
  for (int i = lane; i < 64; i += 32)
    shared[i % 8 / 4 * 32 + i / 8 * 4 + i % 4] = static_cast<const float*>(p.in)[i];
  for (int i = lane; i < 128; i += 32)
    shared[64 + i % 8 / 4 * 64 + i / 8 * 4 + i % 4] = static_cast<float>(i / 8 + i % 8 * 2);
  fence_proxy_async();
  block_barrier();
  u32 left[4];
  for (int i = 0; i < 4; ++i)
    left[i] = bits_of(static_cast<float>(g + i % 2 * 8 + 2 * (t + i / 2 * 4)));
  SumRegisters<float, 1, 1, false> sums;
  sums.declare();
  for (float& sum : sums.part[0][0]) sum = 1;
  WarpgroupProducts<float, 1, 1> products;
  const SharedMatrix right(shared, 128, 128), rows(shared + 64, 256, 128);
  for (int i = 0; i < 2; ++i) {
    if (DEFECT != 1) products.begin();
    if (IN_PLACE)
      products.multiply<false, 0>(sums, rows, right, DEFECT != REPLACING || i > 0);
    else
      products.multiply<false, 0>(sums, left, right, DEFECT != REPLACING || i > 0);
    if (DEFECT != 2) products.commit();
  }
  if (DEFECT == 3) left[0] ^= 1, shared[64 + lane] += 1;
  if (DEFECT == 4 && lane == 0) shared[0] += 1;
  if (DEFECT == 5) products.wait<1>();
  if (DEFECT != 5 && DEFECT != 6) products.wait<0>();
  for (int i = 0; i < 4; ++i)
    static_cast<float*>(p.out)[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums.part[0][0][i];
})";

// left(row, k) = row + k + 100 tile, 16 x 16 of f16, in registers, for each of two tiles;
// right(k, column) = in[8 k + column], in shared memory as 16 bytes of eight columns.
constexpr std::string_view columns_inner = R"(
#include "target/sum_registers.cuh"
#include "target/wgmma.cuh"
using element_t = f16_t;
KILN_KERNEL(test, 32, 1, Params, p) {
  element_t* const shared = shared_array<element_t, 128>(0);
  const int lane = static_cast<int>(thread_x()), g = lane / 4, t = lane % 4;
  for (int i = lane; i < 128; i += 32)
    shared[i] = from_float<element_t>(static_cast<const float*>(p.in)[i]);
  fence_proxy_async();
  block_barrier();
  u32 left[2][4];
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i) {
      const int row = g + i % 2 * 8, k = 2 * (t + i / 2 * 4);
      const auto bits = [&](int at) {
        return static_cast<u32>(from_float<element_t>(
                                    static_cast<float>(row + at + 100 * tile)).bits);
      };
      left[tile][i] = bits(k) | bits(k + 1) << 16;
    }
  SumRegisters<float, 2, 1, false> sums;
  sums.declare();
  for (int tile = 0; tile < 2; ++tile)
    for (float& sum : sums.part[tile][0]) sum = static_cast<float>(1 + tile);
  WarpgroupProducts<element_t, 2, 1> products;
  const SharedMatrix right(shared, 128, 128);
  products.begin();
  products.multiply<true, 0>(sums, left[0], right);
  products.multiply<true, 1>(sums, left[1], right);
  products.commit();
  if (DEFECT == 1) left[1][0] ^= 1;
  if (DEFECT == 2) products.wait<1>();
  if (DEFECT != 2) products.wait<0>();
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      static_cast<float*>(p.out)[tile * 128 + (g + i / 2 * 8) * 8 + 2 * t + i % 2] =
          sums.part[tile][0][i];
})";

// Not a defect: the first product replaces the sums.
constexpr int replacing = 7;

std::vector<float> sums_of_two_tiles(int defect) {
  std::vector<float> in(128);
  std::iota(in.begin(), in.end(), -60.0f);
  constexpr std::uint32_t bytes = 256;
  const auto kernel =
      load_kernel(cat("constexpr int DEFECT = ", defect, ";"), columns_inner, bytes);
  LaunchShape shape;
  shape.block = {32, 1, 1};
  shape.shared_memory = bytes;
  return run_kernel<float>(*kernel, shape, in, 256);
}

std::vector<float> sums_with(int defect, bool in_place) {
  std::vector<float> in(64);
  std::iota(in.begin(), in.end(), -20.0f);
  constexpr std::uint32_t bytes = 768;
  const std::string constants = cat("constexpr int DEFECT = ", defect, ", REPLACING = ", replacing,
                                    "; constexpr bool IN_PLACE = ", in_place, ";");
  const auto kernel = load_kernel(constants, product, bytes);
  LaunchShape shape;
  shape.block = {32, 1, 1};
  shape.shared_memory = bytes;
  return run_kernel<float>(*kernel, shape, in, 128);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_device_warpgroup)

// Both products are added to the previous sums, or the first one replaces these.
BOOST_AUTO_TEST_CASE(two_products_are_added_up) {
  for (const bool replaces : {false, true}) {
    std::vector<float> expected;
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        int sum = 0;
        for (int k = 0; k < 8; ++k) sum += (row + 2 * k) * (8 * column + k - 20);
        expected.push_back(static_cast<float>((replaces ? 0 : 1) + 2 * sum));
      }
    for (const bool in_place : {false, true})
      BOOST_TEST(sums_with(replaces ? replacing : 0, in_place) == expected,
                 boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(what_is_missing_leaves_no_numbers) {
  for (const auto& [defect, what] : {std::pair(1, "no group was begun"),
                                     {2, "the group was not closed"},
                                     {3, "left operands changed under way"},
                                     {4, "shared memory changed under way"},
                                     {5, "a group was not waited for"},
                                     {6, "nothing was waited for"}})
    for (const bool in_place : {false, true})
      BOOST_TEST(std::isnan(sums_with(defect, in_place)[0]), what << ", " << in_place);
}

BOOST_AUTO_TEST_CASE(two_tiles_by_columns_side_by_side) {
  std::vector<float> expected;
  for (int tile = 0; tile < 2; ++tile)
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        int sum = 1 + tile;
        for (int k = 0; k < 16; ++k) sum += (row + k + 100 * tile) * (8 * k + column - 60);
        expected.push_back(static_cast<float>(sum));
      }
  BOOST_TEST(sums_of_two_tiles(0) == expected, boost::test_tools::per_element());
  for (const int defect : {1, 2}) BOOST_TEST(std::isnan(sums_of_two_tiles(defect)[0]), defect);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
