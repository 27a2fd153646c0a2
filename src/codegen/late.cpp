#include "codegen/late.hpp"

#include <bit>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "common/late.h"
#include "core/error.hpp"
#include "core/integer.hpp"

namespace kiln {
namespace {

// After T. Granlund and P. L. Montgomery, Division by Invariant Integers using Multiplication
// (1994), figure 4.1: one form for every divisor, where make_magic() has the shortest for each.
LateDivisor late_divisor(std::uint32_t divisor) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(divisor - 1));  // 2^bits >= divisor
  const std::uint64_t above = (std::uint64_t{1} << bits) - divisor;
  return {divisor, static_cast<std::uint32_t>((above << 32) / divisor + 1), bits > 0 ? 1u : 0u,
          bits > 0 ? bits - 1 : 0};
}

__extension__ typedef unsigned __int128 uint128;

// As make_wide_magic(), with m = ceil(2^(63 + bits) / divisor) in one form for powers of two, too.
LateWideDivisor late_wide_divisor(std::uint64_t divisor) {
  const auto bits = static_cast<std::uint32_t>(std::bit_width(divisor - 1));
  const uint128 power = static_cast<uint128>(1) << (63 + bits);
  return {divisor, static_cast<std::uint64_t>((power + divisor - 1) / divisor), bits, 0};
}

// The bytes of the late constants, in the order of the constants.
class LateBytes {
 public:
  template <class Value>
  std::uint16_t add(const Value& value) {
    while (bytes.size() % alignof(Value) != 0) bytes.push_back({});
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return static_cast<std::uint16_t>(at);
  }
  // Returns whether the value fits into its width; `at` is set to its offset.
  bool add_number(std::int64_t value, bool wide, std::uint16_t& at) {
    if (!wide && value != static_cast<std::int32_t>(value)) return false;
    at = wide ? add(value) : add(static_cast<std::int32_t>(value));
    return true;
  }

  std::vector<std::byte> bytes;
};

// Adds a constant's value and returns what replaces it in the text; none if it does not fit.
struct AddValue {
  LateBytes& bytes;
  const std::string& name;
  Treatment treatment;

  std::optional<LateValue> operator()(std::int64_t value) const {
    if (treatment == Treatment::divisor) {
      if (value < 1 || value > limit32) return std::nullopt;
      return (*this)(MagicDivisor{static_cast<std::uint32_t>(value)});
    }
    LateValue late{number(), false, 0};
    return bytes.add_number(value, wide(), late.offset) ? std::optional(late) : std::nullopt;
  }
  std::optional<LateValue> operator()(const std::vector<std::int64_t>& values) const {
    LateValue late{number(), true, 0};
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t at = 0;
      if (!bytes.add_number(values[i], wide(), at)) return std::nullopt;
      if (i == 0) late.offset = at;
    }
    return late;
  }
  std::optional<LateValue> operator()(bool value) const { return (*this)(std::int64_t{value}); }
  std::optional<LateValue> operator()(const MagicDivisor& value) const {
    return LateValue{LateValue::Kind::divisor, false, bytes.add(late_divisor(value.divisor))};
  }
  std::optional<LateValue> operator()(const WideMagicDivisor& value) const {
    return LateValue{LateValue::Kind::wide_divisor, false,
                     bytes.add(late_wide_divisor(value.divisor))};
  }
  template <class Text>
  std::optional<LateValue> operator()(const Text&) const {
    fail(KILN_STATUS_INTERNAL_ERROR, name, " is text, which cannot be late");
  }

 private:
  bool wide() const { return treatment == Treatment::wide; }
  LateValue::Kind number() const {
    return wide() ? LateValue::Kind::wide_number : LateValue::Kind::number;
  }
};

}  // namespace

bool make_late(Step& step, Treat treat) {
  LateBytes late;
  std::vector<Constant> constants;
  for (const Constant& constant : step.kernel.constants) {
    const Treatment treatment = treat(constant.name);
    if (treatment == Treatment::leave_out) continue;
    constants.push_back(constant);
    if (treatment == Treatment::keep) continue;
    const auto value = std::visit(AddValue{late, constant.name, treatment}, constant.value);
    if (!value) return false;
    constants.back().value = *value;
  }
  // Padded to the alignment of tensor maps, which follow among the parameters.
  std::vector<std::byte>& bytes = late.bytes;
  bytes.resize(static_cast<std::size_t>(
      round_up(static_cast<std::int64_t>(bytes.size()), tensor_map_alignment)));
  const auto moved = static_cast<std::uint16_t>(bytes.size());
  step.kernel.constants = std::move(constants);
  step.kernel.late_bytes = moved;
  bytes.insert(bytes.end(), step.launch.parameters.begin(), step.launch.parameters.end());
  step.launch.parameters = std::move(bytes);
  const auto move = [&](std::uint16_t& offset) {
    offset = static_cast<std::uint16_t>(offset + moved);
  };
  for (LaunchSpec::Patch& patch : step.launch.patches) move(patch.offset);
  for (LaunchSpec::Map& map : step.launch.maps) move(map.offset);
  return true;
}

}  // namespace kiln
