#include "torch/policy.hpp"

#include <atomic>
#include <bit>
#include <shared_mutex>
#include <unordered_map>

#include "torch/choices.hpp"
#include "torch/stream_clock.hpp"

namespace kiln::torch {
namespace {

std::atomic<Policy> global_policy{Policy::wait};
thread_local int thread_policy = -1;

struct LayerPolicies {
  std::shared_mutex mutex;
  std::unordered_map<std::uint64_t, Policy> map;
  std::atomic<bool> any{false};
};
LayerPolicies& layers() {
  static auto* const policies = new LayerPolicies;
  return *policies;
}

}  // namespace

void set_policy(Policy policy) { global_policy.store(policy); }

void set_thread_policy(int policy) { thread_policy = policy; }

std::uint64_t layer_of(const Tensor& x, const Tensor& w, const Geometry& g) {
  std::uint64_t hash = 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(x.type());
  const auto mix = [&](std::int64_t value) {
    hash = (std::rotl(hash, 27) ^ static_cast<std::uint64_t>(value)) * 0x9fb21c651e98df25;
  };
  for (const std::int64_t size : x.sizes()) mix(size);
  for (const std::int64_t size : w.sizes()) mix(size);
  for (int i = 0; i < 3; ++i) {
    mix(g.stride[i]);
    mix(g.padding[i]);
    mix(g.dilation[i]);
  }
  mix(g.transposed ? -g.groups : g.groups);
  return hash;
}

Policy forward_policy(std::uint64_t layer) {
  LayerPolicies& l = layers();
  if (thread_policy < 0) {
    if (l.any.load(std::memory_order_acquire)) {
      const std::scoped_lock lock(l.mutex);
      l.map.erase(layer);
    }
    return global_policy.load(std::memory_order_relaxed);
  }
  const auto policy = static_cast<Policy>(thread_policy);
  const std::scoped_lock lock(l.mutex);
  l.map[layer] = policy;
  l.any.store(true, std::memory_order_release);
  return policy;
}

Policy backward_policy(std::uint64_t layer) {
  LayerPolicies& l = layers();
  if (l.any.load(std::memory_order_acquire)) {
    const std::shared_lock lock(l.mutex);
    if (const auto found = l.map.find(layer); found != l.map.end()) return found->second;
  }
  return global_policy.load(std::memory_order_relaxed);
}

Road road_of(PlanEntry& entry, kilnHandle_t handle, Policy policy) {
  using State = PlanEntry::State;
  using Verdict = PlanEntry::Verdict;
  if (policy == Policy::native || entry.state() == State::refused) return Road::native;
  if (policy == Policy::measure && entry.verdict() == Verdict::native) return Road::native;
  if (entry.state() != State::ready) {
    if (policy == Policy::wait)
      entry.finalize(handle);
    else
      entry.finalize_in_background(handle);
    if (policy == Policy::measure && entry.verdict() == Verdict::unknown) recall_choice(entry);
    if (policy == Policy::measure && entry.verdict() == Verdict::native) return Road::native;
    if (entry.state() != State::ready) return Road::native;
  }
  if (policy != Policy::measure || entry.verdict() != Verdict::unknown) return Road::kiln;
  return StreamClock::usable(entry.request.device_kind, handle) ? Road::measure : Road::kiln;
}

void measure(PlanEntry& entry, const std::function<void()>& kiln,
             const std::function<void()>& native) {
  const std::unique_lock lock(entry.measuring(), std::try_to_lock);
  if (!lock.owns_lock()) return kiln();
  const StreamClock clock(entry.request.device_kind, entry.request.device_index);
  // Both once before: kernels load, cuDNN tries its algorithms, the allocator finds its blocks.
  native();
  kiln();
  constexpr int rounds = 5;
  const auto [kiln_us, native_us] = clock.alternate(rounds, kiln, native);
  const bool wins = kiln_us <= native_us;
  entry.set_verdict(wins ? PlanEntry::Verdict::kiln : PlanEntry::Verdict::native, kiln_us,
                    native_us);
  remember_choice(entry, kiln_us, native_us);
}

}  // namespace kiln::torch
