#include "torch/plans/plan_table.hpp"

#include <algorithm>
#include <shared_mutex>
#include <unordered_map>

#include "torch/plans/failure.hpp"
#include "torch/plans/handles.hpp"

namespace kiln::torch {
namespace {

const char* name_of(kilnKernelOrigin_t origin) {
  switch (origin) {
    case KILN_KERNEL_COMPILED: return "compiled";
    case KILN_KERNEL_MEMORY: return "memory";
    case KILN_KERNEL_DISK: return "disk";
    case KILN_KERNEL_BUNDLE: return "bundle";
  }
  return "";
}

std::string text_of(kilnPlan_t plan, kilnPlanText_t which) {
  const char* text = nullptr;
  return kilnGetPlanText(plan, which, &text) == KILN_STATUS_SUCCESS ? text : "";
}

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<PlanRequest, std::shared_ptr<PlanEntry>, PlanRequestHash> entries;
  std::atomic<std::uint64_t> clock{0};
  unsigned forks = fork_count();
};

std::atomic<Table*> current_table{nullptr};
std::atomic<std::size_t> table_capacity{4096};

// A forked child begins with an empty table: a thread of the parent may have held the lock at the
// fork, and the parent's compilations will never be done in the child.
Table& table() {
  Table* now = current_table.load(std::memory_order_acquire);
  if (now != nullptr && now->forks == fork_count()) return *now;
  auto* const fresh = new Table;
  if (current_table.compare_exchange_strong(now, fresh)) return *fresh;
  delete fresh;
  return *now;
}

using Evicted = std::vector<std::shared_ptr<PlanEntry>>;

// Moves the least recently used quarter of the entries to `evicted`, which is destroyed after the
// lock is released: destroying a plan may wait for its compiler. The caller holds the lock.
void shrink(Table& t, Evicted& evicted) {
  std::vector<std::pair<std::uint64_t, const PlanRequest*>> uses;
  uses.reserve(t.entries.size());
  for (const auto& [request, entry] : t.entries) uses.emplace_back(entry->last_use(), &request);
  const auto quarter = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 4 + 1);
  std::nth_element(uses.begin(), quarter - 1, uses.end());
  for (auto it = uses.begin(); it != quarter; ++it) {
    const auto found = t.entries.find(*it->second);
    evicted.push_back(std::move(found->second));
    t.entries.erase(found);
  }
}

}  // namespace

// The driver lets launches end before it frees a kernel's code. But nothing tells when a captured
// CUDA graph no longer runs the plan's kernels.
PlanEntry::~PlanEntry() {
  if (!kept_.load(std::memory_order_relaxed)) kilnDestroyPlan(plan_);
}

bool PlanEntry::make_plan(kilnHandle_t handle) {
  plan_ = create_plan(handle, request, why_);
  if (plan_ == nullptr) state_.store(State::refused, std::memory_order_release);
  return plan_ != nullptr;
}

void PlanEntry::finish(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) {
    why_ = std::string(kilnGetErrorString(status)) + ": " + kilnGetLastErrorMessage();
    warn_of_failure(status, request.pass, why_);
  }
  state_.store(status == KILN_STATUS_SUCCESS ? State::ready : State::refused,
               std::memory_order_release);
}

void PlanEntry::finalize(kilnHandle_t handle) {
  const std::scoped_lock lock(mutex_);
  if (state() == State::compiling || state() == State::standing_in)
    return finish(kilnWaitFinalizePlan(plan_));
  if (state() == State::fresh && make_plan(handle)) finish(kilnFinalizePlan(plan_));
}

void PlanEntry::finalize_in_background(kilnHandle_t handle, kilnStandIn_t stand_in) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (state() == State::fresh && make_plan(handle)) start(stand_in);
  if (state() == State::compiling || state() == State::standing_in) poll();
}

void PlanEntry::start(kilnStandIn_t stand_in) {
  kilnStatus_t status = kilnSetPlanStandIn(plan_, stand_in);
  if (status == KILN_STATUS_SUCCESS) status = kilnStartFinalizePlan(plan_);
  if (status != KILN_STATUS_SUCCESS) return finish(status);
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  const bool stands_in = stand_in != KILN_STAND_IN_NONE &&
                         kilnGetPlanInfo(plan_, &info) == KILN_STATUS_SUCCESS && info.standIn != 0;
  state_.store(stands_in ? State::standing_in : State::compiling, std::memory_order_release);
}

