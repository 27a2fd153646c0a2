// A lock on a file, between threads and processes of a node (and of other nodes, if the file system
// supports locks). It only avoids duplicate work: everyone waits for a bounded time and then
// continues without it. The system releases the lock of a killed process, even while its forked
// children live; if the holder is merely stopped, others wait for their whole bounded time.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cache/store/lock_descriptor.hpp"

namespace kiln::cache {

class FileLock {
 public:
  // Opens the file, and creates it if necessary. Does not wait.
  explicit FileLock(std::string path);
  ~FileLock();  // releases the lock
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  enum class Turn {
    mine,
    others,
    none  // there can be no lock: the file system is read-only or has no locks
  };
  Turn ask();
  bool wait(std::chrono::milliseconds patience);  // true if this object then holds the lock

  bool held() const { return held_; }

  void remove();  // removes the file; those that wait for it look again, and find the work done

  std::vector<std::byte> read(std::size_t most) const;   // from offset 0; empty if it fails
  void write(std::span<const std::byte> content) const;  // at offset 0

 private:
  std::string path_;
  LockDescriptor descriptor_;
  bool held_ = false;
};

}  // namespace kiln::cache
