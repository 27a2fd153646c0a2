// What the policy `measure` knows of one call: the ways to compute its results, the time of each on
// the device and on the host, and which one is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "torch/policy/stream_clock.hpp"

namespace kiln::torch {

// A set of a call's results: bit i stands for result i. A forward call has only result 0; the
// results of a backward call are the gradients of data, filter and bias.
using Results = std::uint8_t;

class CallSite {
 public:
  struct Way {
    Results native;  // the results that PyTorch computes, in one call; Kiln computes the others
    Cost cost;
  };

  // Sets the measured ways, once. Among equally fast ways, the first is preferred.
  void set(std::vector<Way> ways);
  bool measured() const { return measured_.load(std::memory_order_acquire); }
  // Returns true to the first caller, which then reads the file of choices.
  bool first_look() { return !looked_.exchange(true); }
  // Notes that measuring failed, for example for lack of memory, and must not be tried again.
  void give_up() { given_up_.store(true); }
  bool given_up() const { return given_up_.load(); }
  // Held by the thread that measures; other threads do not wait for it.
  std::mutex& measuring() { return measuring_; }

  // The following require that the ways are set.
  std::span<const Way> ways() const { return ways_; }
  // The results that PyTorch should compute in a call on this stream now. On an idle stream the
  // host's and the device's times add up, so the way with the smallest sum is used. On a busy
  // stream the host's time is hidden, and a captured graph is replayed without the host, so there
  // only the device's time counts. The first calls sample whether the stream is idle now and then.
  Results native_on(const StreamView& stream);

 private:
  std::mutex measuring_;
  std::vector<Way> ways_;
  Results on_idle_ = 0, on_busy_ = 0;
  std::atomic<bool> measured_{false}, looked_{false}, given_up_{false};
  std::atomic<int> samples_{0}, idle_{0};
};

}  // namespace kiln::torch
