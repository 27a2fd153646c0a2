// Conversions of the 16-bit types on the host device, against an independent computation: values in
// double, and a search for the two neighbours.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "unit/host_device/host_device_support.hpp"

namespace kiln::test {
namespace {

constexpr std::string_view widen = R"(
KILN_KERNEL(test, 256, 1, Params, p) {
  const u32 i = block_x() * 256 + thread_x();
  static_cast<float*>(p.out)[i] = to_compute(static_cast<const half_t*>(p.in)[i]);
})";

constexpr std::string_view narrow = R"(
KILN_KERNEL(test, 256, 1, Params, p) {
  const u32 i = block_x() * 256 + thread_x();
  if (i < p.count)
    static_cast<half_t*>(p.out)[i] = from_compute<half_t>(static_cast<const float*>(p.in)[i]);
})";

struct Format {
  const char* name;
  int significand_bits;  // stored
  int exponent_bits;
  std::string using_line() const { return cat("using half_t = struct ", name, ";"); }
};
constexpr Format formats[] = {{"f16_t", 10, 5}, {"bf16_t", 7, 8}};

// The value of `bits` by the definition of an IEEE binary format.
double value_of(const Format& format, unsigned bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const unsigned fraction = bits & ((1u << format.significand_bits) - 1);
  const int exponent =
      static_cast<int>(bits >> format.significand_bits) & ((1 << format.exponent_bits) - 1);
  const double sign = bits & 0x8000u ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1)
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  const double scaled = std::ldexp(fraction, -format.significand_bits);
  return exponent == 0 ? sign * std::ldexp(scaled, 1 - bias)
                       : sign * std::ldexp(1 + scaled, exponent - bias);
}

// Rounds to nearest, ties to even: takes the nearer one of the two magnitudes around |v|. Behind
// the last finite magnitude, infinity counts as the next one.
unsigned nearest(const Format& format, float v, const std::vector<double>& magnitudes) {
  if (std::isnan(v)) return 0x7fff;
  const unsigned sign = std::signbit(v) ? 0x8000u : 0u;
  const double magnitude = std::fabs(static_cast<double>(v));
  const unsigned infinity = ((1u << format.exponent_bits) - 1) << format.significand_bits;
  const auto above = static_cast<unsigned>(
      std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude) - magnitudes.begin());
  if (above < magnitudes.size() && magnitudes[above] == magnitude) return sign | above;
  if (above > infinity) return sign | infinity;
  const unsigned below = above - 1;
  const double up = magnitudes[above] - magnitude, down = magnitude - magnitudes[below];
  if (up == down) return sign | (below % 2 == 0 ? below : above);
  return sign | (up < down ? above : below);
}

LaunchShape shape_for(std::size_t count) {
  LaunchShape shape;
  shape.grid = {static_cast<std::uint32_t>((count + 255) / 256), 1, 1};
  shape.block = {256, 1, 1};
  return shape;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(host_device_half)

BOOST_AUTO_TEST_CASE(all_values_widen_exactly_and_come_back) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const Format& format : formats) {
    BOOST_TEST_CONTEXT(format.name) {
      const auto wide =
          run_kernel<float>(*load_kernel(format.using_line(), widen), shape_for(65536), all, 65536);
      const auto back = run_kernel<std::uint16_t>(*load_kernel(format.using_line(), narrow),
                                                  shape_for(65536), wide, 65536);
      for (unsigned i = 0; i < 65536; ++i) {
        const double expected = value_of(format, i);
        if (std::isnan(expected)) {
          BOOST_REQUIRE(std::isnan(wide[i]) && back[i] == 0x7fff);
        } else {
          BOOST_REQUIRE_EQUAL(std::bit_cast<std::uint32_t>(wide[i]),
                              std::bit_cast<std::uint32_t>(static_cast<float>(expected)));
          BOOST_REQUIRE_EQUAL(back[i], i);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(narrowing_rounds_to_the_nearest_ties_to_even) {
  for (const Format& format : formats) {
    BOOST_TEST_CONTEXT(format.name) {
      // All magnitudes in order of their bits, and the value that the bits of infinity would have
      // if they were finite: from halfway to it on, rounding gives infinity.
      const unsigned infinity = ((1u << format.exponent_bits) - 1) << format.significand_bits;
      std::vector<double> magnitudes;
      for (unsigned bits = 0; bits < infinity; ++bits) magnitudes.push_back(value_of(format, bits));
      magnitudes.push_back(std::ldexp(1.0, 1 << (format.exponent_bits - 1)));

      // Every midpoint and its neighbours with both signs, random bits, and the ends of the range.
      std::vector<float> values = {0.0f,
                                   -0.0f,
                                   1e-45f,
                                   -1e-45f,
                                   std::numeric_limits<float>::infinity(),
                                   -std::numeric_limits<float>::infinity(),
                                   std::numeric_limits<float>::quiet_NaN(),
                                   -std::numeric_limits<float>::quiet_NaN(),
                                   std::numeric_limits<float>::max()};
      const float huge = std::numeric_limits<float>::infinity();
      for (unsigned bits = 0; bits < infinity; ++bits) {
        const auto middle = static_cast<float>((magnitudes[bits] + magnitudes[bits + 1]) / 2);
        for (const float v : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, huge)})
          values.insert(values.end(), {v, -v});
      }
      std::mt19937 random(7);
      for (int i = 0; i < 200000; ++i)
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));

      const auto out = run_kernel<std::uint16_t>(*load_kernel(format.using_line(), narrow),
                                                 shape_for(values.size()), values, values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        BOOST_REQUIRE_MESSAGE(out[i] == nearest(format, values[i], magnitudes),
                              values[i] << " became " << out[i] << ", expected "
                                        << nearest(format, values[i], magnitudes));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::test
