// Time as the device sees it, for the policy `measure`: events of the CUDA driver, or the steady
// clock for the host device.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kiln/kiln.h"

namespace kiln::torch {

class StreamClock {
 public:
  // False while the handle's stream is captured into a graph, or where there is no driver: nothing
  // may be timed then.
  static bool usable(int device_kind, kilnHandle_t handle);

  StreamClock(int device_kind, int device_index);
  ~StreamClock();
  StreamClock(const StreamClock&) = delete;
  StreamClock& operator=(const StreamClock&) = delete;

  struct Times {
    double first, second;  // microseconds of one execution: the median of the rounds
  };
  // Runs the two in turn. Before each sample the stream writes a buffer larger than the L2 cache,
  // several times over, so that both find it cold, and so that the host has enqueued the sample by
  // the time it begins: what is timed is the device's work, not the host's.
  Times alternate(int rounds, const std::function<void()>& first,
                  const std::function<void()>& second) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The model of a GPU, such as "NVIDIA H100 80GB HBM3"; "host" for the host device.
std::string device_name(int device_kind, int device_index);

}  // namespace kiln::torch
