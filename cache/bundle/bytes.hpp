// Little-endian integers and length-prefixed strings, the format of entries and of the bytes that
// keys are hashed over. Lengths precede strings, so no two lists of strings give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cache {

class ByteWriter {
 public:
  void integer(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes_.push_back(static_cast<std::byte>(value >> shift & 0xff));
  }
  void string(std::string_view text) { string(std::as_bytes(std::span(text))); }
  void string(std::span<const std::byte> text) {
    integer(text.size());
    raw(text);
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void reserve(std::size_t size) { bytes_.reserve(size); }

  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads the bytes of ByteWriter. Beyond the end it yields zeros and empty strings and remembers the
// failure, so that a caller can read a whole record and check once.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t integer() {
    const auto bytes = raw(8);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i)
      value |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    return value;
  }
  std::span<const std::byte> string() { return raw(integer()); }
  std::span<const std::byte> raw(std::uint64_t size) {
    if (size > rest_.size()) failed_ = true;
    if (failed_) return {};
    const auto bytes = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }

  bool failed() const { return failed_; }
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace kiln::cache
