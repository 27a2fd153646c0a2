// Measures executions, for cudnnFind...Algorithm.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cudnn/library/handle.hpp"
#include "device/cuda/current_context.hpp"

namespace kiln::cudnn {

// Makes the CUDA context of a handle's device current for a scope, because the thread may have none
// or another one. The classes below need it. Does nothing on the host device. Throws on failure.
class HandlesContext {
 public:
  explicit HandlesContext(const cudnnContext& context);

 private:
  std::optional<cuda::CurrentContext> current_;
};

// Milliseconds of one execution on the handle's stream, after a first one that compiles and loads
// what it needs. Measured by events on a GPU, by the steady clock on the host device. Throws on
// failure.
float milliseconds(const cudnnContext& context, const std::function<void()>& work);

// Owns memory of the handle's device, filled with zeros.
class DeviceMemory {
 public:
  DeviceMemory(const cudnnContext& context, std::size_t bytes);
  void* get() const { return memory_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
};

}  // namespace kiln::cudnn
