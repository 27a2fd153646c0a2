#include "cache/store/disk_store.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "support.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

struct Fixture {
  ScratchDirectory scratch;
  Warnings warnings;
  DiskStore store{scratch.path(), warnings.sink()};
  Key key = sample_key();
  std::string path = path_of(store, key);
};

std::size_t open_descriptors() {
  const fs::directory_iterator descriptors("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(disk_store, Fixture)

BOOST_AUTO_TEST_CASE(round_trip) {
  BOOST_TEST(name_of(store.get(key).miss) == "absent");
  BOOST_TEST(!fs::exists(store.directory()));  // looking makes nothing
  BOOST_TEST(store.put(key, sample_entry("one")));
  for (const std::string& directory : {scratch.path(), scratch.path() + "//"}) {
    const DiskStore other(directory, warnings.sink());
    const Lookup hit = other.get(key);
    BOOST_REQUIRE(hit.entry.has_value());
    BOOST_TEST(name_of(hit.miss) == "none");
    BOOST_TEST(text_of(*hit.entry) == "one");
    BOOST_TEST(hit.entry->find("log")->bytes.empty());
    BOOST_TEST(hit.entry->find("ptx") == nullptr);
    BOOST_TEST(other.counters().hits == 1u);
  }
  BOOST_TEST(fs::is_regular_file(path));
  BOOST_TEST(store.put(key, sample_entry("two")));
  BOOST_TEST(text_of(*store.get(key).entry) == "two");
  BOOST_TEST(files_below(store.directory()).size() == 1u);
  BOOST_TEST(store.counters().published == 2u);
  BOOST_TEST(store.counters().absent == 1u);
  BOOST_TEST(warnings.all().empty());
}

BOOST_AUTO_TEST_CASE(entries_of_any_size) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1} << 20,
                                 (std::size_t{1} << 20) - 200, std::size_t{9} << 20}) {
    const std::string text(size, 'x');
    BOOST_TEST(store.put(key, sample_entry(text)));
    const Lookup hit = store.get(key);
    BOOST_REQUIRE(hit.entry.has_value());
    BOOST_TEST((text_of(*hit.entry) == text));
  }
}

BOOST_AUTO_TEST_CASE(another_producer_is_another_entry) {
  store.put(key, sample_entry());
  BOOST_TEST(name_of(store.get(sample_key(0, "compiler V13.0.89")).miss) == "absent");
  BOOST_TEST(name_of(store.get(sample_key(1)).miss) == "absent");
}

// Flips one bit of each byte (in a full run, sets it to every other value), and cuts the file at
// every length.
BOOST_AUTO_TEST_CASE(every_byte_flipped_and_every_truncation_is_a_miss_and_is_rewritten) {
  store.put(key, sample_entry());
  const Bytes right = read_bytes(path);
  BOOST_REQUIRE(right.size() > 100u);
  const auto is_corrupt = [&](const Bytes& wrong) {
    write_bytes(path, wrong);
    const Lookup lookup = store.get(key);
    return !lookup.entry.has_value() && lookup.miss == Miss::corrupt;
  };
  std::size_t tried = 0, believed = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (int n = 0; n < count(1, 255); ++n, ++tried) {
      Bytes wrong = right;
      wrong[i] ^= static_cast<std::byte>(count(1 << i % 8, n + 1));
      believed += !is_corrupt(wrong);
    }
    believed += !is_corrupt(Bytes(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(i)));
  }
  BOOST_TEST(believed == 0u);
  BOOST_TEST(store.counters().corrupt == tried + right.size());
  BOOST_TEST(store.put(key, sample_entry()));
  BOOST_TEST((read_bytes(path) == right));
  BOOST_TEST(store.get(key).entry.has_value());
  report(std::to_string(tried) + " changed bytes and " + std::to_string(right.size()) +
         " lengths of an entry of " + std::to_string(right.size()) + " bytes");
}

BOOST_AUTO_TEST_CASE(a_longer_file_is_corrupt) {
  store.put(key, sample_entry());
  Bytes longer = read_bytes(path);
  longer.push_back(std::byte{0});
  write_bytes(path, longer);
  BOOST_TEST(name_of(store.get(key).miss) == "corrupt");
}

