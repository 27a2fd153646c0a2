// The tables of enumerations against the headers, and the functions that use them.
#include "core/enumeration.hpp"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <type_traits>

#include "unit/problem/problem_support.hpp"

using namespace kiln;
using namespace test;

namespace {

// The enumerations of the headers by type, each with its values by identifier.
std::map<std::string, std::map<std::string, int>> declared() {
  std::stringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_HEADERS))
    if (entry.path().extension() == ".h") text << std::ifstream(entry.path()).rdbuf();
  std::map<std::string, std::map<std::string, int>> out;
  std::map<std::string, int> values;
  const std::regex line("^  (KILN_\\w+) = (\\d+)|^\\} (kiln\\w+_t);");
  for (std::string at; std::getline(text, at);) {
    std::smatch found;
    if (!std::regex_search(at, found, line)) continue;
    if (found[1].matched) values[found[1]] = std::stoi(found[2]);
    if (found[3].matched && !values.empty()) out[found[3]].swap(values);
  }
  return out;
}

// Whether none of these enumerations converts to another one, and each holds any int
// (KILN_ENUM_BASE), so that the library may look at a wrong value.
template <class... Enums>
constexpr bool none_converts() {
  static_assert((std::is_same_v<std::underlying_type_t<Enums>, int> && ...));
  const auto one = []<class From>(From*) {
    return ((std::is_same_v<From, Enums> || !std::is_convertible_v<From, Enums>)&&...);
  };
  return (one(static_cast<Enums*>(nullptr)) && ...);
}
static_assert(
    none_converts<kilnStatus_t, kilnDataType_t, kilnTensorFormat_t, kilnConvolutionMode_t,
                  kilnMathMode_t, kilnNanPropagation_t, kilnPoolingMode_t, kilnActivationMode_t,
                  kilnSoftmaxAlgorithm_t, kilnSoftmaxMode_t, kilnOpTensorOp_t, kilnReduceTensorOp_t,
                  kilnDeviceKind_t, kilnKernelOrigin_t, kilnPlanText_t, kilnStandIn_t,
                  kilnNormalizationStatistics_t>());

}  // namespace

BOOST_AUTO_TEST_SUITE(enumeration)

BOOST_AUTO_TEST_CASE(tables_have_every_value_of_the_header) {
  std::map<std::string, std::map<std::string, int>> tables;
  for (const Enumeration& enumeration : all_enumerations())
    for (const Enumerator& value : enumeration.values)
      tables[enumeration.type][value.identifier] = value.value;
  BOOST_TEST(tables.size() == 17u);
  BOOST_TEST((tables == declared()));
}

BOOST_AUTO_TEST_CASE(each_enumeration_has_a_hundred_numbers_of_its_own) {
  std::set<int> hundreds;
  for (const Enumeration& enumeration : all_enumerations()) {
    const int hundred = enumeration.values.front().value / 100;
    BOOST_TEST(hundreds.insert(hundred).second, enumeration.type);
    int last = -1;
    for (const Enumerator& value : enumeration.values) {
      BOOST_TEST(value.value / 100 == hundred, value.identifier);
      BOOST_TEST(value.value > last, value.identifier);
      last = value.value;
    }
  }
}

BOOST_AUTO_TEST_CASE(names_read_back) {
  for (const Enumeration& enumeration : all_enumerations())
    for (const Enumerator& value : enumeration.values) {
      BOOST_TEST(find_enumerator(enumeration, value.value) == &value);
      BOOST_TEST(find_enumerator(enumeration, std::string_view(value.name)) == &value);
    }
  kilnActivationMode_t mode = KILN_ACTIVATION_ELU;
  BOOST_TEST(!parse_name("no such name", mode));
  BOOST_TEST(!parse_name("", mode));
  BOOST_TEST(mode == KILN_ACTIVATION_ELU);
  BOOST_TEST(parse_name("relu", mode));
  BOOST_TEST(mode == KILN_ACTIVATION_RELU);
  BOOST_TEST(name_of(static_cast<kilnDataType_t>(7)) == "?");
  BOOST_TEST(identifier_of(KILN_DATA_HALF) == "KILN_DATA_HALF");
}

BOOST_AUTO_TEST_CASE(a_wrong_value_is_named) {
  const auto fault = [](auto value) { return fault_of([&] { check_enumerator("field", value); }); };
  BOOST_TEST(fault(KILN_TENSOR_NHWC) == "no fault");
  BOOST_TEST(fault(static_cast<kilnTensorFormat_t>(3)) ==
             "field is 3; expected KILN_TENSOR_NCHW (200) or KILN_TENSOR_NHWC (201)");
  BOOST_TEST(fault(static_cast<kilnTensorFormat_t>(KILN_DATA_HALF)) ==
             "field is 102 (KILN_DATA_HALF, a kilnDataType_t); expected KILN_TENSOR_NCHW (200) or "
             "KILN_TENSOR_NHWC (201)");
  BOOST_TEST(fault(static_cast<kilnPlanText_t>(0)) ==
             "field is 0; expected a kilnPlanText_t, KILN_PLAN_PROBLEM (1400) to "
             "KILN_PLAN_ARCHITECTURE (1409)");
}

BOOST_AUTO_TEST_SUITE_END()
