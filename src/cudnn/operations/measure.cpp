#include "cudnn/operations/measure.hpp"

#include <chrono>

#include "device/cuda/driver.hpp"

namespace kiln::cudnn {
namespace {

class Event {
 public:
  Event() {
    cuda::check(cuda::driver().cuEventCreate(&handle_, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cuda::driver().cuEventDestroy(handle_); }
  void record(void* stream) const {
    cuda::check(cuda::driver().cuEventRecord(handle_, static_cast<CUstream>(stream)),
                "cuEventRecord");
  }
  float milliseconds_to(const Event& later) const {
    float out = 0;
    cuda::check(cuda::driver().cuEventSynchronize(later.handle_), "cuEventSynchronize");
    cuda::check(cuda::driver().cuEventElapsedTime(&out, handle_, later.handle_),
                "cuEventElapsedTime");
    return out;
  }

 private:
  CUevent handle_ = nullptr;
};

}  // namespace

float milliseconds(const cudnnContext& context, const std::function<void()>& work) {
  work();
  if (context.device_kind == KILN_DEVICE_HOST) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    work();
    return std::chrono::duration<float, std::milli>(Clock::now() - begin).count();
  }
  constexpr int runs = 5;
  const Event begin, end;
  begin.record(context.stream);
  for (int i = 0; i < runs; ++i) work();
  end.record(context.stream);
  return begin.milliseconds_to(end) / runs;
}

}  // namespace kiln::cudnn
