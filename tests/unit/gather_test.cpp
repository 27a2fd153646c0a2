// The phases of a data gradient, compared with the definition tap by tap.
#include "engines/conv/gather.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <set>

#include "unit/problem/problem_support.hpp"

using namespace kiln;
using test::fault_of;
using test::tensor;

namespace {

// A position of dx, a tap of the filter as stored, and the position of dy that they belong to
// (which need not exist).
using Meeting = std::array<std::int64_t, 3>;

struct Line {
  std::int64_t in, filter, pad, stride, dilation;
  kilnConvolutionMode_t mode;
};

ConvolutionProblem problem_of(const Line& line) {
  ConvolutionSpec spec;
  spec.spatial = 1;
  spec.pad_before[0] = spec.pad_after[0] = line.pad;
  spec.stride[0] = line.stride;
  spec.dilation[0] = line.dilation;
  spec.mode = line.mode;
  const Tensor x = tensor(3, {1, 1, line.in}), w = tensor(3, {1, 1, line.filter});
  Tensor y = x;
  y.dims = forward_output_dims(spec, x, w);
  y.strides = dense_strides(KILN_TENSOR_NCHW, 3, y.dims);
  return make_convolution_dgrad(spec, w, y, x);
}

// All meetings, found by trying every position with every tap.
std::set<Meeting> by_definition(const Line& line) {
  std::set<Meeting> all;
  for (std::int64_t h = 0; h < line.in; ++h)
    for (std::int64_t t = 0; t < line.filter; ++t) {
      const std::int64_t distance = h + line.pad - t * line.dilation;
      if (distance % line.stride != 0) continue;
      const bool flip = line.mode == KILN_CONVOLUTION;
      all.insert({h, flip ? line.filter - 1 - t : t, distance / line.stride});
    }
  return all;
}

std::multiset<Meeting> by_phases(const Line& line) {
  const Gather gather = make_gather(problem_of(line));
  std::multiset<Meeting> all;
  for (const Gather::Phase& phase : gather.phases)
    for (std::int64_t pixel = 0; pixel < phase.pixels[2]; ++pixel)
      for (std::int64_t tap = 0; tap < phase.taps[2]; ++tap)
        all.insert({phase.out_first + pixel * gather.out_strides[4],
                    phase.w_first + tap * gather.w_tap[2],
                    phase.origin[2] + pixel * gather.stride[2] + tap * gather.step[2]});
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gathers)

BOOST_AUTO_TEST_CASE(phases_visit_every_tap_that_exists_once) {
  std::mt19937 random(5);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int compared = 0;
  while (compared < 2000) {
    const Line line{draw(1, 40), draw(1, 9),
                    draw(-2, 9), draw(1, 12),
                    draw(1, 12), draw(0, 1) == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION};
    if (line.in + 2 * line.pad < (line.filter - 1) * line.dilation + 1) continue;
    ++compared;
    const std::set<Meeting> expected = by_definition(line);
    const std::multiset<Meeting> got = by_phases(line);
    BOOST_TEST_REQUIRE(std::equal(got.begin(), got.end(), expected.begin(), expected.end()),
                       to_line(problem_of(line)));
  }
}

// The live taps of neighbouring pixels, compared with a trial of every tap.
BOOST_AUTO_TEST_CASE(live_taps_are_those_inside_the_source_for_some_pixel) {
  std::mt19937 random(6);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int compared = 0;
  while (compared < 2000) {
    const Line line{draw(1, 30),  draw(1, 9),
                    draw(-2, 12), draw(1, 5),
                    draw(1, 5),   draw(0, 1) == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION};
    if (line.in + 2 * line.pad < (line.filter - 1) * line.dilation + 1) continue;
    ++compared;
    ConvolutionProblem problem = problem_of(line);
    if (compared % 2 == 0) problem.pass = ConvolutionPass::fprop;
    const Gather gather = make_gather(problem);
    const Gather::Phase& phase = gather.phases.front();
    const std::int64_t first = draw(0, phase.pixels[2] - 1), last = draw(first, first + 20);
    std::int64_t expected = 0;
    for (std::int64_t tap = 0; tap < phase.taps[2]; ++tap) {
      const std::int64_t at = phase.origin[2] + tap * gather.step[2];
      expected +=
          at + last * gather.stride[2] >= 0 && at + first * gather.stride[2] < gather.source[2];
    }
    BOOST_TEST_REQUIRE(gather.live_taps(2, first, last) == expected,
                       to_line(problem) << ", pixels " << first << " to " << last);
  }
}

// Sizes for which a loop over all taps or phases would take too long, or too much memory.
BOOST_AUTO_TEST_CASE(large_strides_and_filters_are_quick_or_refused) {
  const std::int64_t large = 2147483647;
  const auto phases = [](const Line& line) { return make_gather(problem_of(line)).phases.size(); };
  BOOST_TEST(phases({5, 3, 2, large, 1, KILN_CROSS_CORRELATION}) == 5u);
  BOOST_TEST(phases({60000, 1, 0, large, large, KILN_CONVOLUTION}) == 60000u);
  // With very many taps only a sample is evaluated, with the same result.
  const auto waste = [](const Line& line) { return make_gather(problem_of(line)).padding_waste(); };
  BOOST_TEST(std::fabs(waste({large, large, large, 2, 1, KILN_CROSS_CORRELATION})) < 1e-2);
  const double all_taps = waste({1001, 1001, 500, 1, 1, KILN_CROSS_CORRELATION});
  BOOST_TEST(all_taps > 0.3);
  BOOST_TEST(std::fabs(waste({100001, 100001, 50000, 1, 1, KILN_CROSS_CORRELATION}) - all_taps) <
             1e-2);
  BOOST_TEST(fault_of([&] {
               phases({100000, 3, 0, 70000, 1, KILN_CROSS_CORRELATION});
             }) ==
             "strides are 1x1x70000 for a dx of 1x1x100000; expected a data gradient of at most "
             "65536 phases, positions modulo the stride");
}

BOOST_AUTO_TEST_SUITE_END()
