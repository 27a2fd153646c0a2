// Bundles: their content, the cost of using them, and damage.
#include "cache/bundle/bundle.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "cache/bundle/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "support.hpp"
#include "tracer.hpp"

namespace kiln::cache::test {

namespace fs = std::filesystem;

namespace {

struct Fixture {
  ScratchDirectory scratch;
  std::string path = scratch.path("kernels.bundle");

  void write(int count, std::size_t bytes = 100) const {
    BundleWriter writer(path);
    for (int key = 0; key < count; ++key)
      BOOST_REQUIRE(writer.add(encode(
          sample_key(key), sample_entry(std::string(bytes, static_cast<char>('a' + key % 26))))));
    BOOST_REQUIRE(writer.finish("{\"made\":\"for a test\"}") == "");
  }
  std::unique_ptr<const Bundle> open(const std::string& file) const {
    std::string why;
    auto bundle = Bundle::open(file, why);
    BOOST_TEST_REQUIRE(bundle != nullptr, why);
    return bundle;
  }
  std::string refusal(const std::string& file) const {
    std::string why;
    BOOST_TEST(Bundle::open(file, why) == nullptr);
    return why;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(bundle, Fixture)

BOOST_AUTO_TEST_CASE(every_entry_is_found_and_no_other) {
  for (const int count : {0, 1, 50, 3000}) {  // 3,000 have more pages than the tail that is read
    write(count);
    const auto bundle = open(path);
    BOOST_TEST(bundle->entries() == static_cast<unsigned>(count));
    for (int key = 0; key < count; ++key) {
      const Lookup lookup = bundle->get(sample_key(key));
      BOOST_TEST_REQUIRE(lookup.entry.has_value(), lookup.detail);
      BOOST_TEST(text_of(*lookup.entry)[0] == static_cast<char>('a' + key % 26));
      BOOST_TEST(lookup.detail == path);
    }
    for (int key = count; key < count + 100; ++key)
      BOOST_TEST((bundle->get(sample_key(key)).miss == Miss::absent));
    std::string flaw;
    BOOST_TEST(bundle->records(flaw).size() == static_cast<unsigned>(count));
    BOOST_TEST(bundle->provenance(flaw) == "{\"made\":\"for a test\"}");
    BOOST_TEST(flaw == "");
  }
}

BOOST_AUTO_TEST_CASE(producers) {
  {
    BundleWriter writer(path);
    for (const char* producer : {"compiler A", "compiler B"})
      writer.add(encode(sample_key(1, producer), sample_entry(producer)));
    writer.add(encode(sample_key(1, "compiler A"), sample_entry("again")));  // passed over
    BOOST_TEST(writer.finish("") == "");
  }
  const auto bundle = open(path);
  BOOST_TEST(bundle->entries() == 2u);
  BOOST_TEST(text_of(*bundle->get(sample_key(1, "compiler A")).entry) == "compiler A");
  BOOST_TEST(text_of(*bundle->get(sample_key(1, "compiler B")).entry) == "compiler B");
  bool other = false;
  BOOST_TEST((bundle->get(sample_key(1, "compiler C"), &other).miss == Miss::absent));
  BOOST_TEST(other);
  const Lookup any = bundle->get(sample_key(1, ""));
  BOOST_REQUIRE(any.entry.has_value());
  BOOST_TEST(any.producer.starts_with("compiler "));
}

// Opening costs the same for any number of kernels. A hit makes the calls open, fstat, pread and
// close; a miss makes none.
BOOST_AUTO_TEST_CASE(system_calls) {
  std::vector<long> first;
  for (const int count : {1, 100, 3000}) {
    write(count, 5000);
    const Trace opening = trace([] {},
                                [&] {
                                  std::string why;
                                  return Bundle::open(path, why) ? 0 : 1;
                                });
    if (!opening.possible) {
      BOOST_TEST_MESSAGE("skipped: this system lets no process trace another");
      return;
    }
    BOOST_TEST(opening.status == 0);
    const std::vector<long> expected = {SYS_openat, SYS_newfstatat, SYS_geteuid, SYS_pread64,
                                        SYS_close};
    BOOST_TEST(opening.calls == expected, boost::test_tools::per_element());
  }
  write(400, 150000);
  const auto bundle = open(path);
  const Trace hits = trace([] {},
                           [&] {
                             for (int key = 0; key < 400; ++key)
                               if (!bundle->get(sample_key(key)).entry) return 1;
                             return 0;
                           });
  BOOST_TEST(hits.status == 0);
  std::vector<long> expected;
  for (int key = 0; key < 400; ++key)
    expected.insert(expected.end(),
                    {SYS_openat, SYS_newfstatat, SYS_geteuid, SYS_pread64, SYS_close});
  BOOST_TEST(hits.calls == expected, boost::test_tools::per_element());
  const Trace miss = trace([] {}, [&] { return bundle->get(sample_key(400)).entry ? 1 : 0; });
  BOOST_TEST(miss.status == 0);
  BOOST_TEST(miss.calls.empty());
}

// Each call of opening and looking up may fail: the right entry or none.
BOOST_AUTO_TEST_CASE(each_call_may_fail) {
  if (!can_fail_calls()) {
    BOOST_TEST_MESSAGE("skipped: failing system calls cannot be had on this kind of machine");
    return;
  }
  write(3000);  // pages beyond the tail
  const auto watched = [&] {
    std::string why;
    const auto bundle = Bundle::open(path, why);
    if (!bundle) return why.empty() ? 4 : 1;
    for (int key = 0; key < 5; ++key) {
      const Lookup lookup = bundle->get(sample_key(key));
      if (lookup.entry ? text_of(*lookup.entry)[0] != static_cast<char>('a' + key)
                       : lookup.miss == Miss::none)
        return 3;
    }
    return 0;
  };
  const Trace whole = trace([] {}, watched);
  if (!whole.possible) return;
  BOOST_TEST(whole.status == 0);
  for (const int error : {EIO, EACCES, ESTALE, EMFILE, EINTR, ENOENT, ENOMEM})
    for (int at = 0; at < static_cast<int>(whole.calls.size()); ++at)
      BOOST_TEST(trace([] {}, watched, {Interference::fail, at, error}).status <= 1);
}

// With any byte wrong, a lookup finds the right entry or none.
BOOST_AUTO_TEST_CASE(each_byte_flipped) {
  write(3);
  const Bytes good = read_bytes(path);
  std::string flaw;
  int undetected = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    const auto put = [&](std::byte value) {
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(i)).put(static_cast<char>(value));
    };
    put(good[i] ^ std::byte{0x10});
    std::string why;
    const auto bundle = Bundle::open(path, why);
    if (!bundle) {
      put(good[i]);
      continue;
    }
    bool sound = true;
    for (int key = 0; key < 3; ++key) {
      const Lookup lookup = bundle->get(sample_key(key));
      if (lookup.entry)
        BOOST_TEST(text_of(*lookup.entry) == std::string(100, static_cast<char>('a' + key)));
      else
        sound = false;
    }
    std::string index, provenance;
    bundle->records(index);
    bundle->provenance(provenance);
    undetected += sound && index.empty() && provenance.empty();
    put(good[i]);
  }
  BOOST_TEST(undetected == 0);
}

BOOST_AUTO_TEST_CASE(each_length_cut_is_refused) {
  write(2);
  const Bytes good = read_bytes(path);
  for (std::size_t size = good.size(); size-- > 0;) {
    fs::resize_file(path, size);
    BOOST_TEST_REQUIRE(refusal(path).find("complete") != std::string::npos);
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  write_bytes(path, longer);
  BOOST_TEST(refusal(path).find("complete") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_bundle) {
  BOOST_TEST(refusal(path).find("cannot be opened") != std::string::npos);
  BOOST_TEST(refusal(scratch.path(".")).find("regular file") != std::string::npos);
  BOOST_REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  BOOST_TEST(refusal(path).find("regular file") != std::string::npos);
  fs::remove(path);
  write(1);
  BOOST_REQUIRE(chmod(path.c_str(), 0666) == 0);
  BOOST_TEST(refusal(path).find("everybody") != std::string::npos);
}

// Other processes see a bundle complete or not at all. Lookups in one that is replaced may find
// nothing.
BOOST_AUTO_TEST_CASE(writing) {
  {
    BundleWriter writer(path);
    writer.add(encode(sample_key(1), sample_entry("never finished")));
    BOOST_TEST(!writer.add(Bytes(100)));
  }
  BOOST_TEST(files_below(scratch.path(".")).empty());
  // A killed process leaves nothing, where the file system makes files without names.
  if (const int nameless = ::open(scratch.path(".").c_str(), O_WRONLY | O_TMPFILE, 0600);
      nameless >= 0) {
    close(nameless);
    wait_for(start_child([&] {
      BundleWriter writer(path);
      writer.add(encode(sample_key(1), sample_entry("never finished")));
      return raise(SIGKILL);
    }));
    BOOST_TEST(files_below(scratch.path(".")).empty());
  }
  BundleWriter nowhere(scratch.path("absent/kernels.bundle"));
  BOOST_TEST(nowhere.finish("") != "");

  write(3);
  const auto bundle = open(path);
  write(40, 333);
  for (int key = 0; key < 3; ++key) {
    const Lookup lookup = bundle->get(sample_key(key));
    BOOST_TEST(name_of(lookup.miss) == "unreadable");
    BOOST_TEST(lookup.detail == path + " was replaced by another file");
  }
  fs::remove(path);
  BOOST_TEST((bundle->get(sample_key(0)).miss == Miss::unreadable));
}

// Machine code is accepted from the user, from root, and from the owners that the caller names.
BOOST_AUTO_TEST_CASE(owners) {
  write(1);
  const auto bundle = open(path);
  BOOST_TEST(bundle->get(sample_key(0)).entry.has_value());
  BOOST_REQUIRE(chmod(path.c_str(), 0666) == 0);  // while it is in use
  const Lookup lookup = bundle->get(sample_key(0));
  BOOST_TEST(name_of(lookup.miss) == "unreadable");
  BOOST_TEST(lookup.detail == path + " can be written by everybody");
  BOOST_REQUIRE(chmod(path.c_str(), 0644) == 0);
  BOOST_TEST(bundle->get(sample_key(0)).entry.has_value());
  if (geteuid() != 0) return;  // none but root gives files away
  BOOST_REQUIRE(chown(path.c_str(), 65534, 65534) == 0);
  BOOST_TEST(!bundle->get(sample_key(0)).entry.has_value());
  BOOST_TEST(refusal(path) == "belongs to another user (uid 65534; expected 0 or root)");
  std::string why;
  const auto trusted = Bundle::open(path, why, 65534);
  BOOST_REQUIRE(trusted != nullptr);
  BOOST_TEST(trusted->get(sample_key(0)).entry.has_value());
  BOOST_REQUIRE(chown(path.c_str(), 0, 0) == 0);
  chmod(scratch.path("").c_str(), 0755);
  const int status = in_child([&] {  // another user reads root's
    if (setuid(65534) != 0) return 77;
    std::string reason;
    const auto roots = Bundle::open(path, reason);
    return roots && roots->get(sample_key(0)).entry ? 0 : 1;
  });
  BOOST_TEST((status == 0 || status == 77));
}

BOOST_AUTO_TEST_CASE(the_same_entries_give_the_same_bytes) {
  write(20);
  const Bytes first = read_bytes(path);
  write(20);
  BOOST_TEST((read_bytes(path) == first));
}

// A trailer is only used if everything that it refers to is inside the file.
BOOST_AUTO_TEST_CASE(trailers_that_make_no_sense) {
  BundleLayout good;
  good.file_bytes = 10000, good.index_at = 64, good.pages = 1, good.provenance_at = 4160;
  BundleLayout read;
  BOOST_TEST(decode_trailer(encode_trailer(good), 10000, read));
  BOOST_TEST(!decode_trailer(encode_trailer(good), 10001, read));
  const auto refused = [&](const auto& change) {
    BundleLayout bad = good;
    change(bad);
    return !decode_trailer(encode_trailer(bad), 10000, read);
  };
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  BOOST_TEST(refused([](BundleLayout& layout) { layout.pages = 0; }));
  BOOST_TEST(refused([](BundleLayout& layout) { layout.pages = huge; }));
  BOOST_TEST(refused([](BundleLayout& layout) { layout.index_at = huge; }));
  BOOST_TEST(refused([](BundleLayout& layout) { layout.index_at = 9000; }));
  BOOST_TEST(refused([](BundleLayout& layout) { layout.provenance_at = huge; }));
  BOOST_TEST(refused([](BundleLayout& layout) { layout.provenance_bytes = huge; }));
  BOOST_TEST(refused([](BundleLayout& layout) { layout.entries = 103; }));

  // A file that is mostly holes has room for anything.
  BundleLayout vast;
  vast.file_bytes = std::uint64_t{1} << 50, vast.index_at = 64, vast.pages = most_bundle_pages;
  vast.provenance_at = std::uint64_t{1} << 40, vast.provenance_bytes = most_provenance_bytes;
  BOOST_TEST(decode_trailer(encode_trailer(vast), vast.file_bytes, read));
  ++vast.pages;
  BOOST_TEST(!decode_trailer(encode_trailer(vast), vast.file_bytes, read));
  --vast.pages, ++vast.provenance_bytes;
  BOOST_TEST(!decode_trailer(encode_trailer(vast), vast.file_bytes, read));
}

// Impossible sizes in the index, with right checksums, are rejected before anything is allocated: a
// process that may have 1 GiB of memory continues.
BOOST_AUTO_TEST_CASE(indexes_that_claim_too_much) {
  const auto check = [&](std::vector<BundleRecord> records, std::uint64_t hole, const char* flaw) {
    Bytes file = encode_header();
    const auto add = [&](const Bytes& bytes) {
      file.insert(file.end(), bytes.begin(), bytes.end());
    };
    const Bytes entry = encode(sample_key(), sample_entry());
    BundleLayout layout;
    for (BundleRecord& record : records) {
      record.content_hash = sample_key().content_hash();
      record.producer_hash = sample_key().producer_hash();
    }
    add(entry);
    layout.provenance_at = file.size() + hole;
    layout.provenance_digest = hash128({});
    layout.index_at = layout.provenance_at;
    layout.pages = 1, layout.entries = records.size();
    layout.file_bytes = layout.index_at + bundle_page_bytes + bundle_trailer_bytes;
    write_bytes(path, file);
    fs::resize_file(path, layout.index_at);
    std::ofstream end(path, std::ios::binary | std::ios::app);
    for (const Bytes& bytes : {encode_index(records, 1), encode_trailer(layout)})
      end.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    end.close();
    const int status = in_child([&] {
#ifndef __SANITIZE_ADDRESS__
      const rlimit limit{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
      setrlimit(RLIMIT_AS, &limit);
#endif
      alarm(20);
      std::string why, found;
      const auto bundle = Bundle::open(path, why);
      if (!bundle) return 1;
      if (bundle->get(sample_key()).entry) return 2;
      for (const BundleRecord& record : bundle->records(found)) bundle->entry(record);
      return found.find(flaw) != std::string::npos ? 0 : 3;
    });
    BOOST_TEST(status == 0);
  };
  constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;
  check({{"", "", 64, 6 * gibibyte}}, 0, "page 0 of the index is damaged");
  check({{"", "", 64, ~std::uint64_t{0}}}, 0, "page 0 of the index is damaged");
  check({{"", "", ~std::uint64_t{0}, 100}}, 0, "page 0 of the index is damaged");
  check({{"", "", 64, 6 * gibibyte}}, 10 * gibibyte, "page 0 of the index is damaged");
  const BundleRecord hole{"", "", 1000, max_entry_bytes};
  check(std::vector<BundleRecord>(bundle_page_records, hole), max_entry_bytes, "overlap");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
