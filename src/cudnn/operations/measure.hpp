// Measures executions, for cudnnFind...Algorithm.
#pragma once

#include <functional>

#include "cudnn/operations/device_memory.hpp"

namespace kiln::cudnn {

// Milliseconds of one execution on the handle's stream, after a first one that compiles and loads
// what it needs. Measured by events on a GPU, by the steady clock on the host device. Throws on
// failure.
float milliseconds(const cudnnContext& context, const std::function<void()>& work);

}  // namespace kiln::cudnn
