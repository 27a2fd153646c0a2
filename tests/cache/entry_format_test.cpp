#include "cache/entry_format.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>

#include "cache/hash.hpp"
#include "support.hpp"

namespace kiln::cache::test {
namespace {

const Key small_key({{"source", "f"}, {"arch", "sm_90a"}}, "V13");

Bytes small_file() { return encode(small_key, sample_entry("cubin")); }

void seal(Bytes& file) {  // a right checksum over whatever is there
  const Digest digest = hash128(std::span(file).first(file.size() - sizeof(Digest)));
  std::copy(digest.begin(), digest.end(), file.end() - sizeof(Digest));
}

void put_integer(Bytes& file, std::size_t at, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) file[at + i] = static_cast<std::byte>(value >> 8 * i);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(entry_format)

BOOST_AUTO_TEST_CASE(round_trip) {
  const Key key({{"source", std::string("a\0b", 3)}, {"", ""}}, "producer");
  const Entry entry{{{"binary", Bytes(1000, std::byte{0})}, {"", {}}, {"log", Bytes(3)}}};
  const Bytes file = encode(key, entry);
  const Decoded decoded = decode(file);
  BOOST_REQUIRE(!decoded.flaw);
  BOOST_REQUIRE(decoded.view.content.size() == 2u);
  BOOST_TEST(decoded.view.content[0].name == "source");
  BOOST_TEST(decoded.view.content[0].value == std::string_view("a\0b", 3));
  BOOST_TEST(decoded.view.content[1].value == "");
  BOOST_TEST(decoded.view.producer == "producer");
  BOOST_REQUIRE(decoded.view.sections.size() == 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(decoded.view.sections[i].name == entry.sections[i].name);
    BOOST_TEST(std::ranges::equal(decoded.view.sections[i].bytes, entry.sections[i].bytes));
  }
  BOOST_TEST(announced_size(file) == file.size());
}

BOOST_AUTO_TEST_CASE(nothing_but_a_key) {
  const Bytes file = encode(Key({}, "p"), Entry{});
  const Decoded decoded = decode(file);
  BOOST_TEST(!decoded.flaw);
  BOOST_TEST(decoded.view.content.empty());
  BOOST_TEST(decoded.view.sections.empty());
}

// The file's layout is what other versions and machines read; see entry_format.hpp.
BOOST_AUTO_TEST_CASE(layout_is_fixed) {
  const Bytes file = small_file();
  BOOST_TEST(std::memcmp(file.data(), "KILNKRNL\1\0\0\0\0\0\0\0", 16) == 0);
  BOOST_TEST(file.size() == 24u + 8 + (16 + 6 + 1) + (16 + 4 + 6) + (8 + 3) + 8 + (16 + 6 + 5) +
                                (16 + 3 + 0) + 16);
  BOOST_TEST(hash128_hex(file) == "5fc669b528532f11443b0ea0dce0e821");
}

BOOST_AUTO_TEST_CASE(every_other_value_of_every_byte_is_a_flaw) {
  Bytes file = small_file();
  std::size_t accepted = 0;
  for (std::byte& byte : file) {
    const std::byte right = byte;
    for (int other = 1; other < 256; ++other) {
      byte = right ^ static_cast<std::byte>(other);
      accepted += decode(file).flaw == nullptr;
    }
    byte = right;
  }
  BOOST_TEST(accepted == 0u);
  BOOST_TEST(!decode(file).flaw);
}

BOOST_AUTO_TEST_CASE(every_other_length_is_a_flaw) {
  Bytes file = small_file();
  for (std::size_t size = 0; size < file.size(); ++size)
    BOOST_TEST(decode(std::span(file).first(size)).flaw != nullptr, "accepted at length " << size);
  for (int more = 0; more < 32; ++more) {
    file.push_back(std::byte{0});
    BOOST_TEST(decode(file).flaw != nullptr);
  }
}

// Wrong lengths with a right checksum, which no accident of a disk makes. They must be rejected
// without reading beyond the end of the file.
BOOST_AUTO_TEST_CASE(lengths_are_checked_even_under_a_right_checksum) {
  const Bytes file = small_file();
  const std::size_t counts[] = {24, 32};  // number of fields, length of the first name
  for (const std::size_t at : counts) {
    for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{1} << 32,
                                      ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
      Bytes changed = file;
      put_integer(changed, at, wrong);
      seal(changed);
      BOOST_TEST(decode(changed).flaw != nullptr, wrong << " at " << at << " was believed");
    }
  }
  for (std::size_t at = 24; at + sizeof(Digest) < file.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = file;
      changed[at] ^= static_cast<std::byte>(1 << bit);
      seal(changed);
      const Decoded decoded = decode(changed);  // sound or not, it stays inside the file
      for (const auto& section : decoded.view.sections)
        BOOST_TEST(section.bytes.data() + section.bytes.size() <= changed.data() + changed.size());
    }
  }
}

BOOST_AUTO_TEST_CASE(announced_size_bounds_what_is_read) {
  Bytes file = small_file();
  for (std::size_t size = 0; size < 24; ++size)
    BOOST_TEST(announced_size(std::span(file).first(size)) == undecided);
  put_integer(file, 16, max_entry_bytes + 1);
  BOOST_TEST(announced_size(file) == 0u);
  put_integer(file, 16, 39);  // less than a header and a checksum
  BOOST_TEST(announced_size(file) == 0u);
  file = small_file();
  put_integer(file, 8, format_version + 1);
  BOOST_TEST(announced_size(file) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace kiln::cache::test
