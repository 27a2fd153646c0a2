#include "torch/plans/workspace.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

void* workspace_of(int device_index, void* stream) {
  // Never destroyed: PyTorch may be unloaded before this library.
  static auto& pieces = *new std::map<std::pair<int, void*>, void*>;
  static auto& mutex = *new std::mutex;
  const std::scoped_lock lock(mutex);
  const auto found = pieces.find({device_index, stream});
  if (found != pieces.end()) return found->second;
  const LibTorch& torch = libtorch();
  const std::int64_t elements = workspace_bytes / sizeof(float), stride = 1;
  TensorHandle tensor = nullptr;
  void* address = nullptr;
  if (torch.aoti_torch_empty_strided(1, &elements, &stride, torch.float32, torch.cuda, device_index,
                                     &tensor) != 0)
    return nullptr;
  if (torch.torch_get_mutable_data_ptr(tensor, &address) != 0) {
    torch.aoti_torch_delete_tensor_object(tensor);
    return nullptr;
  }
  return pieces[{device_index, stream}] = address;  // the tensor is never freed
}

}  // namespace kiln::torch
