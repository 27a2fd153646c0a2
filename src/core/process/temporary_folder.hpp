// A private folder for files that another program reads or writes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/process/file_descriptor.hpp"

namespace kiln {

// In TMPDIR, gone with this object. A process that is killed leaves its folder behind; the next one
// that makes such a folder removes it. A lock that ends with the process tells the two apart: a
// process id would not, where processes of several containers share the directory.
class TemporaryFolder {
 public:
  TemporaryFolder();  // throws EXECUTION_FAILED
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

  // The path of the new file. Throws EXECUTION_FAILED.
  std::string write(std::string_view name, std::span<const std::byte> bytes) const;
  std::string write(std::string_view name, std::string_view text) const;

 private:
  std::string path_;
  FileDescriptor lock_;
};

}  // namespace kiln
