// The real library: the libcudnn.so.9 that KILN_CUDNN_FORWARD names. Calls that Kiln does not serve
// are forwarded to it.
#pragma once

namespace kiln::cudnn {

// A function of the real library; null if there is no real library or it lacks the function.
void* real_symbol(const char* name) noexcept;

template <class Function>
Function* real_function(Function*, const char* name) noexcept {
  return reinterpret_cast<Function*>(real_symbol(name));
}

// Whether there is a real library.
bool forwards() noexcept;

}  // namespace kiln::cudnn

// Marks a library with the cuDNN API as Kiln's. Code that opens a libcudnn and needs the real one
// refuses a library that exports this name.
extern "C" [[gnu::visibility("default")]] int kilnCudnnMarker(void);
