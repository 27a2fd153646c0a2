// Runs another program and waits for it.
#pragma once

#include <string>
#include <vector>

namespace kiln {

// The absolute path of the executable file `name`: a path if it has a slash, else the first such
// file on PATH. Empty if there is none.
std::string find_program(const std::string& name);

struct ProgramResult {
  bool started = false;
  bool succeeded = false;      // exited with status 0
  bool out_of_memory = false;  // it was not started because memory is exhausted
  std::string ending;          // "exit status 1", "signal 11", or why it could not be started
  std::string output;          // standard output and standard error, in the order written
};

// Runs the program arguments[0], a path; no shell interprets the arguments. Unless `folder` is
// empty, the program runs in it and has its temporary files there. It has an empty standard input,
// no signal ignored or blocked, and no other descriptor of this process. Returns when the program
// has ended, even if processes that it started still run. It works whatever the rest of this
// process does with SIGCHLD and wait(). If this process has more privileges than its caller, the
// program gets none of its environment. What cannot be had (memory, descriptors) is a result that
// is not started; the program never runs in part.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::string& folder = {});

}  // namespace kiln
