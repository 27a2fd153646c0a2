// Times on the device and on the host for the policy `measure`, by CUDA events and the steady
// clock.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/kiln.h"
#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// The cost of one execution of a call, in microseconds.
struct Cost {
  double device_us;  // of one among many, back to back
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

  // The cost of each of `runs`, which compute with the operands: the medians of `rounds` samples,
  // which take turns. A sample is several executions back to back, each with another copy of the
  // operands, so many that what one leaves in the L2 cache is gone when its copy's turn comes
  // again. Before a sample the stream gets work of another kind, for as long as the host needs to
  // enqueue the sample, so that the device's time does not include the host's. Throws
  // std::runtime_error if memory for the copies is short.
  std::vector<Cost> compare(int rounds, std::span<Tensor* const> operands,
                            const std::vector<std::function<void()>>& runs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The model of a GPU, such as "NVIDIA H100 80GB HBM3"; "host" for the host device.
std::string device_name(int device_kind, int device_index);

}  // namespace kiln::torch
