// Limits the cache's size: every writer adds its entry's size to a running total before it writes
// the entry, and evicts the least recently used entries if the total exceeds the limit.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "cache/store/layout.hpp"
#include "cache/store/use_log.hpp"

namespace kiln::cache {

// An entry's last use in seconds since the epoch: the latest of its publication, its access time
// (which most file systems keep to within a day) and its use in the log.
std::int64_t last_use(const struct stat& status, const EntryName& name, const Uses& uses);

struct Pruned {
  std::uint64_t entries = 0, bytes = 0;            // removed
  std::uint64_t entries_left = 0, bytes_left = 0;  // bytes_left includes unfinished entries
};

// Removes the least recently used entries until at most `target` bytes are left, then those last
// used before `unused_since` (seconds since the epoch; 0: none), orphans and abandoned locks.
Pruned prune(const std::string& version_path, std::uint64_t target, std::int64_t unused_since = 0);

// Makes room for `bytes` more below `limit`: adds them to the total in the file "size", and if that
// exceeds the limit, evicts down to nine tenths of it, so that most publications need not list the
// directory. The total may be too large (an entry that is replaced counts twice, and failed ones
// count as well) until the next eviction counts the files. That does not see entries that other
// writers are about to write, so the limit may be exceeded by one entry per writer.
//
// The lock on the file only avoids duplicate work: without it after two seconds, a writer evicts
// nonetheless.
Pruned make_room(const std::string& version_path, std::uint64_t bytes, std::uint64_t limit);

}  // namespace kiln::cache
