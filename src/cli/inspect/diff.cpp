#include "cli/inspect/diff.hpp"

#include "compile/run_program.hpp"
#include "core/error.hpp"
#include "core/process/temporary_folder.hpp"

namespace kiln::cli {

std::string unified_diff(const LabelledText& before, const LabelledText& after) {
  if (before.text == after.text) return "";
  const std::string program = find_program("diff");
  if (program.empty())
    fail(KILN_STATUS_EXECUTION_FAILED, "diff is not on PATH; expected it to compare two texts");
  const TemporaryFolder folder;
  ProgramResult result =
      run_program({program, "-u", "--label", before.label, "--label", after.label, "--",
                   folder.write("a", before.text), folder.write("b", after.text)});
  if (result.ending != "exit status 1")  // that of texts that differ
    fail(KILN_STATUS_EXECUTION_FAILED, program, " failed (", result.ending, "): ", result.output);
  return std::move(result.output);
}

}  // namespace kiln::cli
