// The amount of work of a test, in three tiers:
//   quick  KILN_TEST_TIER=quick, which tests/run.sh sets: every value of each list of cases once
//   wide   the default, which .ci/run runs: most pairs of values once
//   full   KILN_TEST_FULL=1, or tests/run.sh --full: as much as tests/cache/README.md documents
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

// The number of random cases.
inline int turns(int quick, int wide) { return quick_tier() ? quick : wide; }

// Selects the cases that a test runs, the same ones each time.
//   quick  a case is taken if it has a value that no taken case had: every value of every list once
//   wide   one case in `of` is considered, and taken if it has two values that no taken case had
//   together.
//          The considered cases have no period, so that every value of an inner loop gets its turn.
//   full   all
// in_tiers: false if every tier runs all cases, as on a GPU.
class ShareOfCases {
 public:
  ShareOfCases(unsigned of, bool in_tiers)
      : together_(!in_tiers || full_counts() ? 0
                  : quick_tier()             ? 1
                                             : 2),
        of_(together_ == 2 ? of : 1) {}

  // values: the case's value of each list of which the cases are the product; text, numbers or
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

  int together_;  // number of values that have to be new together; 0: every case is taken
  unsigned of_;
  std::mt19937 random_;
  // Pairs of lists and of their values that taken cases had together.
  std::set<std::tuple<std::size_t, std::size_t, std::string, std::string>> seen_;
};

// Prints a line of figures in a full run.
inline void report(const std::string& figures) {
  if (full_counts()) std::cout << figures << std::endl;
}

}  // namespace kiln_test
