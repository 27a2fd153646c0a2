// One operation's data and what the reference expects of it, whatever its problem and whoever runs
// it. Small integers make sums exact in every order, so that results can be compared for equality;
// uniform data is compared within the reference's own bounds.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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

// The element that `value` stands for.
template <class Element>
Element element_of(double value) {
  if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(least_nan()))
    return reference::from_double<Element>(value);
  auto element = reference::from_double<Element>(std::numeric_limits<double>::infinity());
  auto bytes = std::bit_cast<std::array<unsigned char, sizeof(Element)>>(element);
  ++bytes[0];  // of the lowest byte, which is the first one
  return std::bit_cast<Element>(bytes);
}

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
  void fill_integers(unsigned seed, int magnitude) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> integers(-magnitude, magnitude);
    fill([&] { return integers(random); });
  }
  void fill_uniform(unsigned seed, double low, double high) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(low, high);
    fill([&] { return uniform(random); });
  }

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> out(values.size() * size_of(operand.type));
    reference::with_element(operand.type, [&](auto zero) {
      using Element = decltype(zero);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto element = element_of<Element>(values[i]);
        std::memcpy(out.data() + i * sizeof element, &element, sizeof element);
      }
    });
    return out;
  }
  void read(const std::vector<std::byte>& bytes) {
    reference::with_element(operand.type, [&](auto element) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
        values[i] = reference::to_double(element);
      }
    });
  }
};

// "" if equal, NaN to NaN; otherwise the first difference.
inline std::string difference(const HostTensor& got, const HostTensor& want) {
  std::size_t count = 0, first = 0;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double a = got.values[i], b = want.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  return cat(count, " of ", got.values.size(), " elements differ; the first at offset ", first,
             " is ", got.values[first], ", expected ", want.values[first]);
}

// The data of one problem. The result is NaN before, which proves that beta 0 does not read it.
struct OperationData {
  Problem problem;
  Scalars scalars;
  std::vector<HostTensor> tensors;  // in the operands' order, the result last

  explicit OperationData(const Problem& p) : problem(p) {
    for (const Operand& operand : operands_of(problem)) tensors.emplace_back(operand);
  }

  HostTensor& operator[](std::string_view name) {
    for (HostTensor& tensor : tensors)
      if (tensor.operand.name == name) return tensor;
    fail(KILN_STATUS_INTERNAL_ERROR, "no operand is named ", name);
  }
  HostTensor& result() { return tensors.back(); }
  const HostTensor& result() const { return tensors.back(); }

  // The inputs; and the result too if beta will read it.
  void fill_integers(unsigned seed, int magnitude) {
    for (HostTensor& tensor : tensors)
      if (!tensor.operand.written || scalars.beta != 0) tensor.fill_integers(seed++, magnitude);
  }
  void fill_uniform(unsigned seed, double low = -1, double high = 1) {
    for (HostTensor& tensor : tensors)
      if (!tensor.operand.written || scalars.beta != 0) tensor.fill_uniform(seed++, low, high);
  }

  std::vector<reference::Expected> expected_elements() const {
    std::vector<std::vector<std::byte>> memory;
    for (const HostTensor& tensor : tensors) memory.push_back(tensor.bytes());
    std::vector<const void*> operands;
    for (const auto& bytes : memory) operands.push_back(bytes.data());
    std::vector<std::int64_t> indices(static_cast<std::size_t>(result().operand.count()));
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
    return reference::expect(problem, scalars, operands, indices);
  }

  // The result, rounded to its type; gaps as they were.
  HostTensor expected() const { return values_of(expected_elements(), nullptr); }

  // "" if `got` is exactly what `elements`, the reference's, say: either of two values where both
  // are right.
  std::string exact_fault(const HostTensor& got,
                          const std::vector<reference::Expected>& elements) const {
    return difference(got, values_of(elements, &got));
  }
  std::string exact_fault(const HostTensor& got) const {
    return exact_fault(got, expected_elements());
  }

  // got: whose values decide where two are right; null: the reference's first ones.
  HostTensor values_of(const std::vector<reference::Expected>& elements,
                       const HostTensor* got) const {
    HostTensor out = result();
    const auto format = reference::format_of(out.operand.type);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      out.at(index) = reference::round_to_format(
          got ? elements[i].value_for(got->at(index)) : elements[i].value, format);
    }
    return out;
  }

  // "" if `got` is what the reference expects within its bounds, NaN for NaN and infinity for
  // infinity, and nothing between the elements was touched; otherwise the worst.
  std::string fault(const HostTensor& got) const {
    const std::vector<reference::Expected> elements = expected_elements();
    const auto format = reference::format_of(got.operand.type);
    HostTensor gaps = got;  // what is left of it when the elements are taken out
    double worst = 1;
    std::string text;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto index = static_cast<std::int64_t>(i);
      const double have = got.at(index), value = elements[i].value_for(have);
      gaps.at(index) = std::nan("");
      const double rounded =
          reference::within(got.operand.type, reference::round_to_format(value, format));
      const double bound =
          elements[i].allowed + format.unit_roundoff() * std::fabs(value) + format.smallest() / 2;
      double share = std::fabs(have - value) / bound;
      if (have == rounded || (std::isnan(value) && std::isnan(have))) share = 0;
      if (std::isnan(share)) share = HUGE_VAL;
      if (share <= worst) continue;
      worst = share;
      text = cat(got.operand.name, "[", got.operand.coordinates(index), "] is ", have,
                 ", expected ", value, ", ", share, " times the error allowed");
    }
    for (const double value : gaps.values)
      if (!std::isnan(value)) return "an element between those of the result was written";
    return text;
  }
};

}  // namespace test
