#include "api/plan_cache.hpp"

#include <cstdint>
#include <variant>

namespace kiln::api {

namespace {

// A running hash of integers: multiply and fold, a few cycles each.
class Mixer {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  template <class Array>
  void add_all(const Array& values) {
    for (const auto value : values) add(static_cast<std::uint64_t>(value));
  }
  std::size_t result() const { return state_; }

 private:
  std::uint64_t state_ = 0x4b696c6eu;
};

std::size_t hash(const ConvolutionProblem& problem) {
  Mixer mixer;
  const std::int64_t scalars[] = {problem.type,        problem.rank,   problem.mode,
                                  problem.batch,       problem.groups, problem.in_channels,
                                  problem.out_channels};
  mixer.add_all(scalars);
  for (const Spatial* space : {&problem.in, &problem.filter, &problem.out, &problem.pad,
                               &problem.stride, &problem.dilation}) {
    mixer.add_all(*space);
  }
  mixer.add_all(problem.x_strides);
  mixer.add_all(problem.w_strides);
  mixer.add_all(problem.y_strides);
  return mixer.result();
}

}  // namespace

std::size_t ProblemHash::operator()(const Problem& problem) const {
  return std::visit([](const auto& value) { return hash(value); }, problem);
}

std::shared_ptr<const Plan> PlanCache::get(const std::shared_ptr<Device>& device,
                                           const Problem& problem) {
  const std::shared_ptr<Entry> entry = find_or_add(device, problem);
  if (!entry->ready.load(std::memory_order_acquire)) {
    const std::lock_guard lock(entry->finalizing);
    if (!entry->ready.load(std::memory_order_relaxed)) {
      entry->plan.finalize();
      entry->ready.store(true, std::memory_order_release);
    }
  }
  return {entry, &entry->plan};
}

std::size_t PlanCache::size() const {
  const std::lock_guard lock(mutex_);
  return recent_.size();
}

std::shared_ptr<PlanCache::Entry> PlanCache::find_or_add(const std::shared_ptr<Device>& device,
                                                         const Problem& problem) {
  std::shared_ptr<Entry> evicted;  // dies after the lock is released
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(problem); found != entries_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return recent_.front();
  }
  recent_.push_front(std::make_shared<Entry>(device, problem));
  try {
    entries_.emplace(problem, recent_.begin());
  } catch (...) {
    recent_.pop_front();
    throw;
  }
  if (recent_.size() > capacity) {
    evicted = std::move(recent_.back());
    entries_.erase(evicted->plan.problem());
    recent_.pop_back();
  }
  return recent_.front();
}

}  // namespace kiln::api
