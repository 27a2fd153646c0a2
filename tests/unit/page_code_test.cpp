// Code that a page shows is compiled as it stands there: CMakeLists.txt cuts it out.
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>

#include "reference/element.hpp"

namespace {

#include "bf16_of_page.inc"  // samples/README.md, "Data in 16 bits"

}  // namespace

BOOST_AUTO_TEST_SUITE(page_code)

BOOST_AUTO_TEST_CASE(bf16_by_its_bits) {
  int wrong = 0;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    const kiln::reference::Bfloat16 given{static_cast<std::uint16_t>(upper)};
    const double value = kiln::reference::to_double(given), back = from_bf16(given.bits);
    wrong += std::isnan(value) ? !std::isnan(back) : back != value;
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const auto x = std::bit_cast<float>(upper << 16 | lower);
      const std::uint16_t bits = to_bf16(x);
      wrong += std::isnan(x)
                   ? !std::isnan(from_bf16(bits))
                   : bits != kiln::reference::from_double<kiln::reference::Bfloat16>(x).bits;
    }
  }
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
