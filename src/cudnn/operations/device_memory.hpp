// Memory of a handle's device.
#pragma once

#include <memory>
#include <optional>

#include "cudnn/library/handle.hpp"
#include "device/cuda/current_context.hpp"

namespace kiln::cudnn {

// Makes the CUDA context of a handle's device current for a scope, because the thread may have none
// or another one. DeviceMemory and measurements need it. Does nothing on the host device. Throws on
// failure.
class HandlesContext {
 public:
  explicit HandlesContext(const cudnnContext& context);

 private:
  std::optional<cuda::CurrentContext> current_;
};

enum class Contents { any, zeros };

// Owns memory of the handle's device.
class DeviceMemory {
 public:
  DeviceMemory(const cudnnContext& context, std::size_t bytes, Contents contents);
  void* get() const { return memory_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
};

// At least `bytes` of memory that the handle keeps, for what one call leaves from one of its
// kernels to the next; the next call on the handle's stream may overwrite it. Throws NOT_SUPPORTED
// while the stream is captured: the graph would use the memory at times that the handle does not
// know of.
void* scratch_of(cudnnContext& context, std::size_t bytes);

}  // namespace kiln::cudnn
