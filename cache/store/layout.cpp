#include "cache/store/layout.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace kiln::cache {
namespace {

constexpr std::string_view suffix = ".kiln", temporary_prefix = "tmp-";

bool all_of(std::string_view text, std::string_view alphabet) {
  return !text.empty() && text.find_first_not_of(alphabet) == std::string_view::npos;
}
bool is_hex(std::string_view text) { return all_of(text, "0123456789abcdef"); }
bool is_decimal(std::string_view text) { return all_of(text, "0123456789"); }

std::string cut(std::string hash, int digits) {
  if (const auto keep = static_cast<std::size_t>(digits); keep < hash.size())
    std::fill(hash.begin() + digits, hash.end(), '0');
  return hash;
}

}  // namespace

EntryName entry_name(const Key& key, int hash_digits) {
  return {cut(key.content_hash(), hash_digits), cut(key.producer_hash(), hash_digits)};
}

bool parse_entry_name(std::string_view file, EntryName& name) {
  if (file.size() != content_hash_digits + 1 + producer_hash_digits + suffix.size()) return false;
  const auto content = file.substr(0, content_hash_digits);
  const auto producer = file.substr(content_hash_digits + 1, producer_hash_digits);
  if (!is_hex(content) || file[content_hash_digits] != '-' || !is_hex(producer)) return false;
  if (!file.ends_with(suffix)) return false;
  name = {std::string(content), std::string(producer)};
  return true;
}

bool is_temporary_name(std::string_view file) {
  if (!file.starts_with(temporary_prefix)) return false;
  file.remove_prefix(temporary_prefix.size());
  const auto dash = file.find('-');
  if (dash == std::string_view::npos) return false;
  const auto token = file.substr(dash + 1);
  return is_decimal(file.substr(0, dash)) && token.size() == 16 && is_hex(token);
}

bool is_lock_name(std::string_view file) {
  constexpr std::string_view prefix = "lock-";
  EntryName name;
  return file.starts_with(prefix) &&
         parse_entry_name(std::string(file.substr(prefix.size())) + std::string(suffix), name);
}

bool is_shard_name(std::string_view directory) {
  return directory.size() == shard_digits && is_hex(directory);
}

std::string temporary_name() {
  std::uint64_t token = 0;
  if (getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) {
    // There may be no random numbers (early in a boot, or in a jail). Then the clock and a counter
    // distinguish threads of a process, and the process number distinguishes processes. If a name
    // is taken nonetheless, O_EXCL finds it.
    static std::atomic<std::uint64_t> count{0};
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    token = static_cast<std::uint64_t>(now) * 0x9e3779b97f4a7c15u + count++;
  }
  char name[64];
  std::snprintf(name, sizeof name, "%s%ld-%016llx", temporary_prefix.data(),
                static_cast<long>(getpid()), static_cast<unsigned long long>(token));
  return name;
}

}  // namespace kiln::cache
