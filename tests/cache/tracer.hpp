// Traces a child process (ptrace): records its system calls, kills it at one, or makes one fail.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kiln::cache::test {

struct Interference {
  enum { none, kill_before, kill_after, fail, cut } kind = none;
  int at = 0;            // which system call of the watched part, from 0
  int value = 0;         // fail: the errno value of a call that does nothing; cut: the most bytes
                         // that a read or write transfers
  bool onwards = false;  // that call and all that follow
};

struct Trace {
  bool possible = false;    // false where the system forbids tracing
  std::vector<long> calls;  // numbers of the system calls, in order, memory management left out
  int status = 255;         // the child's exit status, 128 + signal if one ended it
};

// Runs `prepare` and then `watched`, whose calls are traced, in a child; the result of `watched` is
// the exit status.
Trace trace(const std::function<void()>& prepare, const std::function<int()>& watched,
            Interference interference = {});

// Leaves a test case where the system forbids tracing.
#define KILN_REQUIRE_TRACING(trace)                                           \
  if (!(trace).possible) {                                                    \
    BOOST_TEST_MESSAGE("skipped: this system lets no process trace another"); \
    return;                                                                   \
  }

// Whether this kind of machine supports `fail` and `cut`.
bool can_fail_calls();

#define KILN_REQUIRE_FAILING_CALLS()                                                           \
  if (!can_fail_calls()) {                                                                     \
    BOOST_TEST_MESSAGE("skipped: failing system calls cannot be had on this kind of machine"); \
    return;                                                                                    \
  }

}  // namespace kiln::cache::test
