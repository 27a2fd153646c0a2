// What the environment says to programs of the cuDNN API; src/core/README.md has the table.
#pragma once

#include <string>

#include "kiln/handle.h"

namespace kiln::cudnn {

enum class Policy {
  wait,       // a new problem waits for its kernel
  background  // a stand-in runs while the kernel compiles
};

struct Settings {
  kilnDeviceKind_t device = KILN_DEVICE_CUDA;  // KILN_CUDNN_DEVICE: cuda or host
  Policy policy = Policy::wait;                // KILN_CUDNN_POLICY: wait or background
  std::string forward;                         // KILN_CUDNN_FORWARD: a libcudnn.so.9; empty: none
  bool statuses_of_8 = false;                  // KILN_CUDNN_STATUS: 8 or 9
  bool tf32 = true;                            // NVIDIA_TF32_OVERRIDE=0 says no
};

// Read once per process; what has no such value is told in the log, and is as if unset. So is all
// of it while there is no memory to read it.
const Settings& settings() noexcept;

}  // namespace kiln::cudnn
