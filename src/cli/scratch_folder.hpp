// A private folder for files that another program is to read, gone with this object.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace kiln::cli {

class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  // The path of the new file. Throws EXECUTION_FAILED.
  std::string write(const std::string& name, std::span<const std::byte> bytes) const;
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace kiln::cli
