#include "cache/key.hpp"

#include <boost/test/unit_test.hpp>
#include <set>

using kiln::cache::Field;
using kiln::cache::Key;

BOOST_AUTO_TEST_SUITE(key)

// The serialization and the hash may not change without a new format version: caches and bundles in
// the field would silently go cold. The digits are those of another implementation (xxhash's Python
// binding) over the documented bytes.
BOOST_AUTO_TEST_CASE(hashes_are_known) {
  const Key key({{"source", "extern \"C\" void f();\n"}, {"options", "-O3"}, {"arch", "sm_90a"}},
                "NVRTC V13.0.88");
  BOOST_TEST(key.content_hash() == "cec3fc0eab72cca7ff2002f0396218b2");
  BOOST_TEST(key.producer_hash() == "89f1ef4a38a8e107");
  BOOST_TEST(key.text() == key.content_hash() + "-" + key.producer_hash());
  BOOST_TEST(Key({}, "").content_hash() == "2c0a8a99dc147d5445c3b49d035665b2");
}

BOOST_AUTO_TEST_CASE(any_producer_has_no_producer_hash) {
  const Key key({{"arch", "sm_80"}}, "");
  BOOST_TEST(key.producer_hash() == "");
  BOOST_TEST(key.text() == key.content_hash());
}

BOOST_AUTO_TEST_CASE(each_byte_of_each_field_counts) {
  const std::vector<Field> content = {
      {"source", "__global__ void f() {}"}, {"options", "-O3 -w"}, {"arch", "sm_90a"}};
  std::set<std::string> seen = {Key(content, "p").content_hash()};
  std::size_t variants = 1;
  for (std::size_t f = 0; f < content.size(); ++f) {
    for (std::string Field::*part : {&Field::name, &Field::value}) {
      for (std::size_t i = 0; i <= (content[f].*part).size(); ++i) {
        auto changed = content;  // one character more, and one character changed
        (changed[f].*part).insert(i, 1, '\0');
        seen.insert(Key(changed, "p").content_hash());
        ++variants;
        if (i == (content[f].*part).size()) continue;
        changed = content;
        (changed[f].*part)[i] ^= 1;
        seen.insert(Key(changed, "p").content_hash());
        ++variants;
      }
    }
  }
  BOOST_TEST(seen.size() == variants);
}

BOOST_AUTO_TEST_CASE(boundaries_between_fields_count) {
  const std::vector<std::vector<Field>> alike = {
      {{"ab", "c"}},           {{"a", "bc"}},           {{"abc", ""}}, {{"", "abc"}},
      {{"a", "b"}, {"c", ""}}, {{"a", ""}, {"b", "c"}}, {{"", ""}},    {},
      {{"", ""}, {"", ""}},    {{"c", ""}, {"a", "b"}}};
  std::set<std::string> seen;
  for (const auto& content : alike) seen.insert(Key(content, "p").content_hash());
  BOOST_TEST(seen.size() == alike.size());
}

BOOST_AUTO_TEST_CASE(producer_is_apart_from_content) {
  const std::vector<Field> content = {{"arch", "sm_90a"}};
  const Key old_build(content, "V13.0.48"), new_build(content, "V13.0.88");
  BOOST_TEST(old_build.content_hash() == new_build.content_hash());
  BOOST_TEST(old_build.producer_hash() != new_build.producer_hash());
}

BOOST_AUTO_TEST_SUITE_END()
