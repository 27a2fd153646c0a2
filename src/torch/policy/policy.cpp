#include "torch/policy/policy.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <shared_mutex>
#include <stdexcept>
#include <unordered_map>

#include "torch/policy/choices.hpp"

namespace kiln::torch {
namespace {

std::atomic<Policy> global_policy{Policy::wait};
std::atomic<kilnStandIn_t> allowed_stand_in{KILN_STAND_IN_QUICK};
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

void set_stand_in(kilnStandIn_t allowed) { allowed_stand_in.store(allowed); }

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
    mix(g.padding_after[i]);
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

bool kiln_can(PlanEntry& entry, kilnHandle_t handle, Policy policy) {
  using State = PlanEntry::State;
  if (policy == Policy::native || entry.state() == State::refused) return false;
  if (entry.state() == State::ready) return true;
  const bool background = policy == Policy::background;
  if (policy == Policy::wait)
    entry.finalize(handle);
  else
    entry.finalize_in_background(handle, background ? allowed_stand_in.load() : KILN_STAND_IN_NONE);
  return background ? entry.executable() : entry.state() == State::ready;
}

namespace {

// The state of a call's results: requested, ready to be computed by Kiln, and refused by Kiln.
struct Standing {
  Results wanted = 0, ready = 0, refused = 0;
};

Standing standing_of(const MeasuredCall& call) {
  Standing out;
  for (std::size_t i = 0; i < call.entries.size(); ++i) {
    PlanEntry* const entry = call.entries[i];
    if (entry == nullptr) continue;
    const Results bit = Results(1U << i);
    out.wanted |= bit;
    if (kiln_can(*entry, call.handle, Policy::measure)) out.ready |= bit;
    if (entry->state() == PlanEntry::State::refused) out.refused |= bit;
  }
  return out;
}

// The ways worth timing: all results by Kiln, all by PyTorch, and for a backward call with data and
// filter gradients also only one of these by PyTorch.
std::vector<Results> ways_of(const Standing& standing) {
  constexpr Results data = 1, filter = 2;
  std::vector<Results> out{standing.refused};
  const auto add = [&](Results native) {
    native |= standing.refused;
    if (std::ranges::find(out, native) == out.end()) out.push_back(native);
  };
  add(standing.wanted);
  if ((standing.wanted & data) != 0 && (standing.wanted & filter) != 0) {
    add(data);
    add(filter);
  }
  return out;
}

// Times all ways and sets the call site's ways. Throws std::runtime_error if one of them fails.
void measure(CallSite& site, const MeasuredCall& call, const Standing& standing) {
  const PlanRequest& request = first_of(call.entries).request;
  std::vector<CallSite::Way> ways;
  std::vector<std::function<void()>> runs;
  for (const Results native : ways_of(standing)) {
    ways.push_back({native, {}});
    runs.emplace_back([&call, native] { call.run(native); });
  }
  const StreamClock clock(request.device_kind, request.device_index);
  constexpr int rounds = 5;
  const std::vector<Cost> costs = clock.compare(rounds, call.operands, runs);
  for (std::size_t i = 0; i < ways.size(); ++i) ways[i].cost = costs[i];
  site.set(std::move(ways));
  remember_choice(call.entries, site);
}

// Measuring takes more memory than the call itself. If it fails, Kiln serves the call; errors of
// the call itself then show there.
void try_to_measure(CallSite& site, const MeasuredCall& call, const Standing& standing) {
  try {
    measure(site, call, standing);
  } catch (const std::runtime_error&) {
    site.give_up();
  }
}

}  // namespace

Results run_cheapest(const MeasuredCall& call) {
  const Standing standing = standing_of(call);
  const std::shared_ptr<CallSite> site = site_of(call.entries);
  const StreamView stream(first_of(call.entries).request.device_kind, call.handle);
  const auto pending = Results(standing.wanted & ~(standing.ready | standing.refused));
  Results native = pending == 0 ? standing.refused : standing.wanted;
  if (!site->measured()) {
    const std::unique_lock lock(site->measuring(), std::try_to_lock);
    if (lock.owns_lock() && !site->measured()) {
      if (site->first_look()) recall_choice(call.entries, *site);
      const bool can = pending == 0 && standing.ready != 0 && !site->given_up();
      if (can && !site->measured() && !stream.captured()) try_to_measure(*site, call, standing);
      for (PlanEntry* const entry : call.entries)
        if (entry != nullptr && site->measured()) entry->show(site);
    }
  }
  if (site->measured()) native = Results(site->native_on(stream) | pending | standing.refused);
  call.run(native);
  return native;
}

}  // namespace kiln::torch
