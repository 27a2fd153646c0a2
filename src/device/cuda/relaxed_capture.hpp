// Lets modules be loaded and unloaded while a stream is captured.
#pragma once

#include "device/cuda/driver.hpp"

namespace kiln::cuda {

// Relaxes the thread's capture mode for a scope. Otherwise, while any stream of the process is
// captured into a CUDA graph, the driver refuses to load or unload a module, and the capture fails.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { exchange(); }

 private:
  void exchange() { driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace kiln::cuda
