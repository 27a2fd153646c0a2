// Time as the device and the host see it, for the policy `measure`: events of the CUDA driver and
// the steady clock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kiln/kiln.h"
#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// What one execution of a call costs, in microseconds.
struct Cost {
  double device_us;  // from the call's first kernel to its last
  double host_us;    // until the host has enqueued them; 0 for the host device
};

// The stream that a handle enqueues on, as a call finds it.
class StreamView {
 public:
  StreamView(int device_kind, kilnHandle_t handle) : device_kind_(device_kind), handle_(handle) {}
  // Into a CUDA graph: nothing may be timed then. Also where there is no driver to ask.
  bool captured() const;
  // Whether all of its work is done. Not of a stream that is captured.
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

  // Runs all of them in turn, as often as `rounds` says, and gives the median of each. Before each
  // sample the stream writes a buffer larger than the L2 cache, several times over, so that the
  // host has enqueued the sample by the time it begins, and the device's time is the device's
  // alone; then it reads `fresh`, the operand that the layer before has just written, which lies in
  // the cache when the call comes in a model, as far as it fits.
  std::vector<Cost> compare(int rounds, const Tensor& fresh,
                            const std::vector<std::function<void()>>& runs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The model of a GPU, such as "NVIDIA H100 80GB HBM3"; "host" for the host device.
std::string device_name(int device_kind, int device_index);

}  // namespace kiln::torch
