#include "core/process/per_process.hpp"

#include <pthread.h>

namespace kiln {
namespace {

std::atomic<std::uint64_t> generation{0};
std::atomic<ProcessState*> first_state{nullptr};

// Registered when the library is loaded, so before any thread can use a value while another forks.
__attribute__((constructor)) void watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

std::uint64_t fork_generation() { return generation.load(std::memory_order_relaxed); }

ProcessState* ProcessState::first() { return first_state.load(std::memory_order_acquire); }

void ProcessState::enlist() {
  if (name_ == nullptr || listed_.exchange(true)) return;
  next_ = first_state.load(std::memory_order_relaxed);
  while (!first_state.compare_exchange_weak(next_, this, std::memory_order_release)) {
  }
}

}  // namespace kiln
