// A kernel's resources, read from its cubin (an ELF file) without driver or tools.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln {

struct KernelResources {
  int registers = 0;      // per thread
  int local_memory = 0;   // bytes per thread: the stack, which holds spilled registers
  int shared_memory = 0;  // static, bytes per block
  int code_bytes = 0;
};

// The resources of kernel `entry`. Throws INTERNAL_ERROR if `cubin` is no cubin with such a kernel.
KernelResources resources_of(std::span<const std::byte> cubin, const std::string& entry);

}  // namespace kiln
