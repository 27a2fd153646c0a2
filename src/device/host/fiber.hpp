// Fibers: calls that can be suspended and resumed, one for each CUDA thread of the host device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/process/per_process.hpp"

namespace kiln::host {

// Stacks of equal size in one mapping, with an inaccessible page below each, so that an overflow
// stops the process instead of overwriting another stack.
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

// Keeps stacks from one launch to the next. Only stacks whose fibers have all returned may be given
// back. Safe to use from several threads at once.
class FiberStackPool {
 public:
  std::unique_ptr<FiberStacks> take(std::size_t at_least);       // throws ALLOC_FAILED
  void give_back(std::unique_ptr<FiberStacks> stacks) noexcept;  // or unmaps them

 private:
  PerProcess<std::vector<std::unique_ptr<FiberStacks>>> idle_{"fiber stacks"};
};

// A fiber does not own its stack, and stays on one operating-system thread. If it will never be
// resumed, it may be left suspended: nothing on its stack is destroyed, and the stack must not be
// used again.
class Fiber {
 public:
  using Body = void (*)(void* argument);

  // Prepares the fiber; the first resume() runs `body`.
  void start(std::span<std::byte> stack, Body body, void* argument);

  // Runs the fiber until it suspends itself or its body returns (then it must not be resumed).
  void resume();

  // Called within the fiber: returns to the code that resumed it.
  void suspend();

 private:
  struct Entry;

  std::span<std::byte> stack_;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  void* context_ = nullptr;  // the suspended context: the fiber's, or its resumer's while it runs

  // AddressSanitizer requires these at each switch: its own data about the fiber's stack, and the
  // address of the resumer's stack.
  void* fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_size_ = 0;
};

}  // namespace kiln::host
