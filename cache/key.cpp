#include "cache/key.hpp"

#include <utility>

#include "cache/bundle/bytes.hpp"
#include "cache/hash.hpp"

namespace kiln::cache {
namespace {

std::string hash_of(const std::vector<Field>& content) {
  ByteWriter text;
  text.integer(content.size());
  for (const Field& field : content) {
    text.string(field.name);
    text.string(field.value);
  }
  return hash128_hex(text.bytes());
}

}  // namespace

Key::Key(std::vector<Field> content, std::string producer)
    : content_(std::move(content)),
      producer_(std::move(producer)),
      content_hash_(hash_of(content_)),
      producer_hash_(producer_.empty() ? "" : hash64_hex(std::as_bytes(std::span(producer_)))) {}

std::string Key::text() const {
  return producer_hash_.empty() ? content_hash_ : content_hash_ + "-" + producer_hash_;
}

}  // namespace kiln::cache
