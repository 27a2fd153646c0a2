// What the policy `measure` knows of one call: the ways to compute its results, what each costs the
// device and the host, and which is taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "torch/policy/stream_clock.hpp"

namespace kiln::torch {

// A set of a call's results: bit i stands for result i. A forward call has result 0 alone; those of
// a backward call are the gradients of data, filter and bias.
using Results = std::uint8_t;

class CallSite {
 public:
  struct Way {
    Results native;  // computed by PyTorch, in one call; the others by Kiln
    Cost cost;
  };

  // Begins with nothing measured. Set once; ways that come first are preferred among equals.
  void set(std::vector<Way> ways);
  bool measured() const { return measured_.load(std::memory_order_acquire); }
  // Whether nobody has looked yet what the file of choices says.
  bool first_look() { return !looked_.exchange(true); }
  // Measuring failed, as where memory is short: it is not tried again.
  void give_up() { given_up_.store(true); }
  bool given_up() const { return given_up_.load(); }
  // Held by the thread that measures; the others go on without.
  std::mutex& measuring() { return measuring_; }

  // Only once measured:
  std::span<const Way> ways() const { return ways_; }
  // What is PyTorch's of a call that comes now, on this stream. An idle stream waits for the host
  // and then for the device, so the cheapest sum of both is taken; on a stream that is busy the
  // host's time is hidden, and a graph that is captured is replayed without the host: there the
  // device's time counts. Whether a call site usually finds its stream idle is sampled a few times.
  Results native_on(const StreamView& stream);

 private:
  std::mutex measuring_;
  std::vector<Way> ways_;
  Results on_idle_ = 0, on_busy_ = 0;
  std::atomic<bool> measured_{false}, looked_{false}, given_up_{false};
  std::atomic<int> samples_{0}, idle_{0};
};

}  // namespace kiln::torch
