// Which of several candidates is fastest: the order in which they are timed, and the choice. What
// is timed, and how, is the caller's.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace kiln {

struct Winning {
  std::size_t candidate = 0;
  double milliseconds = 0;  // of an execution, the median
};

// Times `candidates` of them, at least one, the one that the cost model prefers first, and chooses.
// time(i, n) executes candidate i n times in a row, and returns the milliseconds of all n.
// 1. Each is executed a few times in a row: those far behind the fastest are out.
// 2. The others are timed by turns, in rounds, as often in a row as the budget allows. Rounds end
//    when it is spent, but not before the first one is over.
// 3. The least median wins. The first candidate keeps its place if no other is faster by more than
//    what is noise.
// Throws what time() throws.
Winning hold_contest(std::size_t candidates,
                     const std::function<double(std::size_t candidate, int count)>& time,
                     double budget_milliseconds);

}  // namespace kiln
