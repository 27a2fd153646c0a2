// Addresses as text.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace kiln {

// hexadecimal(0x7f00) == "0x7f00"
inline std::string hexadecimal(std::uintptr_t address) {
  char digits[16];
  return "0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, address, 16).ptr);
}
inline std::string hexadecimal(const void* address) {
  return hexadecimal(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace kiln
