#include "cache/store/lock_descriptor.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>

namespace kiln::cache {
namespace {

// Descriptors plus 1; 0: free. A process that has more locks than this at a time lists no others.
constinit std::array<std::atomic<int>, 1024> listed{};

void close_in_child() {
  for (std::atomic<int>& place : listed)
    if (const int entry = place.exchange(0); entry != 0) ::close(entry - 1);
}

// If there is no memory for this, a child keeps the descriptors, and others wait for their bounded
// time.
__attribute__((constructor)) void watch_forks() {
  static_cast<void>(pthread_atfork(nullptr, nullptr, close_in_child));
}

}  // namespace

LockDescriptor::LockDescriptor(int number) : number_(number) {
  if (number < 0) return;
  for (std::atomic<int>& place : listed) {
    int free = 0;
    if (!place.compare_exchange_strong(free, number + 1)) continue;
    place_ = &place;
    return;
  }
}

LockDescriptor::~LockDescriptor() {
  int entry = number_ + 1;
  if (number_ >= 0 && (place_ == nullptr || place_->compare_exchange_strong(entry, 0)))
    ::close(number_);
}

int LockDescriptor::get() const {
  return place_ == nullptr || *place_ == number_ + 1 ? number_ : -1;
}

}  // namespace kiln::cache
