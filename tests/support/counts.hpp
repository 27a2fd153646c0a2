// How much a test does: a little by default, so that a program of tests takes seconds; with
// KILN_TEST_FULL=1 as much as is promised (tests/cache/README.md).
#pragma once

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

namespace kiln_test {

inline bool full_counts() {
  const char* const value = std::getenv("KILN_TEST_FULL");
  return value && std::string(value) == "1";
}

inline int count(int by_default, int full) { return full_counts() ? full : by_default; }

// Of many cases, one in `of`, all in a full run: the same ones each time, but with no period, lest
// a value of an inner loop never have its turn.
class ShareOfCases {
 public:
  explicit ShareOfCases(unsigned of) : of_(full_counts() ? 1 : of) {}

  bool takes() { return random_() % of_ == 0; }

 private:
  unsigned of_;
  std::mt19937 random_;
};

// A line of figures, printed in a full run.
inline void report(const std::string& figures) {
  if (full_counts()) std::cout << figures << std::endl;
}

}  // namespace kiln_test
