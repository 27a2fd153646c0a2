// Each system call of a publication and of a lookup fails, or transfers less than requested.
#include <sys/syscall.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <span>

#include "support.hpp"
#include "tracer.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

const Key key = sample_key();
const std::string older = "old", newer(30000, 'n');

constexpr int errors[] = {ENOSPC, ESTALE, EINTR,  EACCES, EIO,   EROFS,
                          EBUSY,  ENOLCK, EMFILE, ENOENT, ENOMEM};
const auto some_errors = std::span(errors).first(static_cast<std::size_t>(count(4, 11)));

struct Fixture {
  ScratchDirectory scratch;
  bool over_older = false;
  std::function<void()> prepare = [this] {
    fs::remove_all(scratch.path());
    if (over_older) DiskStore(scratch.path(), nullptr).put(key, sample_entry(older));
  };
  // 0: published; 1: refused, with one warning.
  std::function<int()> publish = [this] {
    Warnings warnings;
    DiskStore store(scratch.path(), warnings.sink());
    if (store.put(key, sample_entry(newer))) return warnings.all().empty() ? 0 : 2;
    return warnings.all().size() == 1 ? 1 : 3;
  };
  // 0: the right entry; 1: a miss.
  std::function<int()> look_up = [this] {
    const DiskStore store(scratch.path(), nullptr);
    const Lookup lookup = store.get(wanted);
    if (!lookup.entry) return lookup.miss == Miss::none ? 2 : 1;
    return text_of(*lookup.entry) == newer ? 0 : 3;
  };
  Key wanted = key;

  // Checks the folder after a publication with `status`: the new entry, the old one or none, but no
  // other; at most one unfinished file; and the next publication works.
  void check_left(int status, bool may_leave_orphan) {
    BOOST_TEST(status <= 1);
    DiskStore next(scratch.path(), nullptr);
    const Lookup found = next.get(key);
    if (status == 0) {
      BOOST_TEST((found.entry && text_of(*found.entry) == newer));
    } else if (over_older) {
      BOOST_TEST((found.entry && text_of(*found.entry) == older));
    } else {
      BOOST_TEST((found.miss == Miss::absent));
    }
    const std::size_t entries = found.entry ? 1 : 0;
    const std::size_t files = files_below(scratch.path()).size();
    BOOST_TEST((files == entries || (may_leave_orphan && files == entries + 1)));
    BOOST_TEST(next.put(key, sample_entry("next")));
    const Lookup again = next.get(key);
    BOOST_TEST((again.entry && text_of(*again.entry) == "next"));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(fault, Fixture)

// One call fails, or the disk is full, gone or read-only from that call on.
BOOST_AUTO_TEST_CASE(each_system_call_of_a_publish_may_fail) {
  KILN_REQUIRE_FAILING_CALLS();
  int faults = 0;
  for (const bool older_there : {false, true}) {
    over_older = older_there;
    const Trace whole = trace(prepare, publish);
    KILN_REQUIRE_TRACING(whole);
    BOOST_REQUIRE(whole.status == 0);
    for (const int error : some_errors) {
      for (const bool onwards : {false, true}) {
        if (onwards && error == EINTR) continue;  // calls are not interrupted for ever
        for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at, ++faults) {
          BOOST_TEST_CONTEXT("errno " << error << (onwards ? " from" : " at") << " call " << at
                                      << ", number " << whole.calls[static_cast<std::size_t>(at)]) {
            check_left(trace(prepare, publish, {Interference::fail, at, error, onwards}).status,
                       onwards);
          }
        }
      }
    }
  }
  report(std::to_string(faults) + " faults in publishing");
}

// A quota or a network file system may report only at close that the bytes were not stored.
BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_closed_is_not_published) {
  KILN_REQUIRE_FAILING_CALLS();
  const Trace whole = trace(prepare, publish);
  KILN_REQUIRE_TRACING(whole);
  const auto write = std::ranges::find(whole.calls, SYS_write);
  const auto close = std::find(write, whole.calls.end(), SYS_close);
  BOOST_REQUIRE((close != whole.calls.end()));
  const int at = static_cast<int>(close - whole.calls.begin());
  for (const int error : {ENOSPC, EDQUOT, EIO, EINTR}) {
    const Trace failed = trace(prepare, publish, {Interference::fail, at, error});
    BOOST_TEST(failed.status == 1);
    check_left(failed.status, false);
  }
}

BOOST_AUTO_TEST_CASE(each_write_of_a_publish_may_be_short) {
  KILN_REQUIRE_FAILING_CALLS();
  const Trace whole = trace(prepare, publish);
  KILN_REQUIRE_TRACING(whole);
  int faults = 0;
  for (const int bytes : {1, 100, 4096}) {
    for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at) {
      if (whole.calls[static_cast<std::size_t>(at)] != SYS_write) continue;
      ++faults;
      BOOST_TEST_CONTEXT("at most " << bytes << " bytes at call " << at) {
        const Trace cut = trace(prepare, publish, {Interference::cut, at, bytes});
        BOOST_TEST(cut.status == 0);
        check_left(cut.status, false);
      }
    }
    if (bytes == 1 && count(1, 0)) continue;  // 30,000 system calls
    const Trace all_cut = trace(prepare, publish, {Interference::cut, 0, bytes, true});
    BOOST_TEST(all_cut.status == 0);
    BOOST_TEST(all_cut.calls.size() > whole.calls.size());
    check_left(all_cut.status, false);
    faults += static_cast<int>(std::ranges::count(all_cut.calls, SYS_write));
  }
  BOOST_TEST(faults > 0);
  report(std::to_string(faults) + " short writes");
}

BOOST_AUTO_TEST_CASE(each_system_call_of_a_lookup_may_fail) {
  KILN_REQUIRE_FAILING_CALLS();
  BOOST_REQUIRE(DiskStore(scratch.path(), nullptr).put(key, sample_entry(newer)));
  int faults = 0;
  for (const Key& either : {key, sample_key(0, "")}) {
    wanted = either;
    const Trace whole = trace([] {}, look_up);
    KILN_REQUIRE_TRACING(whole);
    BOOST_TEST(whole.status == 0);
    for (const int error : some_errors) {
      for (const bool onwards : {false, true}) {
        if (onwards && error == EINTR) continue;
        for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at, ++faults)
          BOOST_TEST(trace([] {}, look_up, {Interference::fail, at, error, onwards}).status <= 1);
      }
    }
  }
  report(std::to_string(faults) + " faults in looking up");
}

BOOST_AUTO_TEST_CASE(each_read_of_a_lookup_may_be_short) {
  KILN_REQUIRE_FAILING_CALLS();
  BOOST_REQUIRE(DiskStore(scratch.path(), nullptr).put(key, sample_entry(newer)));
  const Trace whole = trace([] {}, look_up);
  KILN_REQUIRE_TRACING(whole);
  int faults = 0;
  for (const int bytes : {1, 7, 23, 24, 100, 4096}) {
    for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at) {
      if (whole.calls[static_cast<std::size_t>(at)] != SYS_read) continue;
      ++faults;
      BOOST_TEST(trace([] {}, look_up, {Interference::cut, at, bytes}).status == 0);
    }
    if (bytes < 24 && count(1, 0)) continue;
    const Trace all_cut = trace([] {}, look_up, {Interference::cut, 0, bytes, true});
    BOOST_TEST(all_cut.status == 0);
    faults += static_cast<int>(std::ranges::count(all_cut.calls, SYS_read));
  }
  BOOST_TEST(faults > 0);
  report(std::to_string(faults) + " short reads");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
