// How long an execution takes, for the functions that find an algorithm.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cudnn/library/handle.hpp"
#include "device/cuda/current_context.hpp"

namespace kiln::cudnn {

// Makes the context of a handle's device current for a scope, which what follows needs: the thread
// may have none, or another. Does nothing on the host device. Throws.
class HandlesContext {
 public:
  explicit HandlesContext(const cudnnContext& context);

 private:
  std::optional<cuda::CurrentContext> current_;
};

// Milliseconds of one execution on the handle's stream, after one that made whatever it needs:
// between events on a GPU, by the steady clock on the host device. Throws.
float milliseconds(const cudnnContext& context, const std::function<void()>& work);

// Memory of the handle's device, all zeros, for as long as this lives.
class DeviceMemory {
 public:
  DeviceMemory(const cudnnContext& context, std::size_t bytes);
  void* get() const { return memory_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
};

}  // namespace kiln::cudnn
