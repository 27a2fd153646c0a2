#include "core/quantity.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(quantity)

BOOST_AUTO_TEST_CASE(bytes) {
  const std::pair<const char*, std::uint64_t> good[] = {
      {"0", 0},
      {"4096", 4096},
      {"512K", 512u << 10},
      {"64M", 64u << 20},
      {"4G", 4ull << 30},
      {"4g", 4ull << 30},
      {"64mib", 64u << 20},
      {"1T", 1ull << 40},
      {"3B", 3},
      {"2KB", 2048},
      {"2KiB", 2048},
      {"8191P", 0},
      {"9007199254740991K", 9007199254740991ull << 10},
  };
  for (const auto& [text, expected] : good) {
    std::uint64_t value = 7;
    const bool is_number = expected != 0 || std::string(text) == "0";
    BOOST_TEST(kiln::parse_bytes(text, value) == is_number, text);
    BOOST_TEST(value == (is_number ? expected : 7), text);
  }
  for (const char* text : {"", "G", "-1", "1.5G", "4 G", "4iB", "4GG", "9007199254740992K",
                           "99999999999999999999", "0x10"}) {
    std::uint64_t value = 7;
    BOOST_TEST(!kiln::parse_bytes(text, value), text);
    BOOST_TEST(value == 7u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
