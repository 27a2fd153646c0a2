// Forked children.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace test {

// Waits: the child's exit status, or minus the signal that ended it.
inline int end_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// Runs `body` in a forked child, and gives its end_of(). SIGALRM ends it after `seconds`.
template <class Body>
int in_child(unsigned seconds, const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    _exit(body());
  }
  return end_of(child);
}

}  // namespace test
