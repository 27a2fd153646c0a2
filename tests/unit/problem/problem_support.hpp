// Shared by the tests of problems.
#pragma once

#include <string>

#include "core/error.hpp"
#include "problem/tensor/operand.hpp"

namespace test {

inline kiln::Tensor tensor(int rank, const kiln::TensorDims& dims,
                           kilnTensorFormat_t format = KILN_TENSOR_NCHW,
                           kilnDataType_t type = KILN_DATA_FLOAT) {
  kiln::Tensor out;
  out.type = type;
  out.rank = rank;
  out.dims = dims;
  out.strides = kiln::dense_strides(format, rank, dims);
  return out;
}

// The message of the error that make() throws.
template <class Make>
std::string fault_of(const Make& make) {
  try {
    make();
  } catch (const kiln::Error& error) {
    return error.what();
  }
  return "no fault";
}

// The part of a message that lists the expected values of an enumeration.
template <class Enum>
std::string expected() {
  const std::string fault = fault_of([] { kiln::check_enumerator("x", static_cast<Enum>(-1)); });
  return fault.substr(fault.find("expected ") + 9);
}

// "dy x dx!": the operands' names, with a mark at the result.
inline std::string names_of(const std::vector<kiln::Operand>& operands) {
  std::string text;
  for (const kiln::Operand& operand : operands)
    text += kiln::cat(text.empty() ? "" : " ", operand.name, operand.written ? "!" : "");
  return text;
}

}  // namespace test
