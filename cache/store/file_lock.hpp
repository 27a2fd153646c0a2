// A lock on a file, between threads and processes of a node (and of others, where the file system
// knows locks). It only ever saves work: everyone waits for a bounded time and then goes on
// without. The system lets go of a killed holder's; a stopped one costs the others their patience.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace kiln::cache {

class FileLock {
 public:
  // Opens the file, made if need be; waits for nothing.
  explicit FileLock(std::string path);
  ~FileLock();  // releases the lock, even if a forked child still has the descriptor
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  enum class Turn {
    mine,
    others,
    none  // no lock can be had: read-only, or a file system without locks
  };
  Turn ask();
  bool wait(std::chrono::milliseconds patience);  // true: this object holds the lock

  bool held() const { return held_; }

  void remove();  // the file, which others may wait on: they then look again and find the work done

  std::vector<std::byte> read(std::size_t most) const;   // from the beginning; empty if it fails
  void write(std::span<const std::byte> content) const;  // over the beginning

 private:
  std::string path_;
  int descriptor_;
  bool held_ = false;
};

}  // namespace kiln::cache
