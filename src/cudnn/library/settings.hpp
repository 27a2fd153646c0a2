// Environment variables for programs of the cuDNN API. src/core/README.md lists them.
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
  bool tf32 = true;                            // false with NVIDIA_TF32_OVERRIDE=0
};

// The settings, read once per process. An invalid value is logged and counts as unset. If memory is
// short, the defaults are returned.
const Settings& settings() noexcept;

}  // namespace kiln::cudnn
