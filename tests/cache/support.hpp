// Shared by the cache's tests: scratch directories, sample keys and entries, child processes.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "cache/store/disk_store.hpp"
#include "support/counts.hpp"

namespace kiln::cache::test {

using kiln_test::count;
using kiln_test::report;

using Bytes = std::vector<std::byte>;

class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path(const std::string& name = "cache") const { return (root_ / name).string(); }

 private:
  std::filesystem::path root_;
};

class Warnings {
 public:
  DiskStore::Warn sink();
  std::vector<std::string> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

Key sample_key(int number = 0, const std::string& producer = "compiler V13.0.88");
Entry sample_entry(const std::string& text = "machine code");
std::string text_of(const Entry& entry);  // of a sample entry

// An entry that proves its own content: its bytes follow from `key` and `nonce`, which it contains.
Entry vouched_entry(int key, unsigned nonce);
bool vouched(const Entry& entry, int key);

std::string path_of(const DiskStore& store, const Key& key);
Bytes read_bytes(const std::string& path);
void write_bytes(const std::string& path, const Bytes& bytes);
void make_older(const std::string& path, int seconds);
mode_t mode_of(const std::string& path);                        // the permission bits
std::vector<std::string> files_below(const std::string& path);  // all but directories

// Runs `body`, which must not use Boost.Test macros, in a forked process; its result is the exit
// status. After minutes, SIGALRM ends a child that hangs.
int in_child(const std::function<int()>& body);
int start_child(const std::function<int()>& body);  // the process number
int wait_for(int child);                            // 128 + signal if one ended it

}  // namespace kiln::cache::test
