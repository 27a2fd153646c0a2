// A CUDA context that a scope works in.
#pragma once

#include "device/cuda/driver.hpp"

namespace kiln::cuda {

// Makes a context current for a scope; free of cost where the caller's thread has it current.
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