// With hashes cut to 8 bits and to none, the entry of another key is never returned.
BOOST_AUTO_TEST_CASE(colliding_keys_never_get_each_others_entry) {
  for (const int digits : {2, 0}) {
    DiskStore small(scratch.path("digits" + std::to_string(digits)), warnings.sink(), digits);
    const int keys = count(200, 600);
    for (int i = 0; i < keys; ++i) small.put(sample_key(i), vouched_entry(i, 1));
    for (int i = 0; i < keys; ++i) {
      const Lookup lookup = small.get(sample_key(i));
      if (lookup.entry)
        BOOST_TEST(vouched(*lookup.entry, i));
      else
        BOOST_TEST(name_of(lookup.miss) == "collision");
    }
    const Counters counters = small.counters();
    BOOST_TEST(counters.hits == small.list().size());
    BOOST_TEST(counters.hits <= (digits == 2 ? 256u : 1u));
    BOOST_TEST(counters.hits >= 1u);
    BOOST_TEST(counters.collisions == static_cast<unsigned>(keys) - counters.hits);
    BOOST_TEST(counters.collisions >= 1u);
    // The producer's hash is cut too: same content, same file name, another compiler.
    if (digits == 0) {
      small.put(sample_key(7, "compiler A"), sample_entry("A"));
      const Lookup lookup = small.get(sample_key(7, "compiler B"));
      BOOST_TEST(name_of(lookup.miss) == "collision");
      BOOST_TEST(lookup.detail.find("producer") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_copied_entry_is_a_collision) {
  store.put(key, sample_entry());
  const Key other({{"source", "kernel 0"}, {"arch", "sm_90"}}, key.producer());
  fs::create_directories(fs::path(path_of(store, other)).parent_path());
  fs::copy_file(path, path_of(store, other));
  const Lookup lookup = store.get(other);
  BOOST_TEST(name_of(lookup.miss) == "collision");
  BOOST_TEST(lookup.detail.find("'arch'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(any_producer_finds_the_newest) {
  const Key any = sample_key(0, "");
  BOOST_TEST(name_of(store.get(any).miss) == "absent");
  for (const char* producer : {"A", "B", "C"}) {
    store.put(sample_key(0, producer), sample_entry(producer));
    make_older(path_of(store, sample_key(0, producer)), *producer == 'B' ? 10 : 1000);
  }
  BOOST_TEST(text_of(*store.get(any).entry) == "B");
  // Among equally old entries, the one with the greatest name counts; corrupt ones are skipped.
  write_bytes(path_of(store, sample_key(0, "B")), Bytes(5));
  const Key a = sample_key(0, "A"), c = sample_key(0, "C");
  const std::string expected = a.producer_hash() > c.producer_hash() ? "A" : "C";
  for (int i = 0; i < 3; ++i) BOOST_TEST(text_of(*store.get(any).entry) == expected);
  write_bytes(path_of(store, a), {});
  write_bytes(path_of(store, c), {});
  BOOST_TEST(name_of(store.get(any).miss) == "corrupt");
}

BOOST_AUTO_TEST_CASE(any_producer_compares_the_content) {
  DiskStore small(scratch.path("small"), warnings.sink(), 0);
  small.put(sample_key(1, "A"), sample_entry("of 1"));
  BOOST_TEST(name_of(small.get(sample_key(2, "")).miss) == "collision");
  BOOST_TEST(text_of(*small.get(sample_key(1, "")).entry) == "of 1");
}

BOOST_AUTO_TEST_CASE(any_producer_cannot_be_published) {
  BOOST_TEST(!store.put(sample_key(0, ""), sample_entry()));
  BOOST_TEST(warnings.all().size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_corrupt_and_is_replaced) {
  store.put(key, sample_entry("right"));
  const std::string elsewhere = scratch.path("elsewhere");
  fs::rename(path, elsewhere);
  const auto check = [&](const char* what) {
    BOOST_TEST_CONTEXT(what) {
      BOOST_TEST(name_of(store.get(key).miss) == "corrupt");
      BOOST_TEST(name_of(store.get(sample_key(0, "")).miss) == "corrupt");
      BOOST_TEST(store.put(key, sample_entry("right")));
      BOOST_TEST((fs::symlink_status(path).type() == fs::file_type::regular));
      fs::remove(path);
    }
  };
  fs::create_symlink(elsewhere, path);  // even to a sound entry
  check("link");
  BOOST_TEST(mkfifo(path.c_str(), 0600) == 0);
  check("FIFO that nobody writes");
  BOOST_TEST(mkfifo(path.c_str(), 0600) == 0);
  const int writer = open(path.c_str(), O_RDWR | O_CLOEXEC);  // a reader would wait for it
  check("FIFO with a silent writer");
  close(writer);
  fs::create_directory(path);
  BOOST_TEST(name_of(store.get(key).miss) == "corrupt");
  BOOST_TEST(!store.put(key, sample_entry()));  // a directory is not the cache's to remove
  BOOST_TEST(files_below(store.directory()).empty());
}

BOOST_AUTO_TEST_CASE(a_vanished_file_is_absent) {
  store.put(key, sample_entry());
  fs::remove(path);
  BOOST_TEST(name_of(store.get(key).miss) == "absent");
  fs::remove_all(store.directory());
  BOOST_TEST(name_of(store.get(key).miss) == "absent");
  BOOST_TEST(store.put(key, sample_entry("again")));  // makes its directory anew
  BOOST_TEST(text_of(*store.get(key).entry) == "again");
  BOOST_TEST(warnings.all().empty());
}

BOOST_AUTO_TEST_CASE(modes_do_not_depend_on_the_umask) {
  for (const mode_t mask : {0000, 0022, 0777, 0277}) {
    const std::string parent = scratch.path("umask" + std::to_string(mask));
    const mode_t before = umask(mask);
    DiskStore masked(parent + "/kiln", warnings.sink());
    const bool written = masked.put(key, sample_entry());
    umask(before);
    BOOST_TEST(written);
    const fs::path file = path_of(masked, key);
    BOOST_TEST(mode_of(file) == 0600u);
    for (fs::path directory = file.parent_path(); directory != fs::path(parent).parent_path();
         directory = directory.parent_path())
      BOOST_TEST(mode_of(directory) == 0700u, directory);
  }
}

BOOST_AUTO_TEST_CASE(orphans_are_reclaimed_after_an_hour) {
  store.put(key, sample_entry());
  const std::string shard = fs::path(path).parent_path();
  const std::string old_orphan = shard + "/tmp-4711-0123456789abcdef",
                    young = shard + "/tmp-4712-0123456789abcdef",
                    foreign = shard + "/tmp-4711-mine",
                    old_link = shard + "/tmp-1-0000000000000000";
  for (const auto& file : {old_orphan, young, foreign}) write_bytes(file, Bytes(10));
  fs::create_symlink(path, old_link);
  for (const auto& file : {old_orphan, foreign, old_link}) make_older(file, 3700);
  make_older(young, 3500);
  store.get(key);
  BOOST_TEST(fs::exists(old_orphan));  // a lookup writes nothing
  BOOST_TEST(store.put(key, sample_entry()));
  BOOST_TEST(!fs::exists(old_orphan));
  BOOST_TEST(fs::exists(young));
  BOOST_TEST(fs::exists(foreign));
  BOOST_TEST(fs::exists(path));
  store.clear();
  BOOST_TEST((files_below(store.directory()) == std::vector{foreign}));
}

BOOST_AUTO_TEST_CASE(list_and_read) {
  BOOST_TEST(store.list().empty());
  for (int i = 0; i < 20; ++i) store.put(sample_key(i), sample_entry("entry " + std::to_string(i)));
  write_bytes(store.directory() + "/v1/notes.txt", Bytes(3));
  const auto listings = store.list();
  BOOST_REQUIRE(listings.size() == 20u);
  BOOST_TEST(std::ranges::is_sorted(listings, {}, &Listing::path));
  for (const Listing& listing : listings) {
    std::vector<Field> content;
    std::string producer;
    const Lookup lookup = store.read(listing, &content, &producer);
    BOOST_REQUIRE(lookup.entry.has_value());
    const Key found(content, producer);
    BOOST_TEST(found.content_hash() == listing.content_hash);
    BOOST_TEST(found.producer_hash() == listing.producer_hash);
    BOOST_TEST(path_of(store, found) == listing.path);
    BOOST_TEST(listing.bytes == fs::file_size(listing.path));
    BOOST_TEST(std::abs(listing.modified - std::time(nullptr)) < 600);
    BOOST_TEST(content[0].value.substr(7) == text_of(*lookup.entry).substr(6));
    BOOST_TEST(store.read(listing, nullptr, nullptr).entry.has_value());
  }
  fs::remove(listings[0].path);
  BOOST_TEST(name_of(store.read(listings[0], nullptr, nullptr).miss) == "absent");
  BOOST_TEST(store.counters().hits == 0u);
}

BOOST_AUTO_TEST_CASE(clear_removes_what_is_ours_and_follows_no_link) {
  for (int i = 0; i < 50; ++i) store.put(sample_key(i), sample_entry());
  const std::string shard = fs::path(path).parent_path(), v1 = store.directory() + "/v1";
  DiskStore victim(scratch.path("victim"), warnings.sink());
  victim.put(key, sample_entry());
  const std::string victim_shard = fs::path(path_of(victim, key)).parent_path();
  std::string free_shard = v1 + "/00";  // a shard's name that no sample has taken
  for (int i = 1; fs::exists(free_shard); ++i) free_shard = v1 + "/" + std::to_string(10 + i);
  fs::create_directory_symlink(victim_shard, free_shard);
  write_bytes(shard + "/notes.txt", Bytes(3));
  write_bytes(shard + "/tmp-1-0123456789abcdef", Bytes(3));
  write_bytes(v1 + "/notes.txt", Bytes(3));
  BOOST_TEST(store.list().size() == 50u);
  BOOST_TEST(store.clear() == 50u);
  BOOST_TEST(store.clear() == 0u);
  auto left = files_below(store.directory());
  std::ranges::sort(left);
  std::vector expected{free_shard, shard + "/notes.txt", v1 + "/notes.txt"};
  std::ranges::sort(expected);
  BOOST_TEST(left == expected, boost::test_tools::per_element());
  BOOST_TEST(victim.get(key).entry.has_value());
  fs::remove(free_shard);
  fs::remove(shard + "/notes.txt");
  store.put(key, sample_entry());
  BOOST_TEST(store.clear() == 1u);
  BOOST_TEST(!fs::exists(shard));  // an empty shard goes too
  BOOST_TEST(store.put(key, sample_entry()));
}

BOOST_AUTO_TEST_CASE(no_descriptor_is_kept) {
  const std::size_t before = open_descriptors();
  store.put(key, sample_entry());
  store.get(key);
  store.get(sample_key(0, ""));
  store.get(sample_key(1));
  store.list();
  write_bytes(path, Bytes(100));
  store.get(key);
  store.clear();
  BOOST_TEST(open_descriptors() == before);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_nothing_behind_and_warns_once) {
  store.put(key, sample_entry("old"));
  const int status = in_child([&] {
    const rlimit limit{5000, 5000};  // the write stops short there, the next one fails
    std::signal(SIGXFSZ, SIG_DFL);   // which ends the process
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 3; ++i)
      if (store.put(key, sample_entry(std::string(20000, 'x')))) return 1;
    if (warnings.all().size() != 1) return 2;
    if (store.counters().publish_failures != 3) return 3;
    return files_below(store.directory()).size() == 1 ? 0 : 4;
  });
  BOOST_TEST(status == 0);
  BOOST_TEST(text_of(*store.get(key).entry) == "old");
}

BOOST_AUTO_TEST_CASE(no_descriptors_left_is_a_miss) {
  store.put(key, sample_entry());
  const int status = in_child([&] {
    const rlimit limit{0, 0};
    setrlimit(RLIMIT_NOFILE, &limit);
    if (store.get(key).miss != Miss::unreadable) return 1;
    if (store.get(sample_key(0, "")).miss != Miss::unreadable) return 2;
    if (!store.list().empty()) return 3;
    if (store.put(key, sample_entry())) return 4;
    return store.counters().unreadable == 2 && warnings.all().size() == 1 ? 0 : 5;
  });
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
