#include "cli/disassemble.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "cli/scratch_folder.hpp"
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
  const ScratchFolder folder;
  command.push_back(folder.write("kernel.cubin", cubin));
  ProgramResult result = run_program(command);
  if (!result.succeeded) {
    fail(KILN_STATUS_EXECUTION_FAILED, command[0], " failed (", result.ending,
         "): ", result.output);
  }
  return std::move(result.output);
}

}  // namespace kiln::cli
