// The identity of a compiled kernel: everything that decides its bytes, and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

struct Field {
  std::string name, value;
  friend bool operator==(const Field&, const Field&) = default;
};

// Content, never places or times: no path, user, clock, locale or device ordinal belongs in a key.
//
// `content` fields name the kernel (source text, options, architecture); `producer` names the exact
// compiler build. The two are hashed apart, so that a machine without the compiler can still find
// the kernel by its content alone. An empty producer means "any".
class Key {
 public:
  Key(std::vector<Field> content, std::string producer);

  const std::vector<Field>& content() const { return content_; }
  const std::string& producer() const { return producer_; }
  const std::string& content_hash() const { return content_hash_; }    // 32 hex digits
  const std::string& producer_hash() const { return producer_hash_; }  // 16 hex digits; "" for any
  std::string text() const;  // content_hash[-producer_hash], what people are shown

 private:
  std::vector<Field> content_;
  std::string producer_, content_hash_, producer_hash_;
};

}  // namespace kiln::cache
