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
  std::int64_t used = 0;      // last known use, in seconds since the epoch
};

struct Counters {
  std::uint64_t hits = 0, absent = 0, corrupt = 0, collisions = 0, unreadable = 0, published = 0,
                publish_failures = 0, evicted = 0, evicted_bytes = 0;
};

// Safe to use from any number of threads and processes at once, and across fork(): it never holds a
// lock, and no descriptor between calls.
class DiskStore {
 public:
  // `directory` may be empty (there is no cache) or absent (it is made by the first write). It is
  // unusable if it is another user's, writable by others, or a link, or if its version folder is.
  // The store is then disabled, warns once through `warn`, and every lookup misses. The directory
  // is examined again after each miss and before each write, because it may have been replaced.
  // Never throws.
  //
  // `hash_digits` below 32 shortens the hashes in file names, so that tests can make keys collide.
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

  // Looks an entry up. A hit costs open, fstat, read and close, without a lock or a write. Entries
  // that another user can have written are ignored, and the full key is compared. For a key of any
  // producer, the newest sound entry of its content is found by listing a shard. Throws
  // std::bad_alloc: exhausted memory must not count as a miss, which starts a compilation or, in
  // strict mode, fails.
  Lookup get(const Key& key) const;

  // Publishes an entry by renaming a complete temporary file. Returns false, with one warning for
  // each store, if the system refuses or the key has no producer: a cache that cannot be written
  // is slower, but not wrong.
  bool put(const Key& key, const Entry& entry);

  // The path of the FileLock that a process holds while it makes the entry of `key`; "" if there is
  // no directory.
  std::string lock_path(const Key& key);

  // Removes the least recently used entries until at most `target` bytes are left, then those last
  // used before `unused_since` (seconds since the epoch; 0: none).
  Pruned prune(std::uint64_t target, std::int64_t unused_since = 0);

  // Records the last uses of the entries that were found, and the process's counters ("disk=3
  // ..."). Publishing records uses as well; the end of the process calls this once.
  void flush(std::string_view counts);
  Uses uses() const;

  std::vector<Listing> list() const;  // in order of path
  // Reads a listed entry and, unless null, the content and producer of its key. Not counted.
  Lookup read(const Listing& listing, std::vector<Field>* content, std::string* producer) const;
  // Removes all entries, also unfinished ones, and returns the number of finished ones. Processes
  // that are writing meanwhile still publish their entries. Files whose names are not the cache's
  // stay, and links are not followed.
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
  // Both return "", or the reason of a failure. make_place() makes the folders of an entry.
  std::string publish(const Key& key, const Entry& entry);
  std::string make_place(const EntryName& name);
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
