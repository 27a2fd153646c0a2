// Elements of every data type as doubles and back, for the reference and its checks: written for
// exactness, and apart from the kernels' own conversions, which it helps to check.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/error.hpp"
#include "problem/types.hpp"

namespace kiln::reference {

struct Half {
  std::uint16_t bits = 0;
};
struct Bfloat16 {
  std::uint16_t bits = 0;
};

// A binary format by its number of significant bits (the hidden one included) and its smallest
// normal exponent: unit roundoff 2^-precision, smallest subnormal 2^(min_exponent - precision + 1).
struct Format {
  int precision, min_exponent;
  double unit_roundoff() const { return std::ldexp(1.0, -precision); }
  double smallest() const { return std::ldexp(1.0, min_exponent - precision + 1); }
};

inline Format format_of(DataType type) {
  switch (type) {
    case KILN_DATA_FLOAT: return {24, -126};
    case KILN_DATA_DOUBLE: return {53, -1022};
    case KILN_DATA_HALF: return {11, -14};
    case KILN_DATA_BFLOAT16: return {8, -126};
  }
  fail(KILN_STATUS_INTERNAL_ERROR, "no format of data type ", static_cast<int>(type));
}

// The largest finite number.
inline double largest_of(DataType type) {
  switch (type) {
    case KILN_DATA_FLOAT: return 0x1.fffffep127;
    case KILN_DATA_DOUBLE: return 0x1.fffffffffffffp1023;
    case KILN_DATA_HALF: return 65504;
    case KILN_DATA_BFLOAT16: return 0x1.fep127;
  }
  fail(KILN_STATUS_INTERNAL_ERROR, "no largest number of data type ", static_cast<int>(type));
}

// What is beyond a type's largest number is infinite.
inline double within(DataType type, double value) {
  return std::fabs(value) > largest_of(type) ? std::copysign(HUGE_VAL, value) : value;
}

inline double to_double(double value) { return value; }
inline double to_double(float value) { return value; }

// bfloat16 is the upper half of a float.
inline double to_double(Bfloat16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// Moved to where a double has them, exponent and fraction mean 2^(15 - 1023) times the value, the
// subnormal ones too; the largest exponent is the infinity's and the NaNs'.
inline double to_double(Half value) {
  const std::uint64_t magnitude = value.bits & 0x7fff, sign = value.bits >> 15;
  const double scaled = std::bit_cast<double>(sign << 63 | magnitude << 42) * 0x1p1008;
  if (magnitude < 0x7c00) return scaled;
  return magnitude == 0x7c00 ? std::copysign(HUGE_VAL, scaled) : std::nan("");
}

// Rounds to nearest even, in the format's normal and subnormal range; does not overflow to
// infinity.
inline double round_to_format(double value, Format format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const int unit = exponent - format.precision + 1;
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

template <class T>
T from_double(double value);
template <>
inline double from_double<double>(double value) {
  return value;
}
template <>
inline float from_double<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline Bfloat16 from_double<Bfloat16>(double value) {
  const auto rounded = static_cast<float>(round_to_format(value, format_of(KILN_DATA_BFLOAT16)));
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded) >> 16)};
}
template <>
inline Half from_double<Half>(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(round_to_format(value, format_of(KILN_DATA_HALF)));
  std::uint16_t bits;
  if (std::isnan(magnitude)) {
    bits = 0x7e00;
  } else if (magnitude >= 65536.0) {
    bits = 0x7c00;
  } else if (magnitude < 0x1p-14) {  // subnormal: a count of 2^-24
    bits = static_cast<std::uint16_t>(std::ldexp(magnitude, 24));
  } else {
    const int exponent = std::ilogb(magnitude);
    const auto significand = static_cast<int>(std::ldexp(magnitude, 10 - exponent));
    bits = static_cast<std::uint16_t>((exponent + 14) * 1024 + significand);
  }
  return {static_cast<std::uint16_t>(sign | bits)};
}

// Calls `function` with a value of the C++ type that holds `type`.
template <class Function>
decltype(auto) with_element(DataType type, Function&& function) {
  switch (type) {
    case KILN_DATA_FLOAT: return function(float{});
    case KILN_DATA_DOUBLE: return function(double{});
    case KILN_DATA_HALF: return function(Half{});
    case KILN_DATA_BFLOAT16: return function(Bfloat16{});
  }
  fail(KILN_STATUS_INTERNAL_ERROR, "no element of data type ", static_cast<int>(type));
}

}  // namespace kiln::reference
