// Records when entries were last used and what processes counted, without a write for each hit: a
// hit adds its name to a list in memory, which publishing and the end of the process append to a
// text file beside the shards, in one write:
//
//   used 1763712000 0123...-89ab...          an entry, and its last use (seconds since the epoch)
//   counted 1763712000 disk=12 compiled=3    the counters of one process
//
// The file is a hint: an incomplete or lost line only makes eviction choose a less suitable entry.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cache/store/layout.hpp"

namespace kiln::cache {

class UseLog {
 public:
  UseLog() = default;
  ~UseLog();
  UseLog(const UseLog&) = delete;
  UseLog& operator=(const UseLog&) = delete;

  void note(const EntryName& name);  // no lock, no system call

  // Appends the noted names, and `counts` ("disk=12 compiled=3") unless empty, to the file in
  // `version_path`. If that fails, they are lost.
  void flush(const std::string& version_path, std::string_view counts);

 private:
  struct Note;
  std::atomic<Note*> noted_{nullptr};
  std::atomic<int> count_{0};
};

struct Uses {
  std::map<std::string, std::int64_t> last;     // by the entry's file name without its suffix
  std::map<std::string, std::uint64_t> counts;  // summed over processes
  std::int64_t since = 0;                       // time of the oldest count; 0: there is none
};
Uses read_uses(const std::string& version_path);

// Replaces the file by one that has each of these uses once.
void rewrite_uses(const std::string& version_path, const Uses& uses);

}  // namespace kiln::cache
