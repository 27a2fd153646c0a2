// The enumerations of kiln.h as tables, which define the names of their values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/kiln.h"

namespace kiln {

struct Enumerator {
  int value;
  const char* identifier;  // "KILN_ACTIVATION_RELU"
  const char* name;        // in problem lines, options and output: "relu"
};

struct Enumeration {
  const char* type;                    // "kilnActivationMode_t"
  std::span<const Enumerator> values;  // ascending
};

std::span<const Enumeration> all_enumerations();

// The table of the argument's type.
const Enumeration& enumeration_of(kilnStatus_t);
const Enumeration& enumeration_of(kilnDataType_t);
const Enumeration& enumeration_of(kilnTensorFormat_t);
const Enumeration& enumeration_of(kilnConvolutionMode_t);
const Enumeration& enumeration_of(kilnMathMode_t);
const Enumeration& enumeration_of(kilnNanPropagation_t);
const Enumeration& enumeration_of(kilnPoolingMode_t);
const Enumeration& enumeration_of(kilnActivationMode_t);
const Enumeration& enumeration_of(kilnSoftmaxAlgorithm_t);
const Enumeration& enumeration_of(kilnSoftmaxMode_t);
const Enumeration& enumeration_of(kilnOpTensorOp_t);
const Enumeration& enumeration_of(kilnReduceTensorOp_t);
const Enumeration& enumeration_of(kilnDeviceKind_t);
const Enumeration& enumeration_of(kilnKernelOrigin_t);
const Enumeration& enumeration_of(kilnPlanText_t);
const Enumeration& enumeration_of(kilnStandIn_t);
const Enumeration& enumeration_of(kilnNormalizationStatistics_t);

template <class Enum>
concept PublicEnum = requires(Enum value) {
  enumeration_of(value);
};

// The enumerator with a value or name; null if there is none.
const Enumerator* find_enumerator(const Enumeration& enumeration, int value);
const Enumerator* find_enumerator(const Enumeration& enumeration, std::string_view name);

// Throws BAD_PARAM: "field is 100 (KILN_DATA_FLOAT, a kilnDataType_t); expected KILN_TENSOR_NCHW
// ..."
[[noreturn]] void refuse_enumerator(const Enumeration& enumeration, std::string_view field,
                                    int value);

// Throws BAD_PARAM naming `field` unless the value is one of its enumeration.
template <PublicEnum Enum>
void check_enumerator(std::string_view field, Enum value) {
  const Enumeration& enumeration = enumeration_of(value);
  if (find_enumerator(enumeration, static_cast<int>(value)) == nullptr)
    refuse_enumerator(enumeration, field, static_cast<int>(value));
}

// "relu"; "?" for a value that the enumeration does not have.
template <PublicEnum Enum>
std::string_view name_of(Enum value) {
  const Enumerator* found = find_enumerator(enumeration_of(value), static_cast<int>(value));
  return found != nullptr ? found->name : "?";
}

// "KILN_ACTIVATION_RELU"; "?" for a value that the enumeration does not have.
template <PublicEnum Enum>
std::string_view identifier_of(Enum value) {
  const Enumerator* found = find_enumerator(enumeration_of(value), static_cast<int>(value));
  return found != nullptr ? found->identifier : "?";
}

// Sets `value` to the one with this name. Returns false and leaves it unchanged if there is none.
template <PublicEnum Enum>
bool parse_name(std::string_view name, Enum& value) {
  const Enumerator* found = find_enumerator(enumeration_of(value), name);
  if (found != nullptr) value = static_cast<Enum>(found->value);
  return found != nullptr;
}

template <PublicEnum Enum>
std::vector<Enum> all_of() {
  std::vector<Enum> all;
  for (const Enumerator& enumerator : enumeration_of(Enum{}).values)
    all.push_back(static_cast<Enum>(enumerator.value));
  return all;
}

template <PublicEnum Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const Enumerator& enumerator : enumeration_of(Enum{}).values)
    names.emplace_back(enumerator.name);
  return names;
}

}  // namespace kiln
