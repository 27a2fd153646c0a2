// Device memory that Kiln's kernels may use: one piece a stream, from PyTorch's allocator, for as
// long as the process lives, as PyTorch keeps cuBLAS's. So executions on one stream take turns with
// it, and those on two streams do not meet. A captured CUDA graph finds it at the same place.
#pragma once

#include <cstddef>

namespace kiln::torch {

inline constexpr std::size_t workspace_bytes = std::size_t{16} << 20;  // of a plan, and of a stream

// That of PyTorch's current stream of the device; null if there is no memory for it.
void* workspace_of(int device_index, void* stream);

}  // namespace kiln::torch
