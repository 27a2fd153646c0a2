// XXH3, in its canonical (big-endian) form: the same digits on every machine.
//
// A cryptographic hash is not needed: each entry contains the full key, which is compared on each
// hit, and only the user can write to the directory.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

namespace kiln::cache {

using Digest = std::array<std::byte, 16>;

Digest hash128(std::span<const std::byte> bytes);
std::string hash128_hex(std::span<const std::byte> bytes);  // 32 digits
std::string hash64_hex(std::span<const std::byte> bytes);   // 16 digits

}  // namespace kiln::cache
