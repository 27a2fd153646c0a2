// Many writers and readers of the same keys: every entry that is found is a complete one that some
// writer published.
#include <sys/mman.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <new>
#include <random>
#include <thread>

#include "support.hpp"

namespace kiln::cache::test {
namespace {

constexpr int keys = 8;

// The work of a process: one publication to three lookups. Returns the number of wrong answers.
int work(DiskStore& store, unsigned seed, int operations) {
  std::minstd_rand random(seed);
  int wrong = 0;
  for (int i = 0; i < operations; ++i) {
    const int key = static_cast<int>(random() / 7 % keys);
    const unsigned action = static_cast<unsigned>(random() / 7 % 4);
    if (action == 0) {
      store.put(sample_key(key), vouched_entry(key, static_cast<unsigned>(random())));
      continue;
    }
    const Lookup lookup = store.get(sample_key(key, action == 1 ? "" : "compiler V13.0.88"));
    if (lookup.entry ? !vouched(*lookup.entry, key) : lookup.miss != Miss::absent) ++wrong;
  }
  return wrong;
}

struct Fixture {
  ScratchDirectory scratch;
  Warnings warnings;
  DiskStore store{scratch.path(), warnings.sink()};
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(concurrency, Fixture)

BOOST_AUTO_TEST_CASE(many_threads) {
  constexpr int threads = 8, operations = 400;
  std::atomic<int> wrong{0};
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t)
    workers.emplace_back([&, t] { wrong += work(store, t + 1, operations); });
  for (auto& worker : workers) worker.join();
  BOOST_TEST(wrong == 0);
  const Counters counters = store.counters();
  BOOST_TEST(counters.hits + counters.absent + counters.published == threads * operations + 0u);
  BOOST_TEST(counters.hits > 1000u);
  BOOST_TEST(store.list().size() == keys + 0u);
  BOOST_TEST(files_below(store.directory()).size() == keys + 0u);
  BOOST_TEST(warnings.all().empty());
}

BOOST_AUTO_TEST_CASE(many_processes) {
  constexpr int processes = 8, operations = 400;
  std::vector<int> children;
  for (unsigned p = 0; p < processes; ++p)
    children.push_back(start_child([&, p] {  // each with the store it inherited
      return work(store, p + 100, operations) == 0 && warnings.all().empty() ? 0 : 1;
    }));
  for (const int child : children) BOOST_TEST(wait_for(child) == 0);
  BOOST_TEST(store.list().size() == keys + 0u);
  BOOST_TEST(files_below(store.directory()).size() == keys + 0u);
}

// Every process rewrites and reads every key, and reads only complete entries.
BOOST_AUTO_TEST_CASE(sixty_four_processes_rewrite_and_read_32_keys) {
  constexpr int processes = 64, shared_keys = 32;
  const int reads_each = count(100, 15625);  // in all 10^6
  struct Figures {
    std::atomic<long> reads, hits, writes, bad;
  };
  void* const memory =
      mmap(nullptr, sizeof(Figures), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BOOST_REQUIRE(memory != MAP_FAILED);
  Figures& all = *new (memory) Figures{};
  std::vector<int> children;
  for (unsigned p = 0; p < processes; ++p)
    children.push_back(start_child([&, p] {
      DiskStore own(scratch.path(), nullptr);
      std::minstd_rand random(p + 1);
      for (int i = 0; i < reads_each; ++i) {
        const int key = static_cast<int>(random() / 7 % shared_keys);
        if (i % 4 == 0) {
          all.bad += !own.put(sample_key(key), vouched_entry(key, static_cast<unsigned>(random())));
          ++all.writes;
        }
        const Lookup lookup = own.get(sample_key(key));
        ++all.reads;
        all.hits += lookup.entry.has_value();
        all.bad += lookup.entry ? !vouched(*lookup.entry, key) : lookup.miss != Miss::absent;
      }
      return 0;
    }));
  for (const int child : children) BOOST_TEST(wait_for(child) == 0);
  BOOST_TEST(all.bad == 0);
  BOOST_TEST(all.reads == processes * reads_each);
  BOOST_TEST(all.hits > all.reads / 2);
  BOOST_TEST(store.list().size() == shared_keys + 0u);
  BOOST_TEST(files_below(store.directory()).size() == shared_keys + 0u);
  report(std::to_string(all.reads) + " reads, " + std::to_string(all.hits) + " hits, " +
         std::to_string(all.writes) + " rewrites, " + std::to_string(all.bad) + " bad");
  munmap(memory, sizeof(Figures));
}

// A child that is forked while other threads are busy finds no lock held. Builds with
// AddressSanitizer or ThreadSanitizer skip this: up to gcc 12, a child that is forked while another
// thread holds a lock of the sanitizer's allocator hangs in its next allocation.
BOOST_AUTO_TEST_CASE(fork_among_threads) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  BOOST_TEST_MESSAGE("skipped: the sanitizer's allocator does not survive a fork among threads");
  return;
#endif
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 3; ++t)
    workers.emplace_back([&, t] {
      for (unsigned round = 0; !stop; ++round) work(store, round * 3 + t + 1, 10);
    });
  for (unsigned p = 0; p < 20; ++p)
    BOOST_TEST(in_child([&] { return work(store, p + 200, 40) == 0 ? 0 : 1; }) == 0);
  stop = true;
  for (auto& worker : workers) worker.join();
}

// A process that clears the cache at the same time only causes misses.
BOOST_AUTO_TEST_CASE(clearing_meanwhile) {
  std::vector<int> children;
  for (unsigned p = 0; p < 3; ++p)
    children.push_back(start_child([&, p] { return work(store, p + 300, 400) == 0 ? 0 : 1; }));
  for (int i = 0; i < 100; ++i) {
    store.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const int child : children) BOOST_TEST(wait_for(child) == 0);
  store.clear();
  BOOST_TEST(files_below(store.directory()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
