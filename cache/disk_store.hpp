// The user's kernel cache on disk: one self-contained, checksummed file per kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/key.hpp"

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
};

struct Listing {
  std::string path, content_hash, producer_hash;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // seconds since the epoch
};

struct Counters {
  std::uint64_t hits = 0, absent = 0, corrupt = 0, collisions = 0, unreadable = 0, published = 0,
                publish_failures = 0;
};

class DiskStore {
 public:
  // `directory` may be empty (no place for a cache), absent (made when first written), or unusable
  // (another user's, writable by others, a link): the store is then disabled, says so once through
  // `warn`, and every lookup misses. Never throws.
  using Warn = std::function<void(std::string_view)>;
  DiskStore(std::string directory, Warn warn);

  const std::string& directory() const;
  bool usable() const;
  std::string why_unusable() const;

  // A hit costs open, read, close: no lock, no write.
  Lookup get(const Key& key) const;

  // Publishes by rename of a complete private file. False, and one warning a process, if the system
  // refuses: a cache that cannot be written is slower, never wrong.
  bool put(const Key& key, const Entry& entry);

  std::vector<Listing> list() const;
  Lookup read(const Listing& listing, std::vector<Field>* content, std::string* producer) const;
  std::uint64_t clear();  // removes every entry; how many
  Counters counters() const;
};

}  // namespace kiln::cache
