// The program's callback, which is told of errors if it asked for them.
#pragma once

#include <cudnn.h>

namespace kiln::cudnn {

void tell_callback(cudnnStatus_t status, const char* sentence) noexcept;

}  // namespace kiln::cudnn
