#include "core/per_process.hpp"

#include <pthread.h>

namespace kiln {
namespace {

std::atomic<std::uint64_t> generation{0};

}  // namespace

std::uint64_t fork_generation() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace kiln
