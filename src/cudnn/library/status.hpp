// Converts exceptions to statuses of the cuDNN API, with a message.
#pragma once

#include <cudnn.h>

#include <utility>

#include "core/error.hpp"
#include "kiln/status.h"

namespace kiln::cudnn {

// Throws if a call of Kiln's C API failed, with that call's message.
inline void must(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) throw Error(status, kilnGetLastErrorMessage());
}

// The cuDNN status for one of Kiln's, numbered as KILN_CUDNN_STATUS says.
cudnnStatus_t status_of(kilnStatus_t status);
cudnnStatus_t in_callers_version(cudnnStatus_t status);

// Stores the message for this thread, after the function's name, and passes it to the program's
// callback. Returns the status.
cudnnStatus_t remember(const char* function, cudnnStatus_t status, const char* sentence) noexcept;

// The status and message of the exception that is being handled.
struct Caught {
  kilnStatus_t kiln;
  cudnnStatus_t status;
};
Caught remember_exception(const char* function) noexcept;

// Stores the real library's message if `status` is a failure. Returns the status.
cudnnStatus_t told_by_real(const char* function, cudnnStatus_t status) noexcept;

// The body of a function that can fail and is never forwarded: return guarded([&] { ... }).
template <class Body>
cudnnStatus_t guarded(Body&& body, const char* function = __builtin_FUNCTION()) noexcept {
  try {
    std::forward<Body>(body)();
    return CUDNN_STATUS_SUCCESS;
  } catch (...) {
    return remember_exception(function).status;
  }
}

}  // namespace kiln::cudnn
