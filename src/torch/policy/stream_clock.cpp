#include "torch/policy/stream_clock.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <vector>

#include "torch/libtorch/tensor.hpp"
#include "torch/policy/rotation.hpp"

namespace kiln::torch {
namespace {

#define KILN_NAME_TEXT(name) #name
// Expands cuda.h's macros, such as cuMemsetD32Async_v2.
#define KILN_NAME(name) KILN_NAME_TEXT(name)

struct Driver {
  decltype(&::cuStreamIsCapturing) is_capturing = nullptr;
  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventDestroy) event_destroy = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventSynchronize) event_synchronize = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed = nullptr;
  decltype(&::cuStreamQuery) stream_query = nullptr;
  decltype(&::cuMemsetD32Async) memset = nullptr;
  decltype(&::cuMemcpyDtoDAsync) copy = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuDeviceGetName) device_get_name = nullptr;
  bool found = false;

  Driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return;
    found = true;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      found = found && function != nullptr;
    };
    find(is_capturing, "cuStreamIsCapturing");
    find(event_create, "cuEventCreate");
    find(event_destroy, KILN_NAME(cuEventDestroy));
    find(event_record, "cuEventRecord");
    find(event_synchronize, "cuEventSynchronize");
    find(event_elapsed, KILN_NAME(cuEventElapsedTime));
    find(device_get, "cuDeviceGet");
    find(device_get_attribute, "cuDeviceGetAttribute");
    find(device_get_name, "cuDeviceGetName");
    find(stream_query, "cuStreamQuery");
    find(memset, KILN_NAME(cuMemsetD32Async));
    find(copy, KILN_NAME(cuMemcpyDtoDAsync));
  }
};

const Driver& driver() {
  static const Driver found;
  return found;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

class Event {
 public:
  Event() { driver().event_create(&handle_, CU_EVENT_DEFAULT); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { driver().event_destroy(handle_); }
  void record(CUstream stream) const { driver().event_record(handle_, stream); }
  double microseconds_to(const Event& later) const {
    float milliseconds = 0;
    driver().event_synchronize(later.handle_);
    driver().event_elapsed(&milliseconds, handle_, later.handle_);
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  CUevent handle_ = nullptr;
};

struct Sample {
  Event begin, end;
};

// Microseconds that the host needs for it.
double host_us(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

struct StreamClock::State {
  bool cuda = false;
  int device_index = 0;
  GuardHandle guard = nullptr;
  CUstream stream = nullptr;
  Tensor scratch;  // written between samples; undefined if memory is short
  std::size_t words = 0;

  // Keeps the stream busy for at least these microseconds, as far as memory is there for it.
  void occupy_stream(double microseconds) const {
    if (!scratch.defined()) return;
    const auto target = reinterpret_cast<CUdeviceptr>(scratch.mutable_data());
    constexpr double each = 35;  // microseconds of 128 MiB at 3.8 TB/s
    constexpr int least = 8, most = 100;
    const int writes = std::clamp(static_cast<int>(microseconds / each), least, most);
    for (int i = 0; i < writes; ++i) driver().memset(target, 0, words, stream);
  }

  std::size_t cache_bytes() const {
    CUdevice device = 0;
    int bytes = 0;
    if (driver().device_get(&device, device_index) != CUDA_SUCCESS ||
        driver().device_get_attribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) !=
            CUDA_SUCCESS)
      return 0;
    return static_cast<std::size_t>(bytes);
  }

  // Without a GPU nothing is in a row, and two sets show that the results do not depend on them.
  std::unique_ptr<Rotation> rotation_of(std::span<Tensor* const> operands) const {
    if (!cuda)
      return std::make_unique<Rotation>(
          operands, 0, 2, 2,
          [](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
    constexpr int most = 16;
    return std::make_unique<Rotation>(
        operands, cache_bytes(), 1, most, [this](void* to, const void* from, std::size_t bytes) {
          driver().copy(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                        bytes, stream);
        });
  }
};

bool StreamView::captured() const {
  if (device_kind_ != KILN_DEVICE_CUDA) return false;
  void* stream = nullptr;
  kilnGetStream(handle_, &stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return !driver().found ||
         driver().is_capturing(static_cast<CUstream>(stream), &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool StreamView::idle() const {
  if (device_kind_ != KILN_DEVICE_CUDA || !driver().found) return false;
  void* stream = nullptr;
  kilnGetStream(handle_, &stream);
  return driver().stream_query(static_cast<CUstream>(stream)) == CUDA_SUCCESS;
}

StreamClock::StreamClock(int device_kind, int device_index) : state_(std::make_unique<State>()) {
  state_->cuda = device_kind == KILN_DEVICE_CUDA;
  state_->device_index = device_index;
  if (!state_->cuda) return;
  const LibTorch& torch = libtorch();
  torch.aoti_torch_create_cuda_guard(device_index, &state_->guard);
  void* stream = nullptr;
  torch.aoti_torch_get_current_cuda_stream(device_index, &stream);
  state_->stream = static_cast<CUstream>(stream);
  constexpr std::int64_t words = std::int64_t{32} << 20;  // 128 MiB
  constexpr std::int64_t one = 1;
  TensorHandle scratch = nullptr;
  if (torch.aoti_torch_empty_strided(1, &words, &one, torch.float32, torch.cuda, device_index,
                                     &scratch) != 0)
    return;
  state_->scratch = Tensor(scratch);
  state_->words = static_cast<std::size_t>(words);
}

StreamClock::~StreamClock() {
  state_->scratch = Tensor();
  if (state_->guard != nullptr) libtorch().aoti_torch_delete_cuda_guard(state_->guard);
}

std::vector<Cost> StreamClock::compare(int rounds, std::span<Tensor* const> operands,
                                       const std::vector<std::function<void()>>& runs) const {
  const std::unique_ptr<Rotation> rotation = state_->rotation_of(operands);
  constexpr int least_in_row = 3;
  const int row = state_->cuda ? std::max(rotation->sets(), least_in_row) : 1;
  const auto in_a_row = [&](const std::function<void()>& run) {
    for (int i = 0; i < row; ++i) {
      rotation->turn();
      run();
    }
  };
  // Kernels are loaded, cuDNN tries its algorithms, the allocator gets its blocks; then it shows
  // for how long the host is busy with a row.
  std::vector<double> busy;
  for (const auto& run : runs) {
    run();
    busy.push_back(host_us(run) * row);
  }
  std::vector<std::vector<double>> host(runs.size()), device(runs.size());
  std::vector<std::deque<Sample>> samples(runs.size());  // deques: events must not move in memory
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!state_->cuda) {
        device[i].push_back(host_us([&] { in_a_row(runs[i]); }));
        host[i].push_back(0);
        continue;
      }
      constexpr double reserve = 1.5;
      state_->occupy_stream(reserve * busy[i]);
      const Sample& sample = samples[i].emplace_back();
      sample.begin.record(state_->stream);
      host[i].push_back(host_us([&] { in_a_row(runs[i]); }) / row);
      sample.end.record(state_->stream);
    }
  std::vector<Cost> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Sample& sample : samples[i])
      device[i].push_back(sample.begin.microseconds_to(sample.end) / row);
    out.push_back({median(device[i]), median(host[i])});
  }
  return out;
}

std::string device_name(int device_kind, int device_index) {
  if (device_kind != KILN_DEVICE_CUDA) return "host";
  CUdevice device = 0;
  char name[256] = "";
  if (driver().found && driver().device_get(&device, device_index) == CUDA_SUCCESS)
    driver().device_get_name(name, sizeof name, device);
  return name;
}

}  // namespace kiln::torch
