// How much a test does. Three tiers:
//   quick  KILN_TEST_TIER=quick, which tests/run.sh sets: of each list of cases, every value once
//   wide   the default, and what .ci/run runs
//   full   KILN_TEST_FULL=1, or tests/run.sh --full: as much as is promised (tests/cache/README.md)
#pragma once

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

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
//   quick  a case with a value that no case before it had: every value of every list once
//   wide   one case in `of`, without a period, lest a value of an inner loop never have its turn
//   full   all
// `in_quick_tier`: false where the quick tier runs all of them too.
class ShareOfCases {
 public:
  ShareOfCases(unsigned of, bool in_quick_tier)
      : covers_(in_quick_tier && quick_tier()), of_(full_counts() ? 1 : of) {}

  // values: of each list whose product the cases are, the case's own; text, numbers or
  // enumerations.
  template <class... Values>
  bool takes(const Values&... values) {
    static_assert(sizeof...(values) > 0);
    if (!covers_) return random_() % of_ == 0;
    int list = 0;
    bool is_new = false;
    const auto see = [&](const auto& value) {
      if (seen_.emplace(list++, text_of(value)).second) is_new = true;
    };
    (see(values), ...);
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

  bool covers_;
  unsigned of_;
  std::mt19937 random_;
  std::set<std::pair<int, std::string>> seen_;
};

// A line of figures, printed in a full run.
inline void report(const std::string& figures) {
  if (full_counts()) std::cout << figures << std::endl;
}

}  // namespace kiln_test
