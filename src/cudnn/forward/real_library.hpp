// The library behind, which KILN_CUDNN_FORWARD names: what Kiln does not serve goes there.
#pragma once

namespace kiln::cudnn {

// A function of the library behind; null where there is no library, or no such name in it.
void* real_symbol(const char* name) noexcept;

template <class Function>
Function* real_function(Function*, const char* name) noexcept {
  return reinterpret_cast<Function*>(real_symbol(name));
}

// Whether there is a library behind.
bool forwards() noexcept;

}  // namespace kiln::cudnn

// Says that a library of this API is Kiln's: what opens a libcudnn to have the real one refuses one
// that has this name.
extern "C" [[gnu::visibility("default")]] int kilnCudnnMarker(void);
