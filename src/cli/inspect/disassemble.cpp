#include "cli/inspect/disassemble.hpp"

#include <filesystem>
#include <vector>

#include "compile/run_program.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/process/temporary_folder.hpp"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

// The path of a tool, on PATH or else in the folder of the CUDA toolkit; "" if it is in neither.
std::string find_tool(const std::string& name) {
  if (std::string path = find_program(name); !path.empty()) return path;
  for (const std::string& root :
       {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (root.empty()) continue;
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
  const TemporaryFolder folder;
  command.push_back(folder.write("kernel.cubin", cubin));
  ProgramResult result = run_program(command);
  if (!result.succeeded) {
    fail(KILN_STATUS_EXECUTION_FAILED, command[0], " failed (", result.ending,
         "): ", result.output);
  }
  return std::move(result.output);
}

}  // namespace kiln::cli
