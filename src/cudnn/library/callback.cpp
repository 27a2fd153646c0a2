#include "cudnn/library/callback.hpp"

#include <unistd.h>

#include <chrono>

#include "core/process/per_process.hpp"
#include "cudnn/library/status.hpp"

namespace kiln::cudnn {
namespace {

struct Callback {
  unsigned mask = 0;
  void* user_data = nullptr;
  cudnnCallback_t function = nullptr;
};
constinit PerProcess<Callback> callback("cuDNN callback");

}  // namespace

void tell_callback(cudnnStatus_t status, const char* sentence) noexcept {
  try {
    const Callback to = *callback.lock();  // copied: the program's code runs without the lock
    if (to.function == nullptr || (to.mask & CUDNN_SEV_ERROR_EN) == 0) return;
    namespace chrono = std::chrono;
    const auto now =
        chrono::duration_cast<chrono::microseconds>(chrono::system_clock::now().time_since_epoch())
            .count();
    constexpr long long million = 1000000;
    cudnnDebug_t debug{};
    debug.cudnn_version = CUDNN_VERSION;
    debug.cudnnStatus = status;
    debug.time_sec = static_cast<unsigned>(now / million);
    debug.time_usec = static_cast<unsigned>(now % million);
    debug.pid = static_cast<unsigned long long>(getpid());
    debug.tid = static_cast<unsigned long long>(gettid());
    to.function(CUDNN_SEV_ERROR, to.user_data, &debug, sentence);
  } catch (...) {  // memory is short, or the program's callback throws
  }
}

}  // namespace kiln::cudnn

using kiln::cudnn::callback;
using kiln::cudnn::guarded;

cudnnStatus_t cudnnSetCallback(unsigned mask, void* udata, cudnnCallback_t fptr) {
  return guarded([&] { *callback.lock() = {mask, udata, fptr}; });
}

cudnnStatus_t cudnnGetCallback(unsigned* mask, void** udata, cudnnCallback_t* fptr) {
  return guarded([&] {
    const auto now = callback.lock();
    if (mask != nullptr) *mask = now->mask;
    if (udata != nullptr) *udata = now->user_data;
    if (fptr != nullptr) *fptr = now->function;
  });
}
