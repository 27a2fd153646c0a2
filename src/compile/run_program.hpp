// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

namespace kiln {

// The absolute path of the executable file that `name` stands for: a path if it has a slash, else
// the first found on PATH. Empty if there is none.
std::string find_program(const std::string& name);

struct ProgramResult {
  bool started = false;
  bool succeeded = false;      // exited with status 0
  bool out_of_memory = false;  // it was not started because memory is exhausted
  std::string ending;          // "exit status 1", "signal 11", or why it could not be started
  std::string output;          // standard output and standard error, as they came
};

// `arguments[0]` is the program's path; no argument is looked at by a shell. It runs in `folder`,
// unless that is empty, with an empty standard input, no signal ignored or blocked, and no other
// descriptor of this process. Returns when the program has ended, even if processes that it started
// still run. It works whatever the rest of this process does with SIGCHLD and wait(). A process
// with more than its caller's privileges passes on none of its caller's environment.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::string& folder = {});

}  // namespace kiln
