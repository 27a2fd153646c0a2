// Calls the program's callback (cudnnSetCallback) for errors.
#pragma once

#include <cudnn.h>

namespace kiln::cudnn {

void tell_callback(cudnnStatus_t status, const char* sentence) noexcept;

}  // namespace kiln::cudnn
