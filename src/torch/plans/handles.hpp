// Kiln's handles: one for each thread and device. A handle has the current stream, which is a
// thread's own, and PyTorch runs backward passes on its own threads.
#pragma once

#include <string>

#include "kiln/kiln.h"

namespace kiln::torch {

// The calling thread's handle, set to PyTorch's current stream of the device and that stream's
// workspace. Null on failure, with the reason in `why`. A forked child gets handles of its own.
kilnHandle_t current_handle(kilnDeviceKind_t kind, int device_index, std::string& why);

// Whether this process, or one it was forked from, has made a handle.
bool has_handles();

// The number of forks between the first process and this one. State of another fork count belongs
// to the parent's threads and must not be waited for.
unsigned fork_count();

}  // namespace kiln::torch
