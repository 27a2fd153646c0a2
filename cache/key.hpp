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

// A key depends on no path, user, clock, locale or device ordinal.
//
// The `content` fields describe the kernel (source text, options, architecture); `producer` names
// the exact compiler build. They are hashed separately, so that a machine without the compiler can
// find the kernel by its content. An empty producer means any producer.
class Key {
 public:
  Key(std::vector<Field> content, std::string producer);

  const std::vector<Field>& content() const { return content_; }
  const std::string& producer() const { return producer_; }
  const std::string& content_hash() const { return content_hash_; }    // 32 hex digits
  const std::string& producer_hash() const { return producer_hash_; }  // 16 hex digits; "" for any
  std::string text() const;  // content_hash[-producer_hash], for people

 private:
  std::vector<Field> content_;
  std::string producer_, content_hash_, producer_hash_;
};

}  // namespace kiln::cache
