// The lock that saves work and never costs more than a bounded wait.
#include "cache/store/file_lock.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "support.hpp"

namespace kiln::cache::test {
namespace {

using std::chrono::milliseconds;

struct Fixture {
  ScratchDirectory scratch;
  std::string path = scratch.path("lock");
};

// A child that has the lock and then sleeps.
int start_holder(const std::string& path) {
  int ready[2];
  BOOST_REQUIRE(pipe(ready) == 0);
  const int child = start_child([&] {
    FileLock lock(path);
    if (!lock.wait(milliseconds(0))) return 1;
    if (write(ready[1], "x", 1) != 1) return 2;
    sleep(60);
    return 0;
  });
  char byte = 0;
  BOOST_REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(file_lock, Fixture)

BOOST_AUTO_TEST_CASE(one_at_a_time_in_a_process_too) {
  FileLock first(path);
  BOOST_TEST((first.ask() == FileLock::Turn::mine));
  BOOST_TEST((FileLock(path).ask() == FileLock::Turn::others));
  BOOST_TEST(in_child([&] { return FileLock(path).ask() == FileLock::Turn::others ? 0 : 1; }) == 0);
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(!FileLock(path).wait(milliseconds(100)));
  const auto took = std::chrono::steady_clock::now() - start;
  BOOST_TEST((took >= milliseconds(100) && took < milliseconds(3000)));
  {
    FileLock second(scratch.path("another"));
    BOOST_TEST((second.ask() == FileLock::Turn::mine));
  }
  BOOST_TEST((FileLock(scratch.path("another")).ask() == FileLock::Turn::mine));
}

BOOST_AUTO_TEST_CASE(the_dead_hold_nothing) {
  const int holder = start_holder(path);
  BOOST_TEST((FileLock(path).ask() == FileLock::Turn::others));
  kill(holder, SIGSTOP);
  BOOST_TEST(!FileLock(path).wait(milliseconds(50)));
  kill(holder, SIGKILL);
  wait_for(holder);
  BOOST_TEST(FileLock(path).wait(milliseconds(1000)));
}

// Nor do their children, who may live on.
BOOST_AUTO_TEST_CASE(the_children_of_the_dead_hold_nothing) {
  int ready[2];
  BOOST_REQUIRE(pipe(ready) == 0);
  const int holder = start_child([&] {
    FileLock lock(path);
    if (!lock.wait(milliseconds(0))) return 1;
    const int child = start_child([] { return static_cast<int>(sleep(60)); });
    if (write(ready[1], &child, sizeof child) != sizeof child) return 2;
    sleep(60);
    return 0;
  });
  int child = -1;
  BOOST_REQUIRE(read(ready[0], &child, sizeof child) == sizeof child);
  for (const int end : ready) close(end);
  BOOST_TEST((FileLock(path).ask() == FileLock::Turn::others));
  kill(holder, SIGKILL);
  wait_for(holder);
  BOOST_TEST(FileLock(path).wait(milliseconds(5000)));  // the child has to have begun
  kill(child, SIGKILL);
}

// A child forked while the lock is held has a copy of the descriptor, and may live on.
BOOST_AUTO_TEST_CASE(a_forked_child_does_not_keep_it) {
  int child = -1;
  {
    FileLock lock(path);
    BOOST_REQUIRE((lock.ask() == FileLock::Turn::mine));
    child = start_child([] {
      sleep(60);
      return 0;
    });
  }
  BOOST_TEST((FileLock(path).ask() == FileLock::Turn::mine));
  kill(child, SIGKILL);
  wait_for(child);
}

BOOST_AUTO_TEST_CASE(where_there_can_be_no_lock) {
  BOOST_TEST((FileLock(scratch.path("absent/lock")).ask() == FileLock::Turn::none));
  std::filesystem::create_symlink(scratch.path("elsewhere"), path);
  BOOST_TEST((FileLock(path).ask() == FileLock::Turn::none));
  BOOST_TEST(!std::filesystem::exists(scratch.path("elsewhere")));
}

BOOST_AUTO_TEST_CASE(its_file_is_private) {
  const mode_t before = umask(0777);
  { FileLock lock(path); }
  umask(before);
  BOOST_TEST(mode_of(path) == 0600u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
