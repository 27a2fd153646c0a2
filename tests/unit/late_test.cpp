// Late constants, whose values come with the launch: their text, the places of their values, and
// quotients by late divisors.
#include "codegen/late.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>

#include "codegen/source.hpp"
#include "common/late.h"
#include "core/magic.hpp"

using namespace kiln;

namespace {

__extension__ typedef unsigned __int128 uint128;

Step step_of(std::vector<Constant> constants) {
  Step step;
  step.kernel.file = "common/late.cuh";
  step.kernel.entry = "kernel";
  step.kernel.constants = std::move(constants);
  step.launch.parameters.assign(24, std::byte{7});
  step.launch.patches = {{LaunchSpec::Hole::operand, 0, 8}};
  step.launch.maps.resize(1);
  step.launch.maps[0].offset = 64;
  return step;
}

template <class Value>
Value at(const Step& step, std::string_view name) {
  for (const Constant& constant : step.kernel.constants)
    if (constant.name == name) {
      Value value;
      std::memcpy(&value,
                  step.launch.parameters.data() + std::get<LateValue>(constant.value).offset,
                  sizeof value);
      return value;
    }
  throw std::runtime_error("no such constant");
}

Treatment treat(std::string_view name) {
  if (name == "KEPT") return Treatment::keep;
  if (name == "LEFT_OUT") return Treatment::leave_out;
  if (name == "BY") return Treatment::divisor;
  return name.starts_with("WIDE") ? Treatment::wide : Treatment::late;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(late_constants)

BOOST_AUTO_TEST_CASE(values_lie_ahead_of_the_parameters) {
  Step step = step_of({{"KEPT", 5, ""},
                       {"LEFT_OUT", 6, ""},
                       {"NUMBER", -7, ""},
                       {"WIDE", std::int64_t{1} << 40, ""},
                       {"FLAG", true, ""},
                       {"LIST", std::vector<std::int64_t>{1, -2, 3}, ""},
                       {"BY", 10, ""}});
  BOOST_TEST_REQUIRE(make_late(step, treat));
  BOOST_TEST(step.kernel.late_bytes % tensor_map_alignment == 0);
  BOOST_TEST(step.launch.parameters.size() == step.kernel.late_bytes + 24);
  BOOST_TEST((step.launch.parameters.back() == std::byte{7}));
  BOOST_TEST(step.launch.patches[0].offset == step.kernel.late_bytes + 8);
  BOOST_TEST(step.launch.maps[0].offset == step.kernel.late_bytes + 64);
  BOOST_TEST(at<std::int32_t>(step, "NUMBER") == -7);
  BOOST_TEST(at<std::int64_t>(step, "WIDE") == std::int64_t{1} << 40);
  BOOST_TEST(at<std::int32_t>(step, "FLAG") == 1);
  BOOST_TEST((at<std::array<std::int32_t, 3>>(step, "LIST") == std::array{1, -2, 3}));
  BOOST_TEST(at<LateDivisor>(step, "BY").divisor == 10);

  const std::string text = generate_source(step.kernel, KILN_DEVICE_CUDA);
  const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
  BOOST_TEST(has("constexpr int KEPT = 5;"));
  BOOST_TEST(!has("LEFT_OUT"));
  BOOST_TEST(has("#define LATE_PARAMETER \"kernel_param_0\""));
  BOOST_TEST(has("#define NUMBER (late_number<int, 0>())"));
  BOOST_TEST(has("#define WIDE (late_number<long long, 8>())"));
  BOOST_TEST(has("#define LIST (LateArray<int, "));
}

BOOST_AUTO_TEST_CASE(values_are_no_part_of_the_text) {
  Step one = step_of({{"NUMBER", 1, ""}, {"LIST", std::vector<std::int64_t>{1, 2}, ""}});
  Step other = step_of({{"NUMBER", 2, ""}, {"LIST", std::vector<std::int64_t>{3, 4}, ""}});
  BOOST_TEST_REQUIRE(make_late(one, treat));
  BOOST_TEST_REQUIRE(make_late(other, treat));
  BOOST_TEST((one.kernel == other.kernel));
  BOOST_TEST((one.launch.parameters != other.launch.parameters));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_stays_known) {
  for (const Constant& large :
       {Constant{"NUMBER", std::int64_t{1} << 31, ""}, Constant{"BY", 0, ""},
        Constant{"LIST", std::vector<std::int64_t>{0, -(std::int64_t{1} << 31) - 1}, ""}}) {
    Step step = step_of({large});
    BOOST_TEST(!make_late(step, treat));
    BOOST_TEST((step.kernel.constants == std::vector{large}));
    BOOST_TEST(step.launch.parameters.size() == 24);
  }
}

// The division of common/late.cuh. Divisors are powers of two, their neighbours and random numbers;
// dividends are near multiples and at both ends of the range.
BOOST_AUTO_TEST_CASE(quotients) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 4000; ++turn) {
    const std::uint64_t any = random() >> (turn % 63 + 1);
    for (const std::uint64_t wide : {std::uint64_t{1} << (turn % 63), any + 1}) {
      const auto narrow = static_cast<std::uint32_t>((wide & 0x7fffffffu) + 1);
      Step step = step_of({{"DIV", make_magic(narrow), ""}, {"FAR", make_wide_magic(wide), ""}});
      BOOST_TEST_REQUIRE(make_late(step, treat));
      const auto by = at<LateDivisor>(step, "DIV");
      const auto far = at<LateWideDivisor>(step, "FAR");
      for (std::uint64_t n : {std::uint64_t{0}, wide - 1, wide, random() / wide * wide,
                              random() / wide * wide - 1, ~std::uint64_t{0}, random()}) {
        const auto n32 = static_cast<std::uint32_t>(n);
        const auto high = static_cast<std::uint32_t>((std::uint64_t{n32} * by.multiplier) >> 32);
        BOOST_TEST_REQUIRE(((((n32 - high) >> by.halves) + high) >> by.shift) == n32 / narrow);
        n >>= 1;  // below 2^63
        const auto product = static_cast<uint128>(n << 1) * far.multiplier;
        BOOST_TEST_REQUIRE((static_cast<std::uint64_t>(product >> 64) >> far.shift) == n / wide);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
