#include "plan/tune/contest.hpp"

#include <algorithm>
#include <limits>

namespace kiln {
namespace {

constexpr int rounds = 5;     // in each, every candidate is timed once, so clock drift affects all
constexpr int first_row = 3;  // executions in a row that tell who is far behind
constexpr double most_in_row = 1000;
// Relative to the fastest candidate's time: up to `as_fast` the cost model's choice is kept; beyond
// `far_behind` in the first row a candidate is not timed again.
constexpr double as_fast = 1.01, far_behind = 1.5;

struct Contestant {
  std::size_t place = 0;
  double estimate = std::numeric_limits<double>::max();  // milliseconds of an execution
  int count = 1;                                         // executions in a row
  std::vector<double> samples;                           // milliseconds of an execution

  double median() const {
    std::vector<double> sorted = samples;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2];
  }
};

}  // namespace

Winning hold_contest(std::size_t candidates,
                     const std::function<double(std::size_t candidate, int count)>& time,
                     double budget_milliseconds) {
  double spent = 0, fastest = std::numeric_limits<double>::max();
  std::vector<Contestant> contestants;
  for (std::size_t place = 0; place < candidates; ++place) {
    const double row = time(place, first_row);
    spent += row;
    contestants.push_back({place, row / first_row, 1, {}});
    fastest = std::min(fastest, row / first_row);
  }
  std::erase_if(contestants,
                [&](const Contestant& each) { return each.estimate > far_behind * fastest; });
  const double left = std::max(budget_milliseconds - spent, 0.0);
  const double share = left / (rounds * static_cast<double>(contestants.size()));
  for (Contestant& each : contestants)
    each.count =
        static_cast<int>(std::clamp(share / std::max(each.estimate, 1e-6), 1.0, most_in_row));
  for (int round = 0; round < rounds && (round == 0 || spent < budget_milliseconds); ++round)
    for (Contestant& each : contestants) {
      const double row = time(each.place, each.count);
      each.samples.push_back(row / each.count);
      spent += row;
    }
  const Contestant* winner = &contestants.front();
  for (const Contestant& each : contestants)
    if (each.median() * as_fast < winner->median()) winner = &each;
  return {winner->place, winner->median()};
}

}  // namespace kiln