void PlanEntry::poll() {
  int done = 0;
  const kilnStatus_t status = kilnPollFinalizePlan(plan_, &done);
  if (done != 0 || status != KILN_STATUS_SUCCESS) finish(status);
}

void PlanEntry::refuse(std::string why) {
  const std::scoped_lock lock(mutex_);
  if (state() != State::fresh) return;
  why_ = std::move(why);
  state_.store(State::refused, std::memory_order_release);
}

std::shared_ptr<CallSite> PlanEntry::site(Results results) {
  const std::scoped_lock lock(sites_mutex_);
  std::shared_ptr<CallSite>& site = sites_.at(results);
  if (!site) site = std::make_shared<CallSite>();
  return site;
}

void PlanEntry::show(std::shared_ptr<CallSite> site) {
  const std::scoped_lock lock(sites_mutex_);
  shown_ = std::move(site);
}

std::string PlanEntry::problem_line() const {
  const std::scoped_lock lock(mutex_);
  return plan_ == nullptr ? "" : text_of(plan_, KILN_PLAN_PROBLEM);
}

PlanEntry::Facts PlanEntry::facts() const {
  const std::scoped_lock lock(mutex_);
  Facts f{};
  f.state = state();
  f.served = served_.load();
  f.stood_in = stood_in_.load();
  f.native = native_.load();
  f.why = why_;
  if (f.state == State::fresh && f.native > 0) f.why = "the policy is native";
  if (f.state == State::compiling) f.why = "the kernel is being compiled";
  if (f.state == State::ready) add_measurements(f);
  if (plan_ == nullptr) return f;
  f.problem = text_of(plan_, KILN_PLAN_PROBLEM);
  if (f.state != State::ready && f.state != State::standing_in) return f;
  f.engine = text_of(plan_, KILN_PLAN_ENGINE);
  f.tile = text_of(plan_, KILN_PLAN_TILE);
  f.architecture = text_of(plan_, KILN_PLAN_ARCHITECTURE);
  kilnPlanInfo_t info{};
  info.structSize = sizeof info;
  if (kilnGetPlanInfo(plan_, &info) == KILN_STATUS_SUCCESS) {
    f.origin = name_of(info.origin);
    f.finalize_ms = info.totalMs;
    f.compile_ms = info.compileMs;
  }
  return f;
}

void PlanEntry::add_measurements(Facts& f) const {
  const std::scoped_lock lock(sites_mutex_);
  if (!shown_ || !shown_->measured()) return;
  f.ways.assign(shown_->ways().begin(), shown_->ways().end());
  if (f.native > f.served) f.why = "native is cheaper";
}

const PlanEntry& first_of(const Entries& entries) {
  return **std::ranges::find_if(entries, [](const PlanEntry* entry) { return entry != nullptr; });
}

std::shared_ptr<CallSite> site_of(const Entries& entries) {
  Results results = 0;
  PlanEntry* first = nullptr;
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (entries[i] == nullptr) continue;
    results |= Results(1U << i);
    first = entries[i];
  }
  return first->site(results);
}

std::shared_ptr<PlanEntry> find_entry(const PlanRequest& request) {
  Table& t = table();
  const std::uint64_t now = t.clock.fetch_add(1, std::memory_order_relaxed);
  {
    const std::shared_lock lock(t.mutex);
    if (const auto found = t.entries.find(request); found != t.entries.end()) {
      found->second->touch(now);
      return found->second;
    }
  }
  Evicted evicted;
  const std::scoped_lock lock(t.mutex);
  if (t.entries.size() >= table_capacity.load()) shrink(t, evicted);
  auto& entry = t.entries[request];
  if (!entry) entry = std::make_shared<PlanEntry>(request);
  entry->touch(now);
  return entry;
}

void set_table_capacity(std::size_t entries) {
  table_capacity.store(std::max<std::size_t>(entries, 1));
  Table& t = table();
  Evicted evicted;
  const std::scoped_lock lock(t.mutex);
  while (t.entries.size() > table_capacity.load()) shrink(t, evicted);
}

void clear_table() {
  Table& t = table();
  decltype(t.entries) removed;
  const std::scoped_lock lock(t.mutex);
  removed.swap(t.entries);
}

std::vector<std::shared_ptr<PlanEntry>> all_entries() {
  Table& t = table();
  std::vector<std::shared_ptr<PlanEntry>> out;
  const std::shared_lock lock(t.mutex);
  out.reserve(t.entries.size());
  for (const auto& [request, entry] : t.entries) out.push_back(entry);
  return out;
}

}  // namespace kiln::torch
