// Small text helpers: cat(...) joins anything printable, join(...) and alternatives(...) a list.
#pragma once

#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

namespace kiln {

namespace detail {
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
// Appends a number; floating point in the fewest digits that read back as the same value.
template <class T>
requires std::is_arithmetic_v<T>
void append(std::string& out, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  } else {
    out += std::to_string(value);
  }
}
}  // namespace detail

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

// join({56, 56}, "x") == "56x56"
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    detail::append(out, item);
  }
  return out;
}

// alternatives({"a", "b", "c"}) == "a, b or c"
template <class Range>
std::string alternatives(const Range& items) {
  std::string out;
  std::size_t left = std::size(items);
  for (const auto& item : items) {
    if (!out.empty()) out += left == 1 ? " or " : ", ";
    detail::append(out, item);
    --left;
  }
  return out;
}

}  // namespace kiln
