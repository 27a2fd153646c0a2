// Sets of operands that executions take turns with while they are timed: what one execution left in
// the L2 cache is gone when its set's turn comes again, as in a step of a network.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "problem/problem.hpp"

namespace kiln {

// How many sets of `bytes` bytes exceed an L2 cache of `l2_bytes` so far that a set has left it by
// its next turn: those that another two caches' worth of operands follow. At least 1.
int sets_beyond_l2(std::int64_t l2_bytes, std::size_t bytes);

class Rotation {
 public:
  // The caller's operands are the first set. The others are copies in `spare`, memory of the device
  // that is the caller's too: as many as exceed the L2 cache, or as fit. Operands that overlap
  // overlap in a copy as well, and each address keeps its alignment up to 256 bytes. If an operand
  // lies in `spare`, there are no copies. The copying is enqueued on the stream.
  Rotation(Device& device, const Problem& problem, std::span<void* const> operands,
           std::span<std::byte> spare, void* stream);

  int sets() const { return static_cast<int>(sets_.size()); }
  std::span<void* const> next() { return sets_[turn_++ % sets_.size()]; }

 private:
  std::vector<std::vector<void*>> sets_;
  std::size_t turn_ = 0;
};

}  // namespace kiln
