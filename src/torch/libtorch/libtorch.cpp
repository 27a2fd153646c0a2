#include "torch/libtorch/libtorch.hpp"

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>

namespace kiln::torch {
namespace {

LibTorch functions;

// The handle of a library that the process has loaded; null if it has not.
void* loaded_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_NOLOAD); }

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::string load() {
  void* const library = loaded_library("libtorch_cpu.so");
  if (library == nullptr) return "libtorch_cpu.so is not loaded; import torch first";
  std::string missing;
#define KILN_FIND(result, name, parameters)    \
  if (!find(library, #name, functions.name)) { \
    missing = #name;                           \
  }
  KILN_LIBTORCH_FUNCTIONS(KILN_FIND)
#undef KILN_FIND
  if (!missing.empty())
    return "this PyTorch has no C function " + missing + "; expected release 2.10 or later";
  if (void* const cuda = loaded_library("libtorch_cuda.so")) {
#define KILN_FIND(result, name, parameters) find(cuda, #name, functions.name);
    KILN_LIBTORCH_CUDA_FUNCTIONS(KILN_FIND)
#undef KILN_FIND
    find(cuda, "aoti_torch_cuda_convolution", functions.native_cuda.forward);
    find(cuda, "aoti_torch_cuda_convolution_backward", functions.native_cuda.backward);
  }
  find(library, "aoti_torch_warn", functions.aoti_torch_warn);
  find(library, "aoti_torch_cpu_convolution", functions.native_cpu.forward);
  find(library, "aoti_torch_cpu_convolution_backward", functions.native_cpu.backward);
  functions.float32 = functions.aoti_torch_dtype_float32();
  functions.float64 = functions.aoti_torch_dtype_float64();
  functions.float16 = functions.aoti_torch_dtype_float16();
  functions.bfloat16 = functions.aoti_torch_dtype_bfloat16();
  functions.cpu = functions.aoti_torch_device_type_cpu();
  functions.cuda = functions.aoti_torch_device_type_cuda();
  functions.version = functions.aoti_torch_abi_version();
  return "";
}

}  // namespace

std::string load_libtorch() {
  static std::once_flag once;
  static std::string why;
  std::call_once(once, [] { why = load(); });
  return why;
}

const LibTorch& libtorch() { return functions; }

void check(int status, const char* call) {
  if (status != 0)
    throw std::runtime_error(std::string("PyTorch's ") + call +
                             " failed; the reason is in its log");
}

}  // namespace kiln::torch
