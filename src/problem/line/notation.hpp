// The letters of problem lines, and blanks, for parsing and printing.
#pragma once

#include <string_view>

namespace kiln {

// The six values of every spatial dimension. An entry's first letter names one of them, its second
// letter the dimension.
enum Kind : int { in, out, filter, stride, pad, dilation, kinds };
inline constexpr std::string_view kind_letters = "iokspd";
inline constexpr std::string_view axis_letters = "dhw";

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline std::string_view trim_end(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace kiln
