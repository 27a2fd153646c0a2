// Makes a CUDA context current for a scope.
#pragma once

#include "device/cuda/driver.hpp"

namespace kiln::cuda {

// Changes nothing if the context is already current on the calling thread.
class CurrentContext {
 public:
  explicit CurrentContext(CUcontext context) {
    CUcontext current = nullptr;
    check(driver().cuCtxGetCurrent(&current), "cuCtxGetCurrent");
    if (current == context) return;
    check(driver().cuCtxPushCurrent(context), "cuCtxPushCurrent");
    pushed_ = true;
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    CUcontext ignored;
    if (pushed_) driver().cuCtxPopCurrent(&ignored);
  }

 private:
  bool pushed_ = false;
};

}  // namespace kiln::cuda
