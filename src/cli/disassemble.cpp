#include "cli/disassemble.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "compile/run_program.hpp"
#include "core/error.hpp"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

// On PATH, else in the folder of the toolkit.
std::string find_tool(const std::string& name) {
  if (std::string path = find_program(name); !path.empty()) return path;
  const std::array<const char*, 3> roots{std::getenv("CUDA_HOME"), std::getenv("CUDA_PATH"),
                                         "/usr/local/cuda"};
  for (const char* root : roots) {
    if (!root || !*root) continue;
    if (std::string path = find_program(fs::path(root) / "bin" / name); !path.empty()) return path;
  }
  return "";
}

// A private directory with the cubin in it, for as long as this lives.
class CubinFile {
 public:
  explicit CubinFile(std::span<const std::byte> cubin) {
    std::string name = (fs::temp_directory_path() / "kiln-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      fail(KILN_STATUS_EXECUTION_FAILED, "cannot make a directory like ", name);
    }
    directory_ = name;
    std::ofstream file(path(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(cubin.data()),
               static_cast<std::streamsize>(cubin.size()));
    file.close();
    if (!file) {
      remove();
      fail(KILN_STATUS_EXECUTION_FAILED, "cannot write ", path());
    }
  }
  CubinFile(const CubinFile&) = delete;
  CubinFile& operator=(const CubinFile&) = delete;
  ~CubinFile() { remove(); }

  std::string path() const { return (directory_ / "kernel.cubin").string(); }

 private:
  void remove() {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  fs::path directory_;
};

}  // namespace

std::string disassemble(std::span<const std::byte> cubin) {
  std::vector<std::string> command;
  if (std::string nvdisasm = find_tool("nvdisasm"); !nvdisasm.empty()) {
    command = {nvdisasm};
  } else if (std::string cuobjdump = find_tool("cuobjdump"); !cuobjdump.empty()) {
    command = {cuobjdump, "-sass"};
  } else {
    fail(KILN_STATUS_EXECUTION_FAILED,
         "neither nvdisasm nor cuobjdump is on PATH or in the CUDA toolkit; expected one of them "
         "to print SASS");
  }
  const CubinFile file(cubin);
  command.push_back(file.path());
  ProgramResult result = run_program(command);
  if (!result.succeeded) {
    fail(KILN_STATUS_EXECUTION_FAILED, command[0], " failed (", result.ending,
         "): ", result.output);
  }
  return std::move(result.output);
}

}  // namespace kiln::cli
