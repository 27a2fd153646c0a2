#include "compile/failure.hpp"

#include <sstream>

#include "core/error.hpp"
#include "core/log/log.hpp"

namespace kiln {
namespace {

// The first lines that report an error; if none does, the first lines.
std::vector<std::string> first_errors(const std::string& output) {
  constexpr std::size_t most = 5;
  std::vector<std::string> errors, lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line) && errors.size() < most;) {
    if (line.empty()) continue;
    if (lines.size() < most) lines.push_back(line);
    if (line.find("error") != std::string::npos) errors.push_back(line);
  }
  return errors.empty() ? lines : errors;
}

}  // namespace

void fail_compilation(const std::string& what, const std::string& output,
                      const std::vector<std::string>& options, const std::string& source) {
  log::debug(cat(what, "\n-- output\n", output, "\n-- options\n", join(options, " "),
                 "\n-- source\n", source));
  fail(KILN_STATUS_COMPILE_FAILED, what,
       "; all that it said, its options and the source are in the log with KILN_LOG=debug:\n",
       join(first_errors(output), "\n"));
}

}  // namespace kiln
