// When entries were last used, and what a process counted, without a write on any hit: a hit puts
// its name on a list in memory, and publishing or the end of the process appends the list, in one
// write, to a text file beside the shards:
//
//   used 1763712000 0123...-89ab...          an entry, and when (seconds since the epoch)
//   counted 1763712000 disk=12 compiled=3    what one process counted
//
// The file is a hint: a line that is torn or lost only makes eviction take an entry at the wrong
// time.
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

  // Appends what was noted, and `counts` ("disk=12 compiled=3") unless empty, to the file in
  // `version_path`. A failure loses it.
  void flush(const std::string& version_path, std::string_view counts);

 private:
  struct Note;
  std::atomic<Note*> noted_{nullptr};
  std::atomic<int> count_{0};
};

struct Uses {
  std::map<std::string, std::int64_t> last;     // by the entry's file name without its suffix
  std::map<std::string, std::uint64_t> counts;  // summed over processes
  std::int64_t since = 0;                       // of the oldest count; 0: there is none
};
Uses read_uses(const std::string& version_path);

// Replaces the file by one with these uses, each once.
void rewrite_uses(const std::string& version_path, const Uses& uses);

}  // namespace kiln::cache
