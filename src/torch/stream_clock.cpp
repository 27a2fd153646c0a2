#include "torch/stream_clock.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "torch/tensor.hpp"

namespace kiln::torch {
namespace {

#define KILN_NAME_TEXT(name) #name
#define KILN_NAME(name) KILN_NAME_TEXT(name)  // after cuda.h's macros: cuMemsetD32Async_v2 and such

struct Driver {
  decltype(&::cuStreamIsCapturing) is_capturing = nullptr;
  decltype(&::cuEventCreate) event_create = nullptr;
  decltype(&::cuEventDestroy) event_destroy = nullptr;
  decltype(&::cuEventRecord) event_record = nullptr;
  decltype(&::cuEventSynchronize) event_synchronize = nullptr;
  decltype(&::cuEventElapsedTime) event_elapsed = nullptr;
  decltype(&::cuMemsetD32Async) memset = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
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
    find(device_get_name, "cuDeviceGetName");
    find(memset, KILN_NAME(cuMemsetD32Async));
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

}  // namespace

struct StreamClock::State {
  bool cuda = false;
  GuardHandle guard = nullptr;
  CUstream stream = nullptr;
  Tensor scratch;  // what is written between samples; not defined where memory is short
  std::size_t words = 0;
};

bool StreamClock::usable(int device_kind, kilnHandle_t handle) {
  if (device_kind != KILN_DEVICE_CUDA) return true;
  void* stream = nullptr;
  kilnGetStream(handle, &stream);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver().found &&
         driver().is_capturing(static_cast<CUstream>(stream), &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

StreamClock::StreamClock(int device_kind, int device_index) : state_(std::make_unique<State>()) {
  state_->cuda = device_kind == KILN_DEVICE_CUDA;
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

StreamClock::Times StreamClock::alternate(int rounds, const std::function<void()>& first,
                                          const std::function<void()>& second) const {
  std::vector<double> firsts, seconds;
  if (!state_->cuda) {
    const auto sample = [](const std::function<void()>& run) {
      const auto start = std::chrono::steady_clock::now();
      run();
      return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
          .count();
    };
    for (int i = 0; i < rounds; ++i) {
      firsts.push_back(sample(first));
      seconds.push_back(sample(second));
    }
    return {median(firsts), median(seconds)};
  }
  struct Sample {
    Event begin, end;
  };
  std::vector<Sample> samples(2 * static_cast<std::size_t>(rounds));
  const auto enqueue = [&](const Sample& sample, const std::function<void()>& run) {
    constexpr int writes = 8;  // some 400 microseconds at 2.5 TB/s
    for (int i = 0; i < writes && state_->scratch.defined(); ++i)
      driver().memset(reinterpret_cast<CUdeviceptr>(state_->scratch.mutable_data()), 0,
                      state_->words, state_->stream);
    sample.begin.record(state_->stream);
    run();
    sample.end.record(state_->stream);
  };
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    enqueue(samples[i], first);
    enqueue(samples[i + 1], second);
  }
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    firsts.push_back(samples[i].begin.microseconds_to(samples[i].end));
    seconds.push_back(samples[i + 1].begin.microseconds_to(samples[i + 1].end));
  }
  return {median(firsts), median(seconds)};
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
