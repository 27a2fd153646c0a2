// A process killed at each system call of a publish.
#include <sys/syscall.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>

#include "support.hpp"
#include "tracer.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

const Key key = sample_key();

bool publish(DiskStore& store, const std::string& text) {
  return store.put(key, sample_entry(text));
}

// Checks the run after a kill: it finds the old entry, the new one or none, publishes its own, and
// removes the killed process's unfinished file once that is an hour old. Returns whether there was
// such a file.
bool recovers(const std::string& directory, const std::string& older, const std::string& newer) {
  Warnings warnings;
  DiskStore next(directory, warnings.sink());
  const Lookup found = next.get(key);
  if (found.entry) {
    const std::string text = text_of(*found.entry);
    BOOST_TEST((text == newer || (!older.empty() && text == older)));
  } else {
    BOOST_TEST((older.empty() && found.miss == Miss::absent));
  }
  bool orphan = false;
  for (const std::string& file : files_below(directory)) {
    if (file != path_of(next, key)) orphan = true;
    make_older(file, 3601);
  }
  BOOST_TEST(publish(next, "next"));
  const Lookup again = next.get(key);
  BOOST_TEST((again.entry && text_of(*again.entry) == "next"));
  BOOST_TEST(files_below(directory).size() == 1u);
  BOOST_TEST(warnings.all().empty());
  return orphan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(crash)

BOOST_AUTO_TEST_CASE(a_hit_is_open_fstat_read_close) {
  ScratchDirectory scratch;
  DiskStore store(scratch.path(), nullptr);
  BOOST_REQUIRE(store.put(key, sample_entry(std::string(200000, 'x'))));
  const DiskStore reader(scratch.path(), nullptr);
  const Trace hit = trace([] {}, [&] { return reader.get(key).entry ? 0 : 1; });
  KILN_REQUIRE_TRACING(hit);
  BOOST_TEST(hit.status == 0);
  const std::vector<long> expected = {SYS_openat, SYS_newfstatat, SYS_read, SYS_close};
  BOOST_TEST(hit.calls == expected, boost::test_tools::per_element());
  const Trace miss = trace([] {}, [&] { return reader.get(sample_key(1)).entry ? 1 : 0; });
  // The folder, its parent and the version folder inside are examined again.
  BOOST_TEST(miss.calls[0] == SYS_openat);
  BOOST_TEST(miss.calls.size() <= 10u);
}

// Publications without and with an older entry, killed before and after each call; entries of a few
// bytes and of some mebibytes.
BOOST_AUTO_TEST_CASE(killed_at_each_system_call_of_a_publish) {
  const int most = count(100, 1000);
  int kills = 0, orphans = 0;
  for (int round = 0; kills < most; ++round) {
    const std::string older = round % 2 ? "old" : "";
    const std::string newer(round % 8 < 6 ? 3 + static_cast<std::size_t>(round) : 3u << 20, 'n');
    ScratchDirectory scratch;
    const auto prepare = [&] {
      fs::remove_all(scratch.path());
      DiskStore store(scratch.path(), nullptr);
      if (!older.empty()) publish(store, older);
    };
    const auto watched = [&] {
      DiskStore store(scratch.path(), nullptr);
      return publish(store, newer) ? 0 : 1;
    };
    const Trace whole = trace(prepare, watched);
    KILN_REQUIRE_TRACING(whole);
    BOOST_REQUIRE(whole.status == 0);
    for (const auto kind : {Interference::kill_before, Interference::kill_after}) {
      for (int at = 0; at < static_cast<int>(whole.calls.size()) && kills < most; ++at, ++kills) {
        BOOST_TEST_CONTEXT("call " << at << ", number "
                                   << whole.calls[static_cast<std::size_t>(at)]) {
          BOOST_TEST(trace(prepare, watched, {kind, at}).status == 128 + SIGKILL);
          orphans += recovers(scratch.path(), older, newer);
        }
      }
    }
  }
  BOOST_TEST(orphans > 0);  // some kills did fall between the file's creation and its renaming
  report(std::to_string(kills) + " publishers killed, " + std::to_string(orphans) +
         " unfinished files left and reclaimed");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
