#include "cache/store/quiet_writes.hpp"

#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <initializer_list>

namespace kiln::cache {

QuietWrites::QuietWrites() {
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  sigemptyset(&ours_);
  for (const int signal : {SIGXFSZ, SIGPIPE})
    if (sigismember(&pending, signal) == 0) sigaddset(&ours_, signal);
  pthread_sigmask(SIG_BLOCK, &ours_, &before_);
}

QuietWrites::~QuietWrites() {
  const int error = errno;
  const timespec no_time{};
  while (sigtimedwait(&ours_, nullptr, &no_time) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace kiln::cache
