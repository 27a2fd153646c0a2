#include "cli/fit/descent.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::cli::fit {
namespace {

constexpr double first_step = 1.2, least_step = 1.01, most_change = 3;
constexpr double price = 1e-2;  // of a change: times the square of its logarithm
constexpr int most_rounds = 40;

}  // namespace

double descend(std::vector<double>& constants,
               const std::function<double(const std::vector<double>&)>& function) {
  const std::vector<double> first = constants;
  const auto changes = [&](const std::vector<double>& at) {
    double sum = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (first[i] != 0) sum += std::pow(std::log(at[i] / first[i]), 2);
    return sum;
  };
  std::vector<double> steps(constants.size(), first_step);
  double plain = function(constants), changed = 0;  // the function, and the price of all changes
  for (int round = 0; round < most_rounds; ++round) {
    for (std::size_t i = 0; i < constants.size(); ++i) {
      if (first[i] == 0 || steps[i] < least_step) continue;
      bool better = false, matters = false;
      for (const double factor : {steps[i], 1 / steps[i]}) {
        std::vector<double> next = constants;
        next[i] *= factor;
        const double change = next[i] / first[i];
        if (change > most_change || change < 1 / most_change) continue;
        const double value = function(next), cost = price * changes(next);
        matters |= value != plain;
        if (value + cost >= plain + changed) continue;
        constants = next;
        plain = value;
        changed = cost;
        better = true;
        break;
      }
      // After a step that did not help, its square root is tried; if the function does not depend
      // on the constant, no more steps are.
      steps[i] = better ? std::pow(steps[i], 1.5) : matters ? std::sqrt(steps[i]) : 1;
    }
    if (std::ranges::all_of(steps, [](double step) { return step < least_step; })) break;
  }
  return plain;
}

}  // namespace kiln::cli::fit
