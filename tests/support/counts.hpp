// How much a test does: a little by default, so that a program of tests takes seconds; with
// KILN_TEST_FULL=1 as much as is promised (tests/cache/README.md).
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

namespace kiln_test {

inline bool full_counts() {
  const char* const value = std::getenv("KILN_TEST_FULL");
  return value && std::string(value) == "1";
}

inline int count(int by_default, int full) { return full_counts() ? full : by_default; }

// A line of figures, printed in a full run.
inline void report(const std::string& figures) {
  if (full_counts()) std::cout << figures << std::endl;
}

}  // namespace kiln_test
