// State that a forked child must not go on with: threads of the parent may have been at work on it,
// with its locks held, and the child has none of them.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln {

// Changes in a forked child.
std::uint64_t fork_generation();

// One T a process, made when first asked for and never destroyed; a forked child gets its own, and
// leaves the parent's alone.
template <class T>
class PerProcess {
 public:
  T& get() {
    const std::uint64_t generation = fork_generation();
    Slot* slot = slot_.load(std::memory_order_acquire);
    if (slot != nullptr && slot->generation == generation) return slot->value;
    auto* const fresh = new Slot{generation, {}};
    if (slot_.compare_exchange_strong(slot, fresh)) return fresh->value;
    delete fresh;
    return slot->value;
  }

 private:
  struct Slot {
    std::uint64_t generation;
    T value;
  };
  std::atomic<Slot*> slot_{nullptr};
};

}  // namespace kiln
