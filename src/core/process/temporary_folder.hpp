// A private temporary folder for files that another program reads or writes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cache/store/lock_descriptor.hpp"

namespace kiln {

// A folder in TMPDIR, removed with this object. A killed process leaves its folder behind; the next
// process that makes such a folder removes it. Each folder is locked by its process, and a folder
// without a lock is abandoned. Process ids would not do: containers that share the directory have
// the same ones.
class TemporaryFolder {
 public:
  TemporaryFolder();  // throws EXECUTION_FAILED
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file and returns its path. Throws EXECUTION_FAILED.
  std::string write(std::string_view name, std::span<const std::byte> bytes) const;
  std::string write(std::string_view name, std::string_view text) const;

 private:
  std::string path_;
  cache::LockDescriptor lock_;
};

}  // namespace kiln
