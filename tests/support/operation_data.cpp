#include "support/operation_data.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "reference/element.hpp"

namespace test {

namespace {

// The element of a type that `value` stands for.
template <class Element>
Element element_of(double value) {
  if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(least_nan()))
    return reference::from_double<Element>(value);
  auto element = reference::from_double<Element>(std::numeric_limits<double>::infinity());
  auto bytes = std::bit_cast<std::array<unsigned char, sizeof(Element)>>(element);
  ++bytes[0];  // the lowest byte comes first
  return std::bit_cast<Element>(bytes);
}

}  // namespace

void HostTensor::fill_integers(unsigned seed, int magnitude) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> integers(-magnitude, magnitude);
  fill([&] { return integers(random); });
}

void HostTensor::fill_uniform(unsigned seed, double low, double high) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  fill([&] { return uniform(random); });
}

std::vector<std::byte> HostTensor::bytes() const {
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

void HostTensor::read(const std::vector<std::byte>& bytes) {
  reference::with_element(operand.type, [&](auto element) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
      values[i] = reference::to_double(element);
    }
  });
}

std::string difference(const HostTensor& got, const HostTensor& want) {
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

OperationData::OperationData(const Problem& p) : problem(p) {
  for (const Operand& operand : operands_of(problem)) tensors.emplace_back(operand);
}

HostTensor& OperationData::operator[](std::string_view name) {
  for (HostTensor& tensor : tensors)
    if (tensor.operand.name == name) return tensor;
  fail(KILN_STATUS_INTERNAL_ERROR, "no operand is named ", name);
}

void OperationData::fill_integers(unsigned seed, int magnitude) {
  for (HostTensor& tensor : tensors)
    if (!tensor.operand.written || scalars.beta != 0) tensor.fill_integers(seed++, magnitude);
}

void OperationData::fill_uniform(unsigned seed, double low, double high) {
  for (HostTensor& tensor : tensors)
    if (!tensor.operand.written || scalars.beta != 0) tensor.fill_uniform(seed++, low, high);
}

std::vector<reference::Expected> OperationData::expected_elements(int number) const {
  std::vector<std::vector<std::byte>> memory;
  for (const HostTensor& tensor : tensors) memory.push_back(tensor.bytes());
  std::vector<const void*> operands;
  for (const auto& bytes : memory) operands.push_back(bytes.data());
  const HostTensor& of = number < 0 ? result() : tensors[static_cast<std::size_t>(number)];
  std::vector<std::int64_t> indices(static_cast<std::size_t>(of.operand.count()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  return reference::expect(problem, scalars, operands, indices, 0, number);
}

HostTensor OperationData::values_of(const std::vector<reference::Expected>& elements,
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

std::string OperationData::fault(const HostTensor& got, int number) const {
  const std::vector<reference::Expected> elements = expected_elements(number);
  const auto format = reference::format_of(got.operand.type);
  HostTensor gaps = got;  // the gaps between elements, after these are replaced
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
    text = cat(got.operand.name, "[", got.operand.coordinates(index), "] is ", have, ", expected ",
               value, ", ", share, " times the error allowed");
  }
  for (const double value : gaps.values)
    if (!std::isnan(value)) return "an element between those of the result was written";
  return text;
}

std::string OperationData::exact_fault(const HostTensor& got,
                                       const std::vector<reference::Expected>& elements) const {
  return difference(got, values_of(elements, &got));
}

}  // namespace test
