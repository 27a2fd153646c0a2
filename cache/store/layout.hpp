// The files in the cache's directory, and their names:
//
//   v1/ab/abcdef...-0123....kiln   an entry: content hash, producer hash; its shard is "ab"
//   v1/ab/tmp-4711-89ab...         an entry being written by process 4711
//   v1/ab/lock-abcdef...-0123...   the lock of the process that makes this entry
//   v1/size                        the total size that writers keep
//   v1/uses                        when entries were last used
//   tuning, tuning.lock            results of `kiln tune` (plan/tuning.hpp), not the cache's own
#pragma once

#include <string>
#include <string_view>

#include "cache/key.hpp"

namespace kiln::cache {

inline constexpr std::string_view version_directory = "v1", total_name = "size",
                                  use_log_name = "uses";
inline constexpr int content_hash_digits = 32, producer_hash_digits = 16, shard_digits = 2;

struct EntryName {
  std::string content_hash, producer_hash;  // producer_hash empty: any

  std::string shard() const { return content_hash.substr(0, shard_digits); }
  std::string stem() const { return content_hash + "-" + producer_hash; }
  std::string file() const { return stem() + ".kiln"; }
  std::string lock() const { return "lock-" + stem(); }
};

// The name of a key's entry. Only the first hash_digits digits of both hashes are kept, the others
// become zeros, so that tests can make keys collide.
EntryName entry_name(const Key& key, int hash_digits);

bool parse_entry_name(std::string_view file, EntryName& name);
bool is_temporary_name(std::string_view file);
bool is_lock_name(std::string_view file);
bool is_shard_name(std::string_view directory);

// A name that no other process or thread has, on this machine or on those that share the directory.
std::string temporary_name();

}  // namespace kiln::cache
