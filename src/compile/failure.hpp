// Reports a compiler's failure: briefly in the message, in full in the log.
#pragma once

#include <string>
#include <vector>

namespace kiln {

// Throws COMPILE_FAILED with `what` and the first errors of the compiler's `output`. All of output,
// options and source go to the log at level debug.
[[noreturn]] void fail_compilation(const std::string& what, const std::string& output,
                                   const std::vector<std::string>& options,
                                   const std::string& source);

}  // namespace kiln
