#include "torch/policy/call_site.hpp"

#include <algorithm>

namespace kiln::torch {
namespace {

Results cheapest(std::span<const CallSite::Way> ways, double weight_of_host) {
  const auto total = [&](const CallSite::Way& way) {
    return way.cost.device_us + weight_of_host * way.cost.host_us;
  };
  return std::ranges::min_element(ways, {}, total)->native;
}

// A call that finds the stream idle at least once in so many times is one of a program that waits
// for the host: in a program whose GPU is busy, the host is many calls ahead, and the stream is
// idle after a synchronization at most. The stream of a program that waits for the host is busy
// most of the time, too, because kernels take almost as long as the calls between them.
constexpr int waits_for_host = 16;

}  // namespace

void CallSite::set(std::vector<Way> ways) {
  ways_ = std::move(ways);
  on_idle_ = cheapest(ways_, 1);
  // Ways that are about equally fast: the one with the fewest calls wins.
  constexpr double tie_breaker = 0.05;
  on_busy_ = cheapest(ways_, tie_breaker);
  measured_.store(true, std::memory_order_release);
}

Results CallSite::native_on(const StreamView& stream) {
  if (on_idle_ == on_busy_ || stream.captured()) return on_busy_;
  // The first calls after measuring do not count: other call sites still keep the stream busy.
  constexpr int skipped = 2, wanted = 32;
  int samples = samples_.load(std::memory_order_relaxed);
  if (samples < skipped + wanted) {
    samples = samples_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (samples > skipped && stream.idle()) idle_.fetch_add(1, std::memory_order_relaxed);
  }
  const int counted = std::clamp(samples - skipped, 0, wanted);
  const int idle = idle_.load(std::memory_order_relaxed);
  return idle > 0 && waits_for_host * idle >= counted ? on_idle_ : on_busy_;
}

}  // namespace kiln::torch
