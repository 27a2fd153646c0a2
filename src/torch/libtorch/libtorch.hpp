// The C functions of LibTorch's stable ABI that the extension calls. They are declared here and
// looked up in the library that PyTorch has loaded, so the extension is built without PyTorch and
// one binary serves every release from 2.10 on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kiln::torch {

// One argument or result of an operator: an integer, a boolean, or a handle. An optional is 0 if it
// has no value, else the address of a Value on the heap. The receiver of a Value owns it.
using Value = std::uint64_t;
using TensorHandle = struct TensorOpaque*;
using ListHandle = struct ListOpaque*;
using LibraryHandle = struct LibraryOpaque*;
using GuardHandle = struct GuardOpaque*;
// An operator's kernel: takes its arguments from the stack and leaves its results there.
using Kernel = void (*)(Value* stack, std::uint64_t arguments, std::uint64_t results);

// The PyTorch release whose ABI the calls follow: 2.10.0.
inline constexpr std::uint64_t abi_version = std::uint64_t{2} << 56 | std::uint64_t{10} << 48;

// Functions that return int return 0 on success.
// clang-format off
#define KILN_LIBTORCH_FUNCTIONS(X)                                                                 \
  X(int, torch_library_impl, (LibraryHandle, const char* name, Kernel, std::uint64_t version))     \
  X(int, aoti_torch_library_init_impl, (const char* name_space, const char* key, const char* file, \
                                        std::uint32_t line, LibraryHandle*))                       \
  X(int, aoti_torch_delete_library_object, (LibraryHandle))                                        \
  X(int, torch_call_dispatcher, (const char* name, const char* overload, Value* stack,             \
                                 std::uint64_t version))                                           \
  X(int, torch_new_list_reserve_size, (std::size_t, ListHandle*))                                  \
  X(int, torch_list_size, (ListHandle, std::size_t*))                                              \
  X(int, torch_list_get_item, (ListHandle, std::size_t index, Value*))                             \
  X(int, torch_list_push_back, (ListHandle, Value))                                                \
  X(int, torch_delete_list, (ListHandle))                                                          \
  X(int, torch_get_const_data_ptr, (TensorHandle, const void**))                                   \
  X(int, torch_get_mutable_data_ptr, (TensorHandle, void**))                                       \
  X(int, aoti_torch_get_dim, (TensorHandle, std::int64_t*))                                        \
  X(int, aoti_torch_get_sizes, (TensorHandle, std::int64_t**))                                     \
  X(int, aoti_torch_get_strides, (TensorHandle, std::int64_t**))                                   \
  X(int, aoti_torch_get_dtype, (TensorHandle, std::int32_t*))                                      \
  X(int, aoti_torch_get_device_type, (TensorHandle, std::int32_t*))                                \
  X(int, aoti_torch_get_device_index, (TensorHandle, std::int32_t*))                               \
  X(int, aoti_torch_is_defined, (TensorHandle, bool*))                                             \
  X(int, aoti_torch_new_uninitialized_tensor, (TensorHandle*))                                     \
  X(int, aoti_torch_new_tensor_handle, (TensorHandle, TensorHandle*))                              \
  X(int, aoti_torch_delete_tensor_object, (TensorHandle))                                          \
  X(int, aoti_torch_empty_strided, (std::int64_t rank, const std::int64_t* sizes,                  \
                                    const std::int64_t* strides, std::int32_t type,                \
                                    std::int32_t device_type, std::int32_t device_index,           \
                                    TensorHandle*))                                                \
  X(int, aoti_torch_copy_, (TensorHandle to, TensorHandle from, std::int32_t non_blocking))        \
  X(std::uint64_t, aoti_torch_abi_version, ())                                                     \
  X(std::int32_t, aoti_torch_dtype_float32, ())                                                    \
  X(std::int32_t, aoti_torch_dtype_float64, ())                                                    \
  X(std::int32_t, aoti_torch_dtype_float16, ())                                                    \
  X(std::int32_t, aoti_torch_dtype_bfloat16, ())                                                   \
  X(std::int32_t, aoti_torch_device_type_cpu, ())                                                  \
  X(std::int32_t, aoti_torch_device_type_cuda, ())
// Functions that only PyTorch's CUDA builds have.
#define KILN_LIBTORCH_CUDA_FUNCTIONS(X)                                                            \
  X(int, aoti_torch_get_current_cuda_stream, (std::int32_t device_index, void** stream))           \
  X(int, aoti_torch_create_cuda_guard, (std::int32_t device_index, GuardHandle*))                  \
  X(int, aoti_torch_delete_cuda_guard, (GuardHandle))
// clang-format on

// PyTorch's own implementations of the two operators, called without the dispatcher, through the C
// functions that AOTInductor's compiled models use. A list is an address and a length.
using NativeForward = int (*)(TensorHandle input, TensorHandle weight, TensorHandle* bias,
                              const std::int64_t* stride, std::int64_t, const std::int64_t* padding,
                              std::int64_t, const std::int64_t* dilation, std::int64_t,
                              std::int32_t transposed, const std::int64_t* output_padding,
                              std::int64_t, std::int64_t groups, TensorHandle* result);
using NativeBackward = int (*)(TensorHandle grad_output, TensorHandle input, TensorHandle weight,
                               const std::int64_t** bias_sizes, std::int64_t,
                               const std::int64_t* stride, std::int64_t,
                               const std::int64_t* padding, std::int64_t,
                               const std::int64_t* dilation, std::int64_t, std::int32_t transposed,
                               const std::int64_t* output_padding, std::int64_t,
                               std::int64_t groups, const std::int32_t* mask, std::int64_t,
                               TensorHandle* dx, TensorHandle* dw, TensorHandle* db);
struct NativeKernels {
  NativeForward forward = nullptr;    // null if this PyTorch lacks it
  NativeBackward backward = nullptr;  // null if this PyTorch lacks it
};

struct LibTorch {
#define KILN_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  KILN_LIBTORCH_FUNCTIONS(KILN_DECLARE)
  KILN_LIBTORCH_CUDA_FUNCTIONS(KILN_DECLARE)
#undef KILN_DECLARE

  // Gives a warning; null if this PyTorch lacks it.
  void (*aoti_torch_warn)(const char* function, const char* file, std::uint32_t line,
                          const char* text) = nullptr;
  // The values of the getters above, read once.
  std::int32_t float32, float64, float16, bfloat16, cpu, cuda;
  std::uint64_t version;
  NativeKernels native_cpu, native_cuda;
};

// Looks the functions up in the libtorch_cpu.so that the process has loaded, and in
// libtorch_cuda.so if it is loaded, too. Returns "", or the reason why this PyTorch is not
// supported.
std::string load_libtorch();
// The functions. Requires that load_libtorch() returned "".
const LibTorch& libtorch();

// Throws std::runtime_error if `status` is not 0; PyTorch turns it into a RuntimeError.
void check(int status, const char* call);

}  // namespace kiln::torch
