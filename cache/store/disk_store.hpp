// The user's kernel cache on disk: one self-contained, checksummed file per kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/key.hpp"
#include "cache/store/budget.hpp"
#include "cache/store/layout.hpp"
#include "cache/store/use_log.hpp"

namespace kiln::cache {

struct Section {
  std::string name;  // "binary", "ptx", "log", ...
  std::vector<std::byte> bytes;
};

struct Entry {
  std::vector<Section> sections;
  const Section* find(std::string_view name) const;
};

enum class Miss {
  none,        // a hit
  absent,      // no such file
  corrupt,     // wrong size, magic, version or checksum: will be rewritten
  collision,   // a sound entry of another key under the same name
  unreadable,  // the system refused: see detail
  disabled     // the directory is unusable
};
const char* name_of(Miss miss);

struct Lookup {
  std::optional<Entry> entry;
  Miss miss = Miss::absent;
  std::string detail;
  std::string producer{};  // of the entry
};

struct Listing {
  std::string path, content_hash, producer_hash;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // seconds since the epoch
  std::int64_t used = 0;      // likewise, for the last time, as far as is known
};

struct Counters {
  std::uint64_t hits = 0, absent = 0, corrupt = 0, collisions = 0, unreadable = 0, published = 0,
                publish_failures = 0, evicted = 0, evicted_bytes = 0;
};

// Safe to use from any number of threads and processes at once, across fork() too: between calls it
// holds no descriptor and at no time a lock.
class DiskStore {
 public:
  // `directory` may be empty (no place for a cache), absent (made when first written), or unusable
  // (another user's, writable by others, a link, or one with such a version folder inside): the
  // store is then disabled, says so once through `warn`, and every lookup misses. It is examined
  // again after each miss and before each write: it may be another one by then. Never throws.
  //
  // `hash_digits` below 32 shortens the hashes in file names: a test's way to make keys collide.
  using Warn = std::function<void(std::string_view)>;
  DiskStore(std::string directory, Warn warn, int hash_digits = content_hash_digits);
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  // The size that publishing keeps the cache below by evicting the least recently used entries; 0,
  // the default: unlimited, and uses are not recorded. To be set before the store is used.
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }
  std::uint64_t limit() const { return limit_; }

  const std::string& directory() const { return directory_; }  // absolute
  bool usable() const { return refusal_.load() == nullptr; }
  std::string why_unusable() const;

  // A hit costs open, fstat, read, close: no lock, no write. An entry that another user can have
  // written is none, and the full key is compared. A key of any producer finds the newest sound
  // entry of its content, for the price of a look through a shard. Throws std::bad_alloc: want of
  // memory is no miss, which would be compiled for, or in strict mode refused.
  Lookup get(const Key& key) const;

  // Publishes by rename of a complete private file. False, and one warning a store, if the system
  // refuses or the key names no producer: a cache that cannot be written is slower, never wrong.
  bool put(const Key& key, const Entry& entry);

  // Path of the FileLock that the process which makes the entry of `key` holds meanwhile; "" if
  // there is no directory.
  std::string lock_path(const Key& key);

  // Removes entries, those unused for longest first, until `target` bytes are left, and those last
  // used before `unused_since`.
  Pruned prune(std::uint64_t target, std::int64_t unused_since = 0);

  // Writes down when the entries found were used, and what the process counted ("disk=3 ...").
  // Publishing does it as well; a process that only reads calls it once, at its end.
  void flush(std::string_view counts);
  Uses uses() const;

  std::vector<Listing> list() const;  // in order of path
  // A listed entry with the key it carries (null: not wanted). Not counted.
  Lookup read(const Listing& listing, std::vector<Field>* content, std::string* producer) const;
  // Removes every entry, unfinished ones too; how many finished ones. A writer at work meanwhile
  // publishes all the same. What is not recognizably the cache's stays, and links are not followed.
  std::uint64_t clear();
  Counters counters() const;

 private:
  using Count = std::atomic<std::uint64_t>;

  bool examine_folders() const;
  void refuse(const std::string& path, std::string_view reason) const;
  void warn_once(const std::string& text) const;
  void count(Miss miss) const;
  std::string shard_path(const EntryName& name) const;
  Lookup find(const Key& key) const;
  Lookup find_newest(const Key& key, const EntryName& name) const;
  Lookup find_named(const Key& key, const EntryName& name) const;
  std::string publish(const Key& key, const Entry& entry);  // empty, or why not
  std::string make_place(const EntryName& name);            // for an entry; empty, or why not
  void add_to(Pruned pruned);

  std::string directory_;
  Warn warn_;
  int hash_digits_;
  std::uint64_t limit_ = 0;
  mutable UseLog use_log_;
  mutable std::atomic<bool> sound_{false}, warned_{false};
  mutable std::atomic<uid_t> owner_{0};  // of the folders, when they were sound
  // Set at most once and then kept, so that it may be read without a lock.
  mutable std::atomic<const std::string*> refusal_{nullptr};
  mutable Count hits_{0}, absent_{0}, corrupt_{0}, collisions_{0}, unreadable_{0};
  Count published_{0}, publish_failures_{0}, evicted_{0}, evicted_bytes_{0};
};

}  // namespace kiln::cache
