#include "plan/compile_slots.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>

#include "core/config.hpp"
#include "core/process/per_process.hpp"

namespace kiln {
namespace {

struct Slots {
  std::condition_variable freed;
  int taken = 0;
};
constinit PerProcess<Slots> slots("compile slots");

std::atomic<int>& limit() {
  static constinit Once<std::atomic<int>> instance("compile limit");
  return instance.get([] { return config().compile_threads; });
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
