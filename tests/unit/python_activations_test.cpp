// The tables of activations in kiln.torch and kiln.arrays against the library's own.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "core/enumeration.hpp"
#include "problem/activation.hpp"

using namespace kiln;

namespace {

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

BOOST_AUTO_TEST_SUITE(python_activations)

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
