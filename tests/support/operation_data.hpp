// One operation's data and what the reference expects of it, whatever its problem and whoever runs
// it. Small integers make sums exact in every order, so that results can be compared for equality;
// uniform data is compared within the reference's own bounds.
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

// Stands for the NaN of an element's type whose bits are an infinity's but for the last one.
inline double least_nan() { return std::nan("1"); }

// An operand's memory as doubles that stand for elements of its type; NaN to begin with, in the
// gaps between elements too.
struct HostTensor {
  Operand operand;
  std::vector<double> values;

  explicit HostTensor(const Operand& shape)
      : operand(shape), values(static_cast<std::size_t>(shape.span()), std::nan("")) {}

  double& at(std::int64_t index) { return values[static_cast<std::size_t>(operand.offset(index))]; }
  double at(std::int64_t index) const {
    return values[static_cast<std::size_t>(operand.offset(index))];
  }

  // Every element from next(), rounded to the type.
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

// "" if equal, NaN to NaN; otherwise the first difference.
std::string difference(const HostTensor& got, const HostTensor& want);

// The data of one problem. The result is NaN before, which proves that beta 0 does not read it.
struct OperationData {
  Problem problem;
  Scalars scalars;
  std::vector<HostTensor> tensors;  // in the operands' order, the result last

  explicit OperationData(const Problem& p);

  HostTensor& operator[](std::string_view name);
  HostTensor& result() { return tensors.back(); }
  const HostTensor& result() const { return tensors.back(); }

  // The inputs; and the result too if beta will read it.
  void fill_integers(unsigned seed, int magnitude);
  void fill_uniform(unsigned seed, double low = -1, double high = 1);

  std::vector<reference::Expected> expected_elements() const;

  // The result, rounded to its type; gaps as they were.
  HostTensor expected() const { return values_of(expected_elements(), nullptr); }

  // "" if `got` is exactly what `elements`, the reference's, say: either of two values where both
  // are right.
  std::string exact_fault(const HostTensor& got,
                          const std::vector<reference::Expected>& elements) const;
  std::string exact_fault(const HostTensor& got) const {
    return exact_fault(got, expected_elements());
  }

  // got: whose values decide where two are right; null: the reference's first ones.
  HostTensor values_of(const std::vector<reference::Expected>& elements,
                       const HostTensor* got) const;

  // "" if `got` is what the reference expects within its bounds, NaN for NaN and infinity for
  // infinity, and nothing between the elements was touched; otherwise the worst.
  std::string fault(const HostTensor& got) const;
};

}  // namespace test
