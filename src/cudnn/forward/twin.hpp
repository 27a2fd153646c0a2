// The object that the library behind has for one of Kiln's. It is made when a call that needs it is
// first forwarded, and set anew when Kiln's has changed since.
#pragma once

#include <atomic>

#include "core/process/per_process.hpp"

namespace kiln::cudnn {

template <class Object>
struct Twin {
  OwnPerProcess<OnlyLock> lock;  // of the twin; not held while a call is forwarded
  Object real = nullptr;
  std::atomic<bool> current{false};
};

// Kiln's has changed.
template <class Object>
void renew(Twin<Object>& twin) {
  twin.current.store(false, std::memory_order_relaxed);
}

}  // namespace kiln::cudnn
