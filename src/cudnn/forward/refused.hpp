// What a function says that Kiln has nothing for.
#pragma once

#include <cudnn.h>

#include <atomic>

namespace kiln::cudnn {

// Tells the caller, and the log the first time: `told` is the function's own.
cudnnStatus_t refuse(const char* function, const char* what, std::atomic<bool>& told) noexcept;

}  // namespace kiln::cudnn
