// The twin of one of Kiln's objects: the real library's object with the same content. It is made
// when a forwarded call first needs it, and set again when Kiln's object has changed.
#pragma once

#include <atomic>

#include "core/process/per_process.hpp"

namespace kiln::cudnn {

template <class Object>
struct Twin {
  OwnPerProcess<OnlyLock> lock;  // guards the twin; not held while a call is forwarded
  Object real = nullptr;
  std::atomic<bool> current{false};
};

// Notes that Kiln's object has changed.
template <class Object>
void renew(Twin<Object>& twin) {
  twin.current.store(false, std::memory_order_relaxed);
}

}  // namespace kiln::cudnn
