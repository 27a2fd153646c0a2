#include "fake_libtorch.hpp"

#include <cstring>

namespace fake {
namespace {

struct Library {
  std::string name_space, key;
  std::vector<std::string> names;
};

}  // namespace

Torch& torch() {
  static Torch instance;
  return instance;
}

Tensor make(std::vector<std::int64_t> sizes, bool channels_last, std::int32_t type) {
  Tensor out;
  out.sizes = std::move(sizes);
  out.type = type;
  out.strides.resize(out.sizes.size());
  std::int64_t next = 1;
  const auto place = [&](std::size_t i) {
    out.strides[i] = next;
    next *= std::max<std::int64_t>(out.sizes[i], 1);
  };
  if (channels_last) place(1);
  for (std::size_t i = out.sizes.size(); i-- > 0;)
    if (i != 1 || !channels_last) place(i);
  out.storage = std::make_shared<std::vector<double>>(static_cast<std::size_t>(next) + 2);
  return out;
}

kiln::torch::Value give(const Tensor& tensor) {
  ++torch().tensors;
  return reinterpret_cast<kiln::torch::Value>(new Tensor(tensor));
}

kiln::torch::Value give_optional(const Tensor* tensor) {
  if (tensor == nullptr) return 0;
  return reinterpret_cast<kiln::torch::Value>(new kiln::torch::Value(give(*tensor)));
}

kiln::torch::Value give_list(const std::vector<std::int64_t>& list) {
  ++torch().lists;
  return reinterpret_cast<kiln::torch::Value>(
      new std::vector<kiln::torch::Value>(list.begin(), list.end()));
}

Tensor take(kiln::torch::Value value) {
  const std::unique_ptr<Tensor> tensor(reinterpret_cast<Tensor*>(value));
  --torch().tensors;
  return *tensor;
}

}  // namespace fake

using namespace kiln::torch;  // the names of the handles

