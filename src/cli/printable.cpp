#include "cli/printable.hpp"

#include <cstddef>

namespace kiln::cli {
namespace {

// Bytes of the UTF-8 sequence that the text begins with; 0 if it begins with none. The shortest
// forms alone, no surrogates, nothing beyond U+10FFFF (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || first > 0xf4) return 0;
  unsigned least = 0x80, most = 0xbf;  // of the second byte
  if (first == 0xe0) least = 0xa0;
  if (first == 0xed) most = 0x9f;
  if (first == 0xf0) least = 0x90;
  if (first == 0xf4) most = 0x8f;
  if (byte(1) < least || byte(1) > most) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  return length;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;  // U+0080 to U+009F
}

std::string escaped(std::string_view text, std::string_view kept) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const std::string_view taken = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(taken.size());
    if (length != 0 && (!is_control(taken) || kept.find(taken) != std::string_view::npos)) {
      out += taken;
      continue;
    }
    for (const char c : taken) {
      const auto byte = static_cast<unsigned char>(c);
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

}  // namespace

std::string printable(std::string_view word) { return escaped(word, ""); }

std::string printable_lines(std::string_view text) { return escaped(text, "\n\t"); }

}  // namespace kiln::cli
