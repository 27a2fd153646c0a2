#include "plan/compile_slots.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <thread>

#include "core/config.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"

namespace kiln {
namespace {

struct Slots {
  std::condition_variable freed;
  int taken = 0;
};
constinit PerProcess<Slots> slots("compile slots");

int configured_threads() {
  const int fallback = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::string& text = config().compile_threads;
  if (text.empty()) return fallback;
  int count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && stop == text.data() + text.size() && count >= 1 && count <= 1024)
    return count;
  log::warn(cat("KILN_COMPILE_THREADS is ", text, "; expected 1 to 1024. It is ", fallback));
  return fallback;
}

std::atomic<int>& limit() {
  static constinit Once<std::atomic<int>> instance("compile limit");
  return instance.get(configured_threads);
}

}  // namespace

int compile_threads() { return limit(); }
void set_compile_threads(int count) { limit() = std::max(1, count); }

CompileSlot::CompileSlot() {
  auto all = slots.lock();
  all->freed.wait(all.lock(), [&] { return all->taken < compile_threads(); });
  ++all->taken;
}

CompileSlot::~CompileSlot() {
  const auto all = slots.lock();
  --all->taken;
  all->freed.notify_one();
}

}  // namespace kiln
