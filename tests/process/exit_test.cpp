// The end of a process, in each of the ways there are, while plans are being finalized in the
// background: no crash, no hang.
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "in_child.hpp"
#include "work.hpp"

namespace test {
namespace {

int run(std::vector<std::string> arguments) {
  return in_child(60, [&] {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    return 127;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(exit)

BOOST_AUTO_TEST_CASE(while_plans_are_finalized) {
  setenv("KILN_COMPILE_THREADS", "8", 1);
  BOOST_TEST(run({KILN_ENDING, "exit", "0", "3"}) == 0);
  for (int i = -1; i < 12; ++i) BOOST_REQUIRE(do_everything(100 + i) == 0);  // from now on cached
  std::minstd_rand random(20140);
  for (int round = 0; round < times(5, 150); ++round)
    for (const std::string how :
         {"return", "exit", "quick_exit", "thread", "last", "abort", "throw"}) {
      const std::string moment = std::to_string(random() % 60'000);
      const int expected = how == "abort" || how == "throw" ? -SIGABRT : 0;
      BOOST_TEST_CONTEXT(how << " after " << moment << " us")
      BOOST_TEST(run({KILN_ENDING, how, moment, "12"}) == expected);
    }
  setenv("KILN_COMPILE_THREADS", "2", 1);
}

BOOST_AUTO_TEST_CASE(after_the_library_was_closed) {
  std::minstd_rand random(20140);
  for (int round = 0; round < times(5, 100); ++round) {
    const std::string moment = std::to_string(random() % 20'000);
    BOOST_TEST_CONTEXT("closed after " << moment << " us")
    BOOST_TEST(run({KILN_CLOSING, KILN_LIBRARY, moment}) == 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace test