namespace {

fake::Tensor& tensor(TensorHandle handle) { return *reinterpret_cast<fake::Tensor*>(handle); }
std::vector<Value>& list(ListHandle handle) {
  return *reinterpret_cast<std::vector<Value>*>(handle);
}
fake::Library& library(LibraryHandle handle) { return *reinterpret_cast<fake::Library*>(handle); }

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int aoti_torch_library_init_impl(const char* name_space, const char* key, const char*,
                                      std::uint32_t, LibraryHandle* out) {
  *out = reinterpret_cast<LibraryHandle>(new fake::Library{name_space, key, {}});
  return 0;
}
FAKE int torch_library_impl(LibraryHandle handle, const char* name, Kernel kernel, std::uint64_t) {
  fake::Library& l = library(handle);
  l.names.push_back(l.name_space + "::" + name + " " + l.key);
  fake::torch().kernels[l.names.back()] = kernel;
  return 0;
}
FAKE int aoti_torch_delete_library_object(LibraryHandle handle) {
  const std::unique_ptr<fake::Library> l(&library(handle));
  for (const std::string& name : l->names) fake::torch().kernels.erase(name);
  return 0;
}
FAKE int torch_call_dispatcher(const char* name, const char*, Value* stack, std::uint64_t) {
  ++fake::torch().calls[name];
  const auto found = fake::torch().operators.find(name);
  return found == fake::torch().operators.end() ? 1 : found->second(stack);
}
FAKE int torch_new_list_reserve_size(std::size_t, ListHandle* out) {
  *out = reinterpret_cast<ListHandle>(fake::give_list({}));
  return 0;
}
FAKE int torch_list_size(ListHandle handle, std::size_t* size) {
  *size = list(handle).size();
  return 0;
}
FAKE int torch_list_get_item(ListHandle handle, std::size_t index, Value* item) {
  *item = list(handle).at(index);
  return 0;
}
FAKE int torch_list_push_back(ListHandle handle, Value item) {
  list(handle).push_back(item);
  return 0;
}
FAKE int torch_delete_list(ListHandle handle) {
  delete &list(handle);
  --fake::torch().lists;
  return 0;
}
FAKE int torch_get_const_data_ptr(TensorHandle handle, const void** out) {
  *out = tensor(handle).data<char>();
  return 0;
}
FAKE int torch_get_mutable_data_ptr(TensorHandle handle, void** out) {
  *out = tensor(handle).data<char>();
  return 0;
}
FAKE int aoti_torch_get_dim(TensorHandle handle, std::int64_t* out) {
  *out = static_cast<std::int64_t>(tensor(handle).sizes.size());
  return 0;
}
FAKE int aoti_torch_get_sizes(TensorHandle handle, std::int64_t** out) {
  *out = tensor(handle).sizes.data();
  return 0;
}
FAKE int aoti_torch_get_strides(TensorHandle handle, std::int64_t** out) {
  *out = tensor(handle).strides.data();
  return 0;
}
FAKE int aoti_torch_get_dtype(TensorHandle handle, std::int32_t* out) {
  *out = tensor(handle).type;
  return 0;
}
FAKE int aoti_torch_get_device_type(TensorHandle handle, std::int32_t* out) {
  *out = tensor(handle).device;
  return 0;
}
FAKE int aoti_torch_get_device_index(TensorHandle handle, std::int32_t* out) {
  *out = tensor(handle).index;
  return 0;
}
FAKE int aoti_torch_is_defined(TensorHandle handle, bool* out) {
  *out = tensor(handle).defined;
  return 0;
}
FAKE int aoti_torch_new_uninitialized_tensor(TensorHandle* out) {
  fake::Tensor undefined;
  undefined.defined = false;
  *out = reinterpret_cast<TensorHandle>(fake::give(undefined));
  return 0;
}
FAKE int aoti_torch_new_tensor_handle(TensorHandle handle, TensorHandle* out) {
  *out = reinterpret_cast<TensorHandle>(fake::give(tensor(handle)));
  return 0;
}
FAKE int aoti_torch_delete_tensor_object(TensorHandle handle) {
  fake::take(reinterpret_cast<Value>(handle));
  return 0;
}
FAKE int aoti_torch_empty_strided(std::int64_t rank, const std::int64_t* sizes,
                                  const std::int64_t* strides, std::int32_t type,
                                  std::int32_t device, std::int32_t index, TensorHandle* out) {
  if (fake::torch().out_of_memory) return 1;
  fake::Tensor made = fake::make({sizes, sizes + rank}, false, type);
  made.strides.assign(strides, strides + rank);
  made.device = device;
  made.index = index;
  std::memset(made.storage->data(), 0xff, made.storage->size() * sizeof(double));  // NaN
  *out = reinterpret_cast<TensorHandle>(fake::give(made));
  return 0;
}
// Tensors of f32, for the copies into another layout.
FAKE int aoti_torch_copy_(TensorHandle to_handle, TensorHandle from_handle, std::int32_t) {
  const fake::Tensor &to = tensor(to_handle), &from = tensor(from_handle);
  if (to.type != 6) return 1;
  std::vector<std::int64_t> index(to.sizes.size());
  for (;;) {
    std::int64_t at = 0, source = 0;
    for (std::size_t i = 0; i < index.size(); ++i) {
      at += index[i] * to.strides[i];
      source += index[i] * from.strides[i];
    }
    to.data<float>()[at] = from.data<float>()[source];
    std::size_t i = 0;
    while (i < index.size() && ++index[i] == to.sizes[i]) index[i++] = 0;
    if (i == index.size()) return 0;
  }
}
FAKE std::uint64_t aoti_torch_abi_version() { return abi_version; }
FAKE std::int32_t aoti_torch_dtype_float32() { return 6; }
FAKE std::int32_t aoti_torch_dtype_float64() { return 7; }
FAKE std::int32_t aoti_torch_dtype_float16() { return 5; }
FAKE std::int32_t aoti_torch_dtype_bfloat16() { return 15; }
FAKE std::int32_t aoti_torch_device_type_cpu() { return 0; }
FAKE std::int32_t aoti_torch_device_type_cuda() { return 1; }

// PyTorch's own kernels: they call what the test put there, and count as "native" ones.
FAKE int aoti_torch_cpu_convolution(TensorHandle, TensorHandle, TensorHandle*, const std::int64_t*,
                                    std::int64_t, const std::int64_t*, std::int64_t,
                                    const std::int64_t*, std::int64_t, std::int32_t,
                                    const std::int64_t*, std::int64_t, std::int64_t,
                                    TensorHandle* result) {
  Value stack[1] = {0};
  const int status = torch_call_dispatcher("native forward", "", stack, 0);
  *result = reinterpret_cast<TensorHandle>(stack[0]);
  return status;
}
// The operator gets the mask as three Values, and leaves three tensors in their place.
FAKE int aoti_torch_cpu_convolution_backward(TensorHandle, TensorHandle, TensorHandle,
                                             const std::int64_t**, std::int64_t,
                                             const std::int64_t*, std::int64_t, const std::int64_t*,
                                             std::int64_t, const std::int64_t*, std::int64_t,
                                             std::int32_t, const std::int64_t*, std::int64_t,
                                             std::int64_t, const std::int32_t* mask, std::int64_t,
                                             TensorHandle* dx, TensorHandle* dw, TensorHandle* db) {
  Value stack[3] = {Value(mask[0]), Value(mask[1]), Value(mask[2])};
  const int status = torch_call_dispatcher("native backward", "", stack, 0);
  *dx = reinterpret_cast<TensorHandle>(stack[0]);
  *dw = reinterpret_cast<TensorHandle>(stack[1]);
  *db = reinterpret_cast<TensorHandle>(stack[2]);
  return status;
}
