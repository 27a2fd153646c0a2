// The refusal by functions that Kiln does not implement.
#pragma once

#include <cudnn.h>

#include <atomic>

namespace kiln::cudnn {

// Returns NOT_SUPPORTED with a message; the first call also writes it to the log. `told` is a flag
// of the function.
cudnnStatus_t refuse(const char* function, const char* what, std::atomic<bool>& told) noexcept;

}  // namespace kiln::cudnn
