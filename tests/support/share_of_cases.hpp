// Which of many combinations a test takes: every so many-th, for kernels that are compiled here
// cost most of a test's time.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace test {

// Of the questions takes() that follow each other one in `of` is answered with yes, in an order
// without a period, lest one value of an inner loop be left out altogether; all where
// KILN_TEST_FULL is set.
class ShareOfCases {
 public:
  explicit ShareOfCases(std::uint32_t of) : of_(std::getenv("KILN_TEST_FULL") ? 1 : of) {}

  bool takes() {
    // Knuth's multiplicative hash of the question's number, by its upper bits.
    return (number_++ * 2654435761u >> 16) % of_ == 0;
  }

 private:
  std::uint32_t of_;
  std::uint32_t number_ = 0;
};

}  // namespace test
