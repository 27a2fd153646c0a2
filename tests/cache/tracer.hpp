// Watching, killing and misleading a child process at each of its system calls (ptrace).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kiln::cache::test {

struct Interference {
  enum { none, kill_before, kill_after, fail } kind = none;
  int at = 0;     // which system call of the watched part, from 0
  int error = 0;  // for `fail`: the call does nothing and returns this errno value
};

struct Trace {
  bool possible = false;    // false where the system forbids tracing
  std::vector<long> calls;  // numbers of the system calls, in order, memory management left out
  int status = 255;         // the child's exit status, 128 + signal if one ended it
};

// In a child: `prepare`, then `watched`, whose result is the exit status.
Trace trace(const std::function<void()>& prepare, const std::function<int()>& watched,
            Interference interference = {});

// Whether `fail` can be had on this kind of machine.
bool can_fail_calls();

}  // namespace kiln::cache::test
