#include "core/process/per_process.hpp"

#include <pthread.h>

#include <new>

#include "core/process/loader.hpp"

namespace kiln {
namespace {

std::atomic<std::uint64_t> generation{0};
std::atomic<bool> watched{false};
std::atomic<ProcessState*> first_state{nullptr};

// Registered when the library is loaded, so before any thread can use a value while another forks.
// Where there is no memory for that, the first use of a value tries again.
__attribute__((constructor)) void watch_forks() {
  watched = pthread_atfork(take_loader_lock_for_fork, release_loader_lock_in_parent, [] {
              release_loader_lock_in_child();
              generation.fetch_add(1, std::memory_order_relaxed);
            }) == 0;
}

}  // namespace

std::uint64_t fork_generation() {
  if (!watched.load(std::memory_order_relaxed)) {
    watch_forks();
    if (!watched) throw std::bad_alloc();
  }
  return generation.load(std::memory_order_relaxed);
}

ProcessState* ProcessState::first() { return first_state.load(std::memory_order_acquire); }

void ProcessState::enlist() {
  if (name_ == nullptr || listed_.exchange(true)) return;
  next_ = first_state.load(std::memory_order_relaxed);
  while (!first_state.compare_exchange_weak(next_, this, std::memory_order_release)) {
  }
}

}  // namespace kiln
