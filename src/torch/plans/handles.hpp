// Kiln's handles: one for each thread and device, because a handle carries the stream, and PyTorch
// runs backward passes on threads of its own.
#pragma once

#include <string>

#include "kiln/kiln.h"

namespace kiln::torch {

// The calling thread's handle, on PyTorch's current stream of that device, with its workspace. Null
// where there is none; `why` then says so. A forked child gets handles of its own.
kilnHandle_t current_handle(kilnDeviceKind_t kind, int device_index, std::string& why);

// Changes in a forked child: what its parent's threads had begun is not there.
unsigned fork_count();

}  // namespace kiln::torch
