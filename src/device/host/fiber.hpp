// Fibers: calls that can be suspended and resumed, one for each CUDA thread of the host device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/process/per_process.hpp"

namespace kiln::host {

// Stacks of equal size in one mapping, an inaccessible page below each, so that an overflow stops
// the process instead of spoiling a neighbour.
class FiberStacks {
 public:
  explicit FiberStacks(std::size_t count);  // throws ALLOC_FAILED
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  std::size_t count() const { return count_; }
  std::span<std::byte> operator[](std::size_t index) const;

 private:
  std::byte* mapping_ = nullptr;
  std::size_t count_;
};

// Stacks kept from one launch to the next; only those whose fibers have all returned are given
// back. Safe to use from several threads at once.
class FiberStackPool {
 public:
  std::unique_ptr<FiberStacks> take(std::size_t at_least);       // throws ALLOC_FAILED
  void give_back(std::unique_ptr<FiberStacks> stacks) noexcept;  // or unmaps them

 private:
  PerProcess<std::vector<std::unique_ptr<FiberStacks>>> idle_{"fiber stacks"};
};

// Does not own its stack, and stays on one operating-system thread. A fiber that will never be
// resumed again may be left as it is: nothing on its stack is destroyed, and the stack must not be
// used for another.
class Fiber {
 public:
  using Body = void (*)(void* argument);

  // Does not run `body` yet.
  void start(std::span<std::byte> stack, Body body, void* argument);

  // Runs the fiber until it suspends itself or its body returns (then it must not be resumed).
  void resume();

  // From within the fiber: back to whoever resumed it.
  void suspend();

 private:
  struct Entry;

  std::span<std::byte> stack_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  void* context_ = nullptr;  // where to go on; the resumer's while the fiber runs

  // What AddressSanitizer wants to know at each switch: its own bookkeeping of the fiber's stack,
  // and where the resumer's stack lies.
  void* fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_size_ = 0;
};

}  // namespace kiln::host
