// Every list of activations names each one of kilnActivationMode_t, in C++, kernels, tables and
// tests. ADDING.md has the files that a new one takes.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "core/enumeration.hpp"
#include "core/text.hpp"
#include "problem/activation.hpp"

using namespace kiln;

namespace {

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(std::string(KILN_PYTHON) + "/../../" + path).rdbuf();
  BOOST_REQUIRE_MESSAGE(!text.str().empty(), path);
  return text.str();
}

std::string upper(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

bool has_word(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex(cat("(^|[^A-Za-z0-9_])", word, "([^A-Za-z0-9_]|$)")));
}

// A list: a file, the part of it from `begin` to `end` ("": all of it), and how a name is written
// there, with NAME or name for the activation's.
struct List {
  const char *path, *begin, *end, *form;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(activation_lists)

BOOST_AUTO_TEST_CASE(every_list_names_every_activation) {
  const List lists[] = {
      {"include/kiln/activation.h", "", "", "KILN_ACTIVATION_NAME"},
      {"src/core/enumeration.cpp", "", "", "KILN_ACTIVATION_NAME"},
      {"kernel_sources/common/activation.cuh", "enum Mode", "};", "NAME"},
      {"kernel_sources/common/activation.cuh", "T activate(", "\n}\n", "Act::NAME"},
      {"kernel_sources/common/activation.cuh", "T activation_slope(", "\n}\n", "Act::NAME"},
      {"src/reference/activation.cpp", "", "", "KILN_ACTIVATION_NAME"},
      {"tests/ops/values/activations.py", "", "", "NAME"},
      {"tests/ops/values/activations.inc", "", "", "KILN_ACTIVATION_NAME"},
      {"tests/problems/activation.txt", "", "", "--act name"},
      {"tests/problems/quick/activation.txt", "", "", "--act name"},
      {"tests/api/operations/activation_test.cpp", "", "", "KILN_ACTIVATION_NAME"},
  };
  for (const List& list : lists) {
    const std::string all = text_of(list.path);
    const std::size_t begin = all.find(list.begin);
    BOOST_REQUIRE_MESSAGE(begin != std::string::npos, list.path);
    const std::size_t end = *list.end == 0 ? all.size() : all.find(list.end, begin);
    const std::string text = all.substr(begin, end - begin);
    for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>()) {
      const std::string name(name_of(mode));
      std::string word = list.form;
      if (const auto at = word.find("NAME"); at != std::string::npos)
        word.replace(at, 4, upper(name));
      else
        word.replace(word.find("name"), 4, name);
      BOOST_TEST(has_word(text, word), list.path << " " << list.begin << " lacks " << word);
    }
  }
}

// The kernels' numbers are counted on from IDENTITY, so their order is the library's.
BOOST_AUTO_TEST_CASE(the_kernels_numbers_are_the_librarys) {
  const std::string all = text_of("kernel_sources/common/activation.cuh");
  const std::size_t begin = all.find("enum Mode"), open = all.find("IDENTITY = 700", begin);
  BOOST_REQUIRE(open != std::string::npos);
  std::istringstream names(all.substr(open, all.find('}', open) - open));
  int number = KILN_ACTIVATION_IDENTITY;
  BOOST_TEST(number == 700);
  for (std::string entry; std::getline(names, entry, ',');) {
    std::string name;
    for (const char c : entry.substr(0, entry.find('=')))
      if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') name += c;
    const auto mode = static_cast<kilnActivationMode_t>(number++);
    BOOST_TEST(name == upper(std::string(name_of(mode))));
  }
  BOOST_TEST(number ==
             static_cast<int>(KILN_ACTIVATION_IDENTITY + all_of<kilnActivationMode_t>().size()));
}

// What --help says of coefficients names every activation that has some.
BOOST_AUTO_TEST_CASE(the_help_names_every_activation_with_coefficients) {
  const std::string all = text_of("src/cli/operation/operation.cpp");
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>())
    if (coefficients_of(mode) > 0)
      BOOST_TEST(has_word(all, std::string(name_of(mode))), "no " << name_of(mode));
}

BOOST_AUTO_TEST_SUITE_END()
