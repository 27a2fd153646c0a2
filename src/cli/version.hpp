// What this program is: version, commit, and what it was built with.
#pragma once

#include <string>

namespace kiln::cli {

std::string version();  // "0.1.0"
// The commit of the sources, "3f2c1d0b9a8e", with "-dirty" if they had been changed since; "" where
// they were no git repository.
std::string commit();
std::string toolkit();  // "CUDA 13.0": of which the headers were
// All of it in one line: "kiln 0.1.0 (commit 3f2c1d0b9a8e, built with CUDA 13.0)".
std::string version_line();

}  // namespace kiln::cli
