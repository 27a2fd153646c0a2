// Times on the device and on the host for the policy `measure`, by CUDA events and the steady
// clock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kiln/kiln.h"
#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// The cost of one execution of a call, in microseconds.
struct Cost {
  double device_us;  // from the call's first kernel to its last
  double host_us;    // for the host to enqueue them; 0 for the host device
};

// The state of a handle's stream at the time of a call.
class StreamView {
 public:
  StreamView(int device_kind, kilnHandle_t handle) : device_kind_(device_kind), handle_(handle) {}
  // Whether the stream is being captured into a CUDA graph, so that nothing may be timed. True also
  // if there is no driver to ask.
  bool captured() const;
  // Whether all work of the stream is done. Requires !captured().
  bool idle() const;

 private:
  int device_kind_;
  kilnHandle_t handle_;
};

class StreamClock {
 public:
  StreamClock(int device_kind, int device_index);
  ~StreamClock();
  StreamClock(const StreamClock&) = delete;
  StreamClock& operator=(const StreamClock&) = delete;

  // Runs each of `runs` in turn, `rounds` times, and returns the medians. Before each sample, the
  // stream writes a buffer larger than the L2 cache several times: meanwhile the host enqueues the
  // sample, so the device's time does not include the host's. Then the stream reads `fresh`, the
  // operand that the previous layer of a model would have left in the L2 cache.
  std::vector<Cost> compare(int rounds, const Tensor& fresh,
                            const std::vector<std::function<void()>>& runs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The model of a GPU, such as "NVIDIA H100 80GB HBM3"; "host" for the host device.
std::string device_name(int device_kind, int device_index);

}  // namespace kiln::torch
