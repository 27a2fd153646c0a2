// The library's own threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace kiln {

// A thread with all signals blocked: signals belong to the program, and a handler that called
// exit() on a thread that exit() waits for would deadlock. Throws std::system_error or
// std::bad_alloc if no thread can be made.
template <class Work>
std::thread start_thread(Work&& work) {
  struct BlockedSignals {
    sigset_t before;
    BlockedSignals() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } const blocked;
  return std::thread(std::forward<Work>(work));
}

}  // namespace kiln
