// How much a test does. Three tiers:
//   quick  KILN_TEST_TIER=quick, which tests/run.sh sets: of each list of cases, every value once
//   wide   the default, and what .ci/run runs: most pairs of values once
//   full   KILN_TEST_FULL=1, or tests/run.sh --full: as much as is promised (tests/cache/README.md)
#pragma once

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace kiln_test {

inline bool full_counts() {
  const char* const value = std::getenv("KILN_TEST_FULL");
  return value && std::string(value) == "1";
}

inline bool quick_tier() {
  const char* const value = std::getenv("KILN_TEST_TIER");
  return !full_counts() && value && std::string(value) == "quick";
}

inline int count(int by_default, int full) { return full_counts() ? full : by_default; }

// Of random cases: how many.
inline int turns(int quick, int wide) { return quick_tier() ? quick : wide; }

// Which of many cases a test runs, the same ones each time.
//   quick  a case with a value that no case taken before had: every value of every list once
//   wide   of one case in `of` those with two values that no case taken before had together. Which
//          one in `of` has no period, lest a value of an inner loop never have its turn.
//   full   all
// in_tiers: false where every tier runs all of them, as on a GPU.
class ShareOfCases {
 public:
  ShareOfCases(unsigned of, bool in_tiers)
      : together_(!in_tiers || full_counts() ? 0
                  : quick_tier()             ? 1
                                             : 2),
        of_(together_ == 2 ? of : 1) {}

  // values: of each list whose product the cases are, the case's own; text, numbers or
  // enumerations.
  template <class... Values>
  bool takes(const Values&... values) {
    static_assert(sizeof...(values) > 0);
    if (together_ == 0 || random_() % of_ != 0) return together_ == 0;
    const std::vector<std::string> texts{text_of(values)...};
    bool is_new = false;
    for (std::size_t i = 0; i < texts.size(); ++i)
      for (std::size_t j = together_ == 1 ? i : 0; j <= i; ++j)
        if (seen_.insert({i, j, texts[i], texts[j]}).second) is_new = true;
    return is_new;
  }

 private:
  template <class Value>
  static std::string text_of(const Value& value) {
    std::ostringstream text;
    if constexpr (std::is_enum_v<Value>)
      text << static_cast<long long>(value);
    else
      text << value;
    return text.str();
  }

  int together_;  // values that are to be new together; 0: every case is taken
  unsigned of_;
  std::mt19937 random_;
  // Lists, and values of them, that a case taken before had together.
  std::set<std::tuple<std::size_t, std::size_t, std::string, std::string>> seen_;
};

// A line of figures, printed in a full run.
inline void report(const std::string& figures) {
  if (full_counts()) std::cout << figures << std::endl;
}

}  // namespace kiln_test
