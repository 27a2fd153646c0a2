// Every list of activations names each one of kilnActivationMode_t, in C++, kernels, tables and
// tests. ADDING.md has the files that a new one takes.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <fstream>
#include <map>
#include <regex>
#include <set>
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

struct Entry {
  int number;
  double coefficient;  // the default; 0 if the activation has none
  bool operator==(const Entry&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Entry& entry) {
  return out << entry.number << " with coefficient " << entry.coefficient;
}

using Table = std::map<std::string, Entry>;

// The entries "NAME": (NUMBER, ... COEFFICIENT) or "NAME": Activation(NUMBER, ...) of the
// dictionary ACTIVATIONS of a file.
Table table_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(std::string(KILN_PYTHON) + "/" + path).rdbuf();
  const std::string all = text.str();
  const std::size_t begin = all.find("\nACTIVATIONS");
  BOOST_REQUIRE(begin != std::string::npos);
  const std::string body = all.substr(begin, all.find("\n}\n", begin) - begin);
  const std::regex head("\"(\\w+)\": (?:Activation)?\\(\\s*(\\d+)"),
      tail("[, ]+([0-9.]+),?\\s*\\),?\\s*$");
  Table table;
  const std::sregex_iterator none;
  for (std::sregex_iterator at(body.begin(), body.end(), head); at != none;) {
    const std::smatch entry = *at++;
    const auto rest = body.begin() + entry.position(2) + entry.length(2);
    const auto end = at == none ? body.end() : body.begin() + at->position();
    std::smatch last;
    const bool has = std::regex_search(rest, end, last, tail);
    table[entry[1]] = {std::stoi(entry[2]), has ? std::stod(last[1]) : 0};
  }
  return table;
}

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

// The tables of kiln.torch and kiln.arrays.
BOOST_AUTO_TEST_CASE(tables_have_the_numbers_and_defaults_of_the_library) {
  // Activations that the tables do not have, because NumPy and PyTorch have them as functions
  // rather than layers, or because they have two coefficients.
  const std::set<std::string> left_out{"abs", "exp",          "log",  "sqrt",  "square",
                                       "pow", "hard_sigmoid", "clip", "linear"};
  Table expected;
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>()) {
    const std::string name = mode == KILN_ACTIVATION_GELU_ERF ? "gelu" : std::string(name_of(mode));
    if (!left_out.contains(name))
      expected[name] = {mode, coefficients_of(mode) > 0 ? default_activation(mode).coefficient : 0};
  }
  for (const char* file : {"kiln/torch/_activations.py", "kiln/arrays/_functions.py"}) {
    const Table table = table_of(file);
    for (const auto& [name, entry] : expected)
      BOOST_TEST((table.contains(name) && table.at(name) == entry),
                 file << " lacks " << name << ", " << entry);
    BOOST_TEST(table.size() == expected.size(), file << " has an activation that is none");
  }
}

BOOST_AUTO_TEST_SUITE_END()
