// The border where exceptions become the statuses of the cuDNN API, and a sentence.
#pragma once

#include <cudnn.h>

#include <utility>

#include "core/error.hpp"
#include "kiln/status.h"

namespace kiln::cudnn {

// Throws what Kiln's C API has just refused, with its sentence.
inline void must(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) throw Error(status, kilnGetLastErrorMessage());
}

// The status as the program knows it: KILN_CUDNN_STATUS says of which version.
cudnnStatus_t status_of(kilnStatus_t status);
cudnnStatus_t in_callers_version(cudnnStatus_t status);

// Keeps the sentence for this thread, behind the name of the function, and gives the status; a
// callback of the program's that wants errors gets it too.
cudnnStatus_t remember(const char* function, cudnnStatus_t status, const char* sentence) noexcept;

// The same for the exception that is being handled.
struct Caught {
  kilnStatus_t kiln;
  cudnnStatus_t status;
};
Caught remember_exception(const char* function) noexcept;

// What the library behind has said: keeps its sentence of a failure, and gives the status.
cudnnStatus_t told_by_real(const char* function, cudnnStatus_t status) noexcept;

// Every function that can fail and is Kiln's alone is guarded([&] { ... }).
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
