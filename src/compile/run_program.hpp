// Runs another program, without a shell.
#pragma once

#include <string>
#include <vector>

namespace kiln {

// The absolute path of the executable file that `name` stands for: a path if it has a slash, else
// the first found on PATH. Empty if there is none.
std::string find_program(const std::string& name);

struct ProgramResult {
  bool started = false;
  bool succeeded = false;  // exited with status 0
  std::string ending;      // "exit status 1", "signal 11", or why it could not be started
  std::string output;      // standard output and standard error, as they came
};

// `arguments[0]` is the program's path. It runs in `folder`, unless that is empty, and its standard
// input is empty.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::string& folder = {});

}  // namespace kiln
