// Reads values and texts from the bytes of an ELF file, which may be truncated or malicious:
// whatever is beyond the end reads as zeros or empty strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace kiln {

using ElfBytes = std::span<const std::byte>;

inline ElfBytes elf_part(ElfBytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.subspan(offset, size);
}

template <class Value>
Value elf_value(ElfBytes bytes, std::uint64_t offset) {
  Value value{};
  if (const ElfBytes found = elf_part(bytes, offset, sizeof value); !found.empty())
    std::memcpy(&value, found.data(), sizeof value);
  return value;
}

// The text at an offset of a table of zero-terminated texts; "" beyond its end.
inline std::string_view elf_text(ElfBytes table, std::uint64_t offset) {
  if (offset >= table.size()) return "";
  const auto* text = reinterpret_cast<const char*>(table.data()) + offset;
  return {text, strnlen(text, table.size() - offset)};
}

}  // namespace kiln
