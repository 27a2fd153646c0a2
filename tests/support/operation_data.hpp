// The data of one operation of any kind, and the results that the reference expects. Small integers
// make sums exact in every order, so results are compared for equality; uniform data is compared
// within the reference's bounds.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "reference/element.hpp"
#include "reference/reference.hpp"

namespace test {

using namespace kiln;

inline constexpr DataType all_types[] = {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF,
                                         KILN_DATA_BFLOAT16};

// Stands for the NaN of an element's type whose bits differ from an infinity's only in the last
// one.
inline double least_nan() { return std::nan("1"); }

// An operand's memory as doubles, which stand for elements of its type. All memory is NaN at first,
// including gaps between elements.
struct HostTensor {
  Operand operand;
  std::vector<double> values;

  explicit HostTensor(const Operand& shape)
      : operand(shape), values(static_cast<std::size_t>(shape.span()), std::nan("")) {}

  double& at(std::int64_t index) { return values[static_cast<std::size_t>(operand.offset(index))]; }
  double at(std::int64_t index) const {
    return values[static_cast<std::size_t>(operand.offset(index))];
  }

  // Sets every element to next(), rounded to the type.
  template <class Next>
  void fill(const Next& next) {
    for (std::int64_t i = 0; i < operand.count(); ++i)
      at(i) = reference::round_to_format(next(), reference::format_of(operand.type));
  }
  void fill_integers(unsigned seed, int magnitude);
  void fill_uniform(unsigned seed, double low, double high);

  std::vector<std::byte> bytes() const;
  void read(const std::vector<std::byte>& bytes);
};

// The first difference; "" if all elements are equal, where NaN equals NaN.
std::string difference(const HostTensor& got, const HostTensor& want);

// The data of one problem. The result is NaN at first, so a kernel that reads it with beta 0 is
// found.
struct OperationData {
  Problem problem;
  Scalars scalars;
  std::vector<HostTensor> tensors;  // in the operands' order, the result last

  explicit OperationData(const Problem& p);

  HostTensor& operator[](std::string_view name);
  HostTensor& result() { return tensors.back(); }
  const HostTensor& result() const { return tensors.back(); }

  // Fills the inputs, and the result if beta makes the operation read it.
  void fill_integers(unsigned seed, int magnitude);
  void fill_uniform(unsigned seed, double low = -1, double high = 1);

  // Of the result with that number among the operands; -1: the last one.
  std::vector<reference::Expected> expected_elements(int result = -1) const;

  // The expected result, rounded to its type, with unchanged gaps.
  HostTensor expected() const { return values_of(expected_elements(), nullptr); }

  // The first difference of `got` from `elements`, the reference's; "" if there is none. Where the
  // reference allows two values, either is right.
  std::string exact_fault(const HostTensor& got,
                          const std::vector<reference::Expected>& elements) const;
  std::string exact_fault(const HostTensor& got) const {
    return exact_fault(got, expected_elements());
  }

  // The reference's values. Where it allows two, `got` decides, or the first one is taken if `got`
  // is null.
  HostTensor values_of(const std::vector<reference::Expected>& elements,
                       const HostTensor* got) const;

  // The worst error of `got` beyond the reference's bounds; "" if there is none. NaN and infinities
  // have to match, and gaps between elements must be unchanged. `result` as above.
  std::string fault(const HostTensor& got, int result = -1) const;
};

}  // namespace test
