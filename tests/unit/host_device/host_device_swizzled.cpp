// The host device's warpgroup products of swizzled matrices, which bulk copies have written to
// shared memory: both operands' orders, beginning at any row.
#include <boost/test/unit_test.hpp>
#include <numeric>

#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

// left has 64 rows of 16 steps, right 16 columns. Both are small integers from `in` (f32). Each is
// in a matrix of 16-bit elements whose rows have LINE bytes, and begins at row SHIFT. With
// LEFT_BY_STEPS, the matrix's rows are steps of the reduction, in blocks of as many rows as a line
// has elements.
constexpr std::string_view product = R"(
#define WGMMA_COLUMNS "16"
#define WGMMA_SUMS(l) ""
#include "target/sum_registers.cuh"
#include "target/wgmma.cuh"
using element_t = f16_t;
KILN_KERNEL(test, 128, 1, Params, p) {
  constexpr int BLOCK = 4096, RIGHT = 20480;
  unsigned char* const memory = shared_array<unsigned char, 2 * RIGHT>(0);
  const float* const in = static_cast<const float*>(p.in);
  const auto put = [&](unsigned char* matrix, bool by_steps, int row, int step, float value) {
    const int line = (by_steps ? step : row) + SHIFT, column = by_steps ? row % (LINE / 2) : step;
    const int place = (by_steps ? row / (LINE / 2) * BLOCK : 0) + line * LINE +
                      ((column / 8 ^ line * LINE / 128 % (LINE / 16)) * 16) + column % 8 * 2;
    *reinterpret_cast<element_t*>(matrix + place) = from_float<element_t>(value);
  };
  for (int i = thread_x(); i < 64 * 16; i += 128) put(memory, LEFT_BY_STEPS, i / 16, i % 16, in[i]);
  for (int i = thread_x(); i < 16 * 16; i += 128)
    put(memory + RIGHT, RIGHT_BY_STEPS, i / 16, i % 16, in[1024 + i]);
  fence_proxy_async();
  block_barrier();
  SumRegisters<float, 1, 2, false> sums;
  sums.declare();
  WarpgroupProducts<element_t, 1, 2> products;
  const SharedMatrix left = SharedMatrix::swizzled<LINE>(memory + SHIFT * LINE, 8 * LINE, BLOCK);
  const SharedMatrix right =
      SharedMatrix::swizzled<LINE>(memory + RIGHT + SHIFT * LINE, 8 * LINE, BLOCK);
  for (int i = 0; i < 2; ++i) {
    products.begin();
    products.multiply_swizzled<LEFT_BY_STEPS, RIGHT_BY_STEPS, 0>(sums, left, right, i > 0);
    products.commit();
  }
  products.wait<0>();
  const int lane = static_cast<int>(thread_x()) % 32, warp = static_cast<int>(thread_x()) / 32;
  const auto out = [&](int r, const float (&four)[4]) {
    for (int i = 0; i < 4; ++i)
      static_cast<float*>(p.out)[(warp * 16 + lane / 4 + i / 2 * 8) * 16 + r * 8 + lane % 4 * 2 +
                                 i % 2] = four[i];
  };
  float four[4];
  sums.take<0, 0>(four);
  out(0, four);
  sums.take<0, 1>(four);
  out(1, four);
})";

}  // namespace

BOOST_AUTO_TEST_SUITE(host_device_swizzled)

BOOST_AUTO_TEST_CASE(products_either_way_round_from_any_row) {
  std::vector<float> in(1024 + 256);
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  std::vector<float> expected;
  for (std::size_t row = 0; row < 64; ++row)
    for (std::size_t column = 0; column < 16; ++column) {
      float sum = 0;
      for (std::size_t k = 0; k < 16; ++k) sum += in[row * 16 + k] * in[1024 + column * 16 + k];
      expected.push_back(2 * sum);
    }
  constexpr std::uint32_t bytes = 2 * 20480;
  LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.shared_memory = bytes;
  for (const auto& [line, shift] : {std::pair(128, 0), {128, 3}, {64, 0}, {64, 3}, {32, 0}})
    for (const bool left : {false, true})
      for (const bool right : {false, true}) {
        const auto kernel = load_kernel(
            cat("constexpr int LINE = ", line, ", SHIFT = ", shift,
                "; constexpr bool LEFT_BY_STEPS = ", left, ", RIGHT_BY_STEPS = ", right, ";"),
            product, bytes);
        BOOST_TEST(run_kernel<float>(*kernel, shape, in, 1024) == expected,
                   boost::test_tools::per_element());
      }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
