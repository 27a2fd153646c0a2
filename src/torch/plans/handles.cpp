#include "torch/plans/handles.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "torch/libtorch/libtorch.hpp"
#include "torch/plans/workspace.hpp"

namespace kiln::torch {
namespace {

std::atomic<unsigned> forks{0};
std::atomic<bool> made_one{false};

struct Owned {
  kilnDeviceKind_t kind;
  int index;
  kilnHandle_t handle;
  void* stream = nullptr;
  bool has_workspace = false;  // whether the handle has its stream's workspace
};

class ThreadHandles {
 public:
  ThreadHandles() = default;
  ThreadHandles(const ThreadHandles&) = delete;
  ThreadHandles& operator=(const ThreadHandles&) = delete;
  ~ThreadHandles() {
    for (const Owned& owned : handles_) kilnDestroy(owned.handle);
  }

  Owned* get(kilnDeviceKind_t kind, int index, std::string& why) {
    if (forks_ != fork_count()) {
      handles_.clear();  // forgets the parent's handles without destroying them
      forks_ = fork_count();
    }
    const auto found = std::ranges::find_if(
        handles_, [&](const Owned& o) { return o.kind == kind && o.index == index; });
    if (found != handles_.end()) return &*found;
    Owned fresh{kind, index, nullptr};
    made_one.store(true, std::memory_order_relaxed);
    if (kilnCreate(&fresh.handle, kind, index) != KILN_STATUS_SUCCESS) {
      why = kilnGetLastErrorMessage();
      return nullptr;
    }
    return &handles_.emplace_back(fresh);
  }

 private:
  std::vector<Owned> handles_;
  unsigned forks_ = fork_count();
};

}  // namespace

bool has_handles() { return made_one.load(std::memory_order_relaxed); }

unsigned fork_count() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  return forks.load(std::memory_order_relaxed);
}

kilnHandle_t current_handle(kilnDeviceKind_t kind, int device_index, std::string& why) {
  static thread_local ThreadHandles handles;
  const bool cuda = kind == KILN_DEVICE_CUDA;
  Owned* const owned = handles.get(kind, cuda ? device_index : 0, why);
  if (owned == nullptr || !cuda) return owned == nullptr ? nullptr : owned->handle;
  void* stream = nullptr;
  const auto get_stream = libtorch().aoti_torch_get_current_cuda_stream;
  if (get_stream == nullptr || get_stream(device_index, &stream) != 0) {
    why = "PyTorch gives no CUDA stream";
    return nullptr;
  }
  if (stream != owned->stream || !owned->has_workspace) {
    void* const workspace = workspace_of(device_index, stream);
    if (workspace == nullptr) {
      why = "PyTorch has no memory for Kiln's workspace of 16 MB";
      return nullptr;
    }
    kilnSetStream(owned->handle, stream);
    kilnSetWorkspace(owned->handle, workspace, workspace_bytes);
    owned->stream = stream;
    owned->has_workspace = true;
  }
  return owned->handle;
}

}  // namespace kiln::torch
