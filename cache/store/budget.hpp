// The size that a cache may have: a running total that every writer adds its entry to before it
// writes it, and eviction of the least recently used when the total is over.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "cache/store/layout.hpp"
#include "cache/store/use_log.hpp"

namespace kiln::cache {

// In seconds since the epoch: the latest of publication, access time (which most file systems keep
// to a day, at no cost to anybody) and what the use log says.
std::int64_t last_use(const struct stat& status, const EntryName& name, const Uses& uses);

struct Pruned {
  std::uint64_t entries = 0, bytes = 0;            // removed
  std::uint64_t entries_left = 0, bytes_left = 0;  // unfinished ones count as bytes
};

// Removes the least recently used entries until at most `target` bytes are left, then those last
// used before `unused_since` (seconds since the epoch; 0: none), orphans and abandoned locks.
Pruned prune(const std::string& version_path, std::uint64_t target, std::int64_t unused_since = 0);

// Makes room for `bytes` more below `limit`: adds them to the total in the file "size", and evicts
// down to nine tenths of the limit where that would be over it, so that most publications cost no
// look through the directory. The total errs upwards alone (an entry written over counts twice, one
// that failed counts too) until the next eviction counts what there is; entries that other writers
// are at work on then are not seen, which is why the limit may be passed by one entry a writer.
//
// The lock on the file saves work: whoever cannot have it in two seconds evicts without.
Pruned make_room(const std::string& version_path, std::uint64_t bytes, std::uint64_t limit);

}  // namespace kiln::cache
