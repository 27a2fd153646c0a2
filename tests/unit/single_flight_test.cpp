// SingleFlight, the table of values that are made once and kept: how many it keeps, and what
// happens if making a value fails.
#include "plan/single_flight.hpp"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace kiln;

// Tables are static, because state of the process is never destroyed (per_process.hpp): on the
// stack, they would leak.
using Numbers = SingleFlight<int, int, std::hash<int>>;

template <std::size_t count>
std::size_t keeps() {
  return count;
}

// The value of a key, which is made if the table does not have it.
Numbers::Result square(Numbers& numbers, int key) {
  return numbers.get(key, [&] { return std::make_shared<const int>(key * key); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(single_flight)

// A process that uses ever new shapes keeps only the last ones.
BOOST_AUTO_TEST_CASE(the_least_recently_used_is_forgotten) {
  static constinit Numbers numbers("numbers", keeps<3>);
  for (const int key : {1, 2, 3}) BOOST_TEST(square(numbers, key).made);
  BOOST_TEST(!square(numbers, 1).made);  // 2 is now the oldest
  BOOST_TEST(square(numbers, 4).made);
  BOOST_TEST(numbers.find(2) == nullptr);
  for (const int key : {1, 3, 4}) {
    BOOST_REQUIRE(numbers.find(key) != nullptr);
    BOOST_TEST(*numbers.find(key) == key * key);
  }
  numbers.add(5, std::make_shared<const int>(25));
  BOOST_TEST(numbers.find(1) == nullptr);
}

BOOST_AUTO_TEST_CASE(whoever_holds_what_is_forgotten_keeps_it) {
  static constinit Numbers numbers("numbers", keeps<1>);
  const std::shared_ptr<const int> held = square(numbers, 7).value;
  const std::weak_ptr<const int> dropped = square(numbers, 8).value;
  square(numbers, 9);
  BOOST_TEST(*held == 49);
  BOOST_TEST(dropped.expired());
}

BOOST_AUTO_TEST_CASE(a_failure_is_not_remembered) {
  static constinit Numbers numbers("numbers", keeps<2>);
  const auto fail = []() -> std::shared_ptr<const int> { throw std::runtime_error("no"); };
  BOOST_CHECK_THROW(numbers.get(1, fail), std::runtime_error);
  BOOST_TEST(numbers.find(1) == nullptr);
  BOOST_TEST(square(numbers, 1).made);
}

BOOST_AUTO_TEST_CASE(of_many_threads_one_makes) {
  static constinit Numbers numbers("numbers", keeps<64>);
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int key = 0; key < 64; ++key) made += square(numbers, key).made ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(made == 64);
}

BOOST_AUTO_TEST_SUITE_END()
