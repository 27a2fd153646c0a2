// The library's own threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace kiln {

// A thread on which no signal is handled: signals are the program's, and a handler that calls
// exit() on a thread that exit() waits for would wait for ever. Throws std::system_error or
// std::bad_alloc where there is no thread to be had.
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
