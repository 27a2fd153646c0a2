#include "cache/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace kiln::cache {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += digits[std::to_integer<unsigned>(b >> 4)];
    text += digits[std::to_integer<unsigned>(b & std::byte{15})];
  }
  return text;
}

}  // namespace

Digest hash128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Digest digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, sizeof digest);
  return digest;
}

std::string hash128_hex(std::span<const std::byte> bytes) { return hex(hash128(bytes)); }

std::string hash64_hex(std::span<const std::byte> bytes) {
  XXH64_canonical_t canonical;
  XXH64_canonicalFromHash(&canonical, XXH3_64bits(bytes.data(), bytes.size()));
  return hex(std::as_bytes(std::span(canonical.digest)));
}

}  // namespace kiln::cache
