#include "cli/scratch_folder.hpp"

#include <cstdlib>
#include <fstream>

#include "core/error.hpp"

namespace kiln::cli {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "kiln-XXXXXX").string();
  if (!mkdtemp(name.data()))
    fail(KILN_STATUS_EXECUTION_FAILED, "cannot make a directory like ", name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchFolder::write(const std::string& name, std::span<const std::byte> bytes) const {
  std::string path = (path_ / name).string();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) fail(KILN_STATUS_EXECUTION_FAILED, "cannot write ", path);
  return path;
}

std::string ScratchFolder::write(const std::string& name, const std::string& text) const {
  return write(name, std::as_bytes(std::span(text)));
}

}  // namespace kiln::cli
