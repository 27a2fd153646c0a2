// The limit of the cache's size, and the entries that are evicted beyond it.
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <thread>

#include "cache/store/file_lock.hpp"
#include "support.hpp"
#include "tracer.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t largest_entry = 20700;  // of vouched_entry, with key and checksums

Entry entry_of(std::size_t bytes) { return {{{"binary", Bytes(bytes)}}}; }

std::uint64_t size_of_entries(const std::string& directory) {
  std::uint64_t bytes = 0;
  for (const std::string& file : files_below(directory)) {
    struct stat status;
    const bool counts = !file.ends_with("/v1/size") && !file.ends_with("/v1/uses");
    if (counts && lstat(file.c_str(), &status) == 0)
      bytes += static_cast<std::uint64_t>(status.st_size);
  }
  return bytes;
}

bool has(const DiskStore& store, int key) { return fs::exists(path_of(store, sample_key(key))); }

void set_used(const DiskStore& store, int key, std::int64_t ago) {
  make_older(path_of(store, sample_key(key)), static_cast<int>(ago));
}

struct Fixture {
  ScratchDirectory scratch;
  Warnings warnings;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(budget, Fixture)

BOOST_AUTO_TEST_CASE(the_oldest_go_first_and_in_batches) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(100'000);
  for (int key = 0; key < 9; ++key) {
    BOOST_TEST(store.put(sample_key(key), entry_of(10'000)));
    set_used(store, key, 1000 - key);
  }
  BOOST_TEST(store.counters().evicted == 0u);
  BOOST_TEST(store.put(sample_key(9), entry_of(10'000)));  // 10 times 10,2xx is over
  // Down to nine tenths, so that the next few need not look.
  BOOST_TEST(store.counters().evicted == 2u);
  BOOST_TEST(store.counters().evicted_bytes > 20'000u);
  for (int key = 0; key < 10; ++key) BOOST_TEST(has(store, key) == (key >= 2));
  BOOST_TEST(warnings.all().empty());
}

// Hits write nothing. The times that they record count once flushed, also by another process, and
// on file systems without access times.
BOOST_AUTO_TEST_CASE(what_was_used_stays) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(100'000);
  for (int key = 0; key < 9; ++key) store.put(sample_key(key), entry_of(10'000));
  BOOST_TEST(in_child([&] {
               DiskStore reader(scratch.path(), nullptr);
               reader.set_limit(100'000);
               if (!reader.get(sample_key(0)).entry || !reader.get(sample_key(1)).entry) return 1;
               reader.flush("hits_disk=2");
               return 0;
             }) == 0);
  for (int key = 0; key < 9; ++key) set_used(store, key, 1000 - key);
  BOOST_TEST(store.put(sample_key(9), entry_of(10'000)));
  for (int key = 0; key < 10; ++key) BOOST_TEST(has(store, key) == (key != 2 && key != 3));
  BOOST_TEST(store.uses().counts.at("hits_disk") == 2u);  // outlives the eviction
}

// A hit still makes only the calls open, read and close.
BOOST_AUTO_TEST_CASE(a_hit_takes_three_calls) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(10'000'000);
  for (int key = 0; key < 50; ++key) store.put(sample_key(key), entry_of(100'000));
  const Trace hits = trace([] {},
                           [&] {
                             for (int key = 0; key < 50; ++key)
                               if (!store.get(sample_key(key)).entry) return 1;
                             return 0;
                           });
  if (!hits.possible) {
    BOOST_TEST_MESSAGE("skipped: this system lets no process trace another");
    return;
  }
  BOOST_TEST(hits.status == 0);
  BOOST_TEST(hits.calls.size() == 200u);
  for (std::size_t i = 0; i < hits.calls.size(); i += 4) {
    BOOST_TEST(hits.calls[i] == SYS_openat);
    BOOST_TEST(hits.calls[i + 1] == SYS_newfstatat);
    BOOST_TEST(hits.calls[i + 2] == SYS_read);
    BOOST_TEST(hits.calls[i + 3] == SYS_close);
  }
}

BOOST_AUTO_TEST_CASE(a_torn_use_log_costs_nothing_else) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(1'000'000);
  store.put(sample_key(0), entry_of(100));
  const std::string log = store.directory() + "/v1/uses";
  for (const char* text : {"used", "used x y\n", "counted 5 a=b c\ncounted 6 x=3\n", "\n\n",
                           "used 99999999999999999999 q\n"}) {
    const auto* begin = reinterpret_cast<const std::byte*>(text);
    write_bytes(log, Bytes(begin, begin + std::char_traits<char>::length(text)));
    BOOST_TEST(store.list().size() == 1u);
    BOOST_TEST(store.uses().counts.size() <= 1u);
  }
  store.flush("x=1");
  BOOST_TEST(store.uses().counts.at("x") == 1u);
}

// A log that many processes have appended to is compacted to each entry's last use and the counts.
BOOST_AUTO_TEST_CASE(a_long_use_log_becomes_a_short_one) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(1'000'000);
  store.put(sample_key(0), entry_of(100));
  const std::string name = fs::path(path_of(store, sample_key(0))).stem();
  std::string text = "counted 5 hits_disk=40\n";
  for (int time = 1; text.size() < (5u << 20); ++time)
    text += "used " + std::to_string(time) + " " + name + "\n";
  const std::int64_t last = store.list()[0].used + 1000;
  text += "used " + std::to_string(last) + " " + name + "\n";
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  write_bytes(store.directory() + "/v1/uses", Bytes(begin, begin + text.size()));
  store.flush("hits_disk=2");
  BOOST_TEST(fs::file_size(store.directory() + "/v1/uses") < 200u);
  BOOST_TEST(store.list()[0].used == last);
  BOOST_TEST(store.uses().counts.at("hits_disk") == 42u);
  BOOST_TEST(store.uses().since == 5);
}

BOOST_AUTO_TEST_CASE(what_is_larger_than_the_whole_is_not_kept) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(5'000);
  BOOST_TEST(!store.put(sample_key(0), entry_of(10'000)));
  BOOST_TEST(warnings.all().size() == 1u);
  BOOST_TEST(store.put(sample_key(1), entry_of(1'000)));
}

BOOST_AUTO_TEST_CASE(a_lost_or_damaged_total_is_counted_again) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(100'000);
  for (int key = 0; key < 9; ++key) store.put(sample_key(key), entry_of(10'000));
  const std::string total = store.directory() + "/v1/size";
  for (const bool lost : {true, false}) {
    if (lost)
      fs::remove(total);
    else
      write_bytes(total, Bytes(24, std::byte{0x55}));
    for (int key = 20; key < 30; ++key) store.put(sample_key(key), entry_of(10'000));
    BOOST_TEST(size_of_entries(store.directory()) <= 100'000u);
  }
}

// A process that holds the lock on the total size for ever delays a publisher by two seconds; the
// limit still holds.
BOOST_AUTO_TEST_CASE(a_stopped_writer_holds_nobody_up) {
  DiskStore store(scratch.path(), warnings.sink());
  store.set_limit(100'000);
  for (int key = 0; key < 9; ++key) store.put(sample_key(key), entry_of(10'000));
  FileLock held(store.directory() + "/v1/size");
  BOOST_REQUIRE(held.wait(std::chrono::milliseconds(0)));
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(in_child([&] { return store.put(sample_key(10), entry_of(10'000)) ? 0 : 1; }) == 0);
  const auto took = std::chrono::steady_clock::now() - start;
  BOOST_TEST((took > std::chrono::milliseconds(1900) && took < std::chrono::seconds(10)));
  BOOST_TEST(size_of_entries(store.directory()) <= 100'000u);
}

// Eight writers at ten times the limit, stopped for every look at the sizes; a reader meanwhile
// finds a key's own entry or none.
BOOST_AUTO_TEST_CASE(writers_stay_within_the_limit_and_one_entry_each) {
  const bool full = kiln_test::full_counts();
  constexpr int writers = 8, keys = 4000;
  const std::uint64_t limit = full ? 16'000'000 : 1'000'000;
  const std::uint64_t share = 10 * limit / writers;
  std::vector<int> children;
  for (unsigned w = 0; w < writers; ++w)
    children.push_back(start_child([&, w] {
      DiskStore store(scratch.path(), nullptr);
      store.set_limit(limit);
      std::minstd_rand random(w + 1);
      for (std::uint64_t written = 0; written < share;) {
        const int key = static_cast<int>(random() / 7 % keys);
        Entry entry = vouched_entry(key, static_cast<unsigned>(random()));
        written += entry.sections[0].bytes.size();
        if (!store.put(sample_key(key), entry)) return 1;
      }
      return 0;
    }));
  const int reader = start_child([&] {
    DiskStore store(scratch.path(), nullptr);
    store.set_limit(limit);
    std::minstd_rand random(99);
    int hits = 0;
    for (int i = 0; i < (full ? 200'000 : 20'000); ++i) {
      const int key = static_cast<int>(random() / 7 % keys);
      const Lookup lookup = store.get(sample_key(key));
      if (lookup.entry ? !vouched(*lookup.entry, key) : lookup.miss != Miss::absent) return 1;
      hits += lookup.entry.has_value();
    }
    return hits > 0 ? 0 : 2;
  });
  std::uint64_t most = 0;
  int looks = 0;
  for (std::vector<int> alive = children; !alive.empty();) {
    for (const int child : alive) kill(child, SIGSTOP);
    for (const int child : alive) {
      int status = 0;
      waitpid(child, &status, WUNTRACED | WNOWAIT);
    }
    most = std::max(most, size_of_entries(scratch.path()));
    ++looks;
    for (const int child : alive) kill(child, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    std::erase_if(alive, [](int child) {
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
      return info.si_pid == child;
    });
  }
  for (const int child : children) BOOST_TEST(wait_for(child) == 0);
  BOOST_TEST(wait_for(reader) == 0);
  BOOST_TEST_MESSAGE(looks << " looks, at most " << most << " bytes of " << limit);
  BOOST_TEST(looks > 5);
  BOOST_TEST(most > limit / 2);
  BOOST_TEST(most <= limit + writers * largest_entry);
}

// A publication that evicts is killed, or fails, at each system call. The next publication is right
// and within the limit, and leftovers are removed after an hour.
BOOST_AUTO_TEST_CASE(each_call_of_an_evicting_publication) {
  constexpr std::uint64_t limit = 30'000;
  const auto prepare = [&] {
    fs::remove_all(scratch.path());
    DiskStore store(scratch.path(), nullptr);
    store.set_limit(limit);
    for (int key = 0; key < 2; ++key) store.put(sample_key(key), entry_of(10'000));
  };
  const auto watched = [&] {
    DiskStore store(scratch.path(), nullptr);
    store.set_limit(limit);
    if (!store.get(sample_key(1)).entry) return 2;
    FileLock lock(store.lock_path(sample_key(2)));
    lock.ask();
    const bool written = store.put(sample_key(2), entry_of(10'000));
    if (lock.held()) lock.remove();
    return written ? 0 : 1;
  };
  const Trace whole = trace(prepare, watched);
  if (!whole.possible) {
    BOOST_TEST_MESSAGE("skipped: this system lets no process trace another");
    return;
  }
  BOOST_TEST_REQUIRE(whole.status == 0);
  std::vector<Interference> all;
  for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at) {
    all.push_back({Interference::kill_before, at});
    all.push_back({Interference::kill_after, at});
    if (can_fail_calls())
      for (const int error : {ENOSPC, EIO, EACCES, EROFS, ESTALE, ENOLCK, EMFILE, EINTR})
        all.push_back({Interference::fail, at, error});
  }
  for (const Interference& interference : all) {
    const Trace result = trace(prepare, watched, interference);
    BOOST_TEST_CONTEXT("kind " << interference.kind << " at call " << interference.at << ", number "
                               << whole.calls[static_cast<std::size_t>(interference.at)]) {
      if (interference.kind == Interference::fail) BOOST_TEST(result.status <= 2);
      BOOST_TEST(size_of_entries(scratch.path()) <= limit + 10'400);
      for (const std::string& file : files_below(scratch.path()))
        if (!file.ends_with(".kiln")) make_older(file, 3601);
      DiskStore next(scratch.path(), warnings.sink());
      next.set_limit(limit);
      const Lookup found = next.get(sample_key(2));
      BOOST_TEST((found.entry || found.miss == Miss::absent));
      BOOST_TEST((FileLock(next.lock_path(sample_key(2))).ask() == FileLock::Turn::mine));
      BOOST_TEST(next.put(sample_key(3), entry_of(10'000)));
      next.prune(limit);
      BOOST_TEST(size_of_entries(scratch.path()) <= limit);
      for (const std::string& file : files_below(scratch.path()))
        BOOST_TEST((file.ends_with(".kiln") || file.ends_with("/size") || file.ends_with("/uses") ||
                    file.find("/lock-") != std::string::npos),
                   file);
    }
  }
  BOOST_TEST_MESSAGE(all.size() << " interferences with " << whole.calls.size() << " calls");
  BOOST_TEST(warnings.all().empty());
}

BOOST_AUTO_TEST_CASE(pruning_by_age_and_size) {
  DiskStore store(scratch.path(), warnings.sink());
  for (int key = 0; key < 6; ++key) {
    store.put(sample_key(key), entry_of(1'000));
    set_used(store, key, 1000 * (6 - key));
  }
  const Pruned aged = store.prune(~std::uint64_t{0}, std::time(nullptr) - 4500);
  BOOST_TEST(aged.entries == 2u);  // 6,000 and 5,000 seconds
  BOOST_TEST(aged.entries_left == 4u);
  BOOST_TEST((!has(store, 0) && !has(store, 1) && has(store, 2)));
  BOOST_TEST(store.prune(0).entries == 4u);
  BOOST_TEST(store.list().empty());
  BOOST_TEST(store.prune(0).entries == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
