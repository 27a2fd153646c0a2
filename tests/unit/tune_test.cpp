// Tuning a plan on its caller's buffers: which sets of operands executions take turns with, in
// which order candidates are timed, and which one wins.
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <numeric>

#include "plan/tune/contest.hpp"
#include "plan/tune/rotation.hpp"
#include "problem/activation.hpp"

using namespace kiln;

namespace {

// A contest of candidates that take these milliseconds an execution, and what was asked of them.
struct Contest {
  std::vector<double> milliseconds;
  std::vector<std::pair<std::size_t, int>> asked{};  // candidate, executions in a row

  Winning hold(double budget) {
    return hold_contest(
        milliseconds.size(),
        [&](std::size_t candidate, int count) {
          asked.emplace_back(candidate, count);
          return milliseconds[candidate] * count;
        },
        budget);
  }
  double spent() const {
    return std::accumulate(asked.begin(), asked.end(), 0.0, [&](double sum, const auto& each) {
      return sum + milliseconds[each.first] * each.second;
    });
  }
};

// The gradient of an activation of 100 elements, whose memory the caller has in one block, and 4
// KiB that it lends: y 40 bytes behind a multiple of 256, dy after it, and dx at dy.
struct Gradient {
  alignas(256) std::array<std::byte, 1280> memory{};
  alignas(256) std::array<std::byte, 4096> lent{};
  Tensor tensor = [] {
    Tensor out;
    out.type = KILN_DATA_FLOAT;
    out.rank = 4;
    out.dims = {1, 1, 10, 10};
    out.strides = {100, 100, 10, 1};
    return out;
  }();
  Problem problem =
      make_activation_backward({KILN_ACTIVATION_RELU, 0}, tensor, "y", tensor, tensor);
  void *y = memory.data() + 40, *dy = memory.data() + 480;
  std::array<void*, 3> operands{y, dy, dy};

  Gradient() {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte(i * 7);
  }
  Rotation rotation(std::span<std::byte> spare) {
    return {*open_host_device(), problem, operands, spare, nullptr};
  }
};

std::size_t past_256(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 256;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tuning_a_plan)

BOOST_AUTO_TEST_CASE(the_least_median_wins_by_turns) {
  Contest contest{{1.2, 2, 1, 1.4}};
  const Winning winning = contest.hold(200);
  BOOST_TEST(winning.candidate == 2u);
  BOOST_TEST(winning.milliseconds == 1, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(contest.spent() <= 200);
  BOOST_TEST(contest.spent() > 150);
  // Twice the least is too far behind to be timed again; the others take turns.
  std::vector<std::size_t> order;
  for (const auto& [candidate, count] : contest.asked) order.push_back(candidate);
  const std::vector<std::size_t> expected{0, 1, 2, 3, 0, 2, 3, 0, 2, 3, 0, 2, 3, 0, 2, 3, 0, 2, 3};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
  for (const auto& [candidate, count] : contest.asked) BOOST_TEST(count >= 3);
}

BOOST_AUTO_TEST_CASE(the_first_stays_unless_another_is_clearly_faster) {
  BOOST_TEST((Contest{{1.005, 1}}.hold(100).candidate) == 0u);
  BOOST_TEST((Contest{{1.02, 1}}.hold(100).candidate) == 1u);
  BOOST_TEST((Contest{{3}}.hold(100).candidate) == 0u);
}

BOOST_AUTO_TEST_CASE(without_a_budget_each_is_timed_once_more) {
  Contest contest{{2, 1.9}};
  BOOST_TEST(contest.hold(0).candidate == 1u);
  const std::vector<std::pair<std::size_t, int>> expected{{0, 3}, {1, 3}, {0, 1}, {1, 1}};
  BOOST_TEST((contest.asked == expected));
}

BOOST_AUTO_TEST_CASE(as_many_sets_as_exceed_the_cache) {
  BOOST_TEST(sets_beyond_l2(0, 100) == 1);  // the host device
  BOOST_TEST(sets_beyond_l2(50, 101) == 1);
  BOOST_TEST(sets_beyond_l2(50, 100) == 2);
  BOOST_TEST(sets_beyond_l2(50, 10) == 11);
  BOOST_TEST(sets_beyond_l2(std::int64_t{1} << 40, 0) == 256);
}

// A set of these operands takes two regions, 768 and 512 bytes with what keeps their alignment.
BOOST_AUTO_TEST_CASE(copies_lie_in_what_is_lent_and_take_turns) {
  Gradient gradient;
  const auto untouched = gradient.memory;
  Rotation rotation = gradient.rotation(gradient.lent);
  BOOST_TEST_REQUIRE(rotation.sets() == 4);  // the caller's own, and three of 1,280 bytes
  for (int turn = 0; turn < 8; ++turn) {
    const std::span<void* const> set = rotation.next();
    BOOST_TEST_REQUIRE(set.size() == 3u);
    if (turn % 4 == 0) {
      BOOST_TEST(set[0] == gradient.y);
      continue;
    }
    BOOST_TEST(set[1] == set[2]);  // in place, as the caller has it
    for (std::size_t i = 0; i < 2; ++i) {
      auto* const at = static_cast<std::byte*>(set[i]);
      BOOST_TEST(past_256(at) == past_256(gradient.operands[i]));
      BOOST_TEST((at >= gradient.lent.data() && at + 400 <= &gradient.lent.back() + 1));
      BOOST_TEST(std::memcmp(at, gradient.operands[i], 400) == 0);
    }
  }
  BOOST_TEST((gradient.memory == untouched));
}

BOOST_AUTO_TEST_CASE(without_enough_memory_there_are_no_copies) {
  Gradient gradient;
  BOOST_TEST(gradient.rotation({}).sets() == 1);
  BOOST_TEST(gradient.rotation(std::span(gradient.lent).first(1279)).sets() == 1);
  BOOST_TEST(gradient.rotation(std::span(gradient.lent).first(1280)).sets() == 2);
  BOOST_TEST(gradient.rotation(std::span(gradient.lent).subspan(1, 1280)).sets() == 1);
  BOOST_TEST(gradient.rotation(gradient.memory).sets() == 1);  // it has the operands
}

BOOST_AUTO_TEST_SUITE_END()
