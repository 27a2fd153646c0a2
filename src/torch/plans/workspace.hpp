// Workspace for Kiln's kernels: one piece of device memory for each stream, from PyTorch's
// allocator, kept for the life of the process, as PyTorch keeps cuBLAS's workspace. Executions on
// one stream use it one after the other; different streams have different pieces. A captured CUDA
// graph may keep its address.
#pragma once

#include <cstddef>

namespace kiln::torch {

inline constexpr std::size_t workspace_bytes = std::size_t{16} << 20;  // of every plan and stream

// The workspace of a stream of the device; null if memory is short.
void* workspace_of(int device_index, void* stream);

}  // namespace kiln::torch
