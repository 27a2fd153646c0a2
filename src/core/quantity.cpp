#include "core/quantity.hpp"

#include <charconv>
#include <string>

namespace kiln {

bool parse_bytes(std::string_view text, std::uint64_t& bytes) {
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop == text.data()) return false;
  std::string upper;
  for (const char c : text.substr(static_cast<std::size_t>(stop - text.data())))
    upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  std::string_view unit = upper;
  if (unit.ends_with("IB")) {
    unit.remove_suffix(2);
    if (unit.empty()) return false;
  } else if (unit.ends_with("B")) {
    unit.remove_suffix(1);
  }
  int shift = 0;
  if (!unit.empty()) {
    const std::size_t power = std::string_view("KMGT").find(unit);
    if (unit.size() != 1 || power == std::string_view::npos) return false;
    shift = 10 * (static_cast<int>(power) + 1);
  }
  if (number > ((std::uint64_t{1} << 63) - 1) >> shift) return false;
  bytes = number << shift;
  return true;
}

}  // namespace kiln
