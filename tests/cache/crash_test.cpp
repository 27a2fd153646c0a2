// A process killed, or refused by the system, at each of its system calls.
#include <sys/syscall.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "support.hpp"
#include "tracer.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

const Key key = sample_key();

int publish(DiskStore& store, const std::string& text) {
  return store.put(key, sample_entry(text)) ? 0 : 1;
}

#define REQUIRE_TRACING(trace)                                                \
  if (!(trace).possible) {                                                    \
    BOOST_TEST_MESSAGE("skipped: this system lets no process trace another"); \
    return;                                                                   \
  }

}  // namespace

BOOST_AUTO_TEST_SUITE(crash)

BOOST_AUTO_TEST_CASE(a_hit_is_open_read_close) {
  ScratchDirectory scratch;
  DiskStore store(scratch.path(), nullptr);
  BOOST_REQUIRE(store.put(key, sample_entry(std::string(200000, 'x'))));
  const DiskStore reader(scratch.path(), nullptr);
  const Trace hit = trace([] {}, [&] { return reader.get(key).entry ? 0 : 1; });
  REQUIRE_TRACING(hit);
  BOOST_TEST(hit.status == 0);
  const std::vector<long> expected = {SYS_openat, SYS_read, SYS_close};
  BOOST_TEST(hit.calls == expected, boost::test_tools::per_element());
  const Trace miss = trace([] {}, [&] { return reader.get(sample_key(1)).entry ? 1 : 0; });
  BOOST_TEST(miss.calls == std::vector<long>{SYS_openat}, boost::test_tools::per_element());
}

// First into nothing, then over an older entry: after each kill, the next run finds the old entry,
// the new one or none, publishes its own, and the dead one's file goes when its hour is over.
BOOST_AUTO_TEST_CASE(killed_at_each_system_call_of_a_publish) {
  for (const bool over_older : {false, true}) {
    ScratchDirectory scratch;
    const auto prepare = [&] {
      fs::remove_all(scratch.path());
      DiskStore store(scratch.path(), nullptr);
      if (over_older) publish(store, "old");
    };
    const auto watched = [&] {
      DiskStore store(scratch.path(), nullptr);
      return publish(store, "new");
    };
    const Trace whole = trace(prepare, watched);
    REQUIRE_TRACING(whole);
    BOOST_REQUIRE(whole.status == 0);
    int orphans = 0;
    for (const auto kind : {Interference::kill_before, Interference::kill_after}) {
      for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at) {
        const Trace killed = trace(prepare, watched, {kind, at});
        BOOST_TEST(killed.status == 128 + SIGKILL);
        Warnings warnings;
        DiskStore next(scratch.path(), warnings.sink());
        const Lookup found = next.get(key);
        if (found.entry)
          BOOST_TEST(
              (text_of(*found.entry) == "new" || (over_older && text_of(*found.entry) == "old")));
        else
          BOOST_TEST((!over_older && found.miss == Miss::absent));
        for (const std::string& file : files_below(scratch.path())) {
          if (file != path_of(next, key)) ++orphans;
          make_older(file, 3601);
        }
        BOOST_TEST(publish(next, "next") == 0);
        BOOST_TEST(text_of(*next.get(key).entry) == "next");
        BOOST_TEST(files_below(scratch.path()).size() == 1u);
        BOOST_TEST(warnings.all().empty());
      }
    }
    BOOST_TEST(orphans > 0);  // some kills did fall between the file's creation and its renaming
  }
}

BOOST_AUTO_TEST_CASE(each_system_call_of_a_publish_may_fail) {
  if (!can_fail_calls()) {
    BOOST_TEST_MESSAGE("skipped: failing system calls cannot be had on this kind of machine");
    return;
  }
  ScratchDirectory scratch;
  const auto prepare = [&] { fs::remove_all(scratch.path()); };
  const auto watched = [&] {  // 0: published and readable; 1: refused, with one warning
    Warnings warnings;
    DiskStore store(scratch.path(), warnings.sink());
    const bool written = store.put(key, sample_entry());
    return written ? 0 : warnings.all().size() == 1 ? 1 : 2;
  };
  const Trace whole = trace(prepare, watched);
  REQUIRE_TRACING(whole);
  for (const int error :
       {ENOSPC, EIO, EACCES, EROFS, ESTALE, EBUSY, ENOLCK, EMFILE, EINTR, ENOENT}) {
    for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at) {
      const Trace failed = trace(prepare, watched, {Interference::fail, at, error});
      BOOST_TEST_CONTEXT("errno " << error << " at call " << at << ", number "
                                  << whole.calls[static_cast<std::size_t>(at)]) {
        BOOST_TEST(failed.status <= 1);
        DiskStore next(scratch.path(), nullptr);
        BOOST_TEST((next.get(key).miss == (failed.status == 0 ? Miss::none : Miss::absent)));
        BOOST_TEST(files_below(scratch.path()).size() == (failed.status == 0 ? 1u : 0u));
        BOOST_TEST(publish(next, "next") == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_system_call_of_a_lookup_may_fail) {
  if (!can_fail_calls()) {
    BOOST_TEST_MESSAGE("skipped: failing system calls cannot be had on this kind of machine");
    return;
  }
  ScratchDirectory scratch;
  DiskStore(scratch.path(), nullptr).put(key, sample_entry());
  for (const Key& wanted : {key, sample_key(0, "")}) {
    const auto watched = [&] {  // 0: the right entry; 1: a miss
      const DiskStore store(scratch.path(), nullptr);
      const Lookup lookup = store.get(wanted);
      if (!lookup.entry) return lookup.miss == Miss::none ? 2 : 1;
      return text_of(*lookup.entry) == "machine code" ? 0 : 3;
    };
    const Trace whole = trace([] {}, watched);
    REQUIRE_TRACING(whole);
    BOOST_TEST(whole.status == 0);
    for (const int error : {EIO, EACCES, ESTALE, EMFILE, EINTR, ENOENT, ENOMEM}) {
      for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at)
        BOOST_TEST(trace([] {}, watched, {Interference::fail, at, error}).status <= 1);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
