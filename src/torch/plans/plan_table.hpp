// The bounded table of plans, which all threads share. An entry has the plan's state, the reason of
// a refusal, counts of its uses, and measurements.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "torch/plans/plan_request.hpp"
#include "torch/policy/call_site.hpp"

namespace kiln::torch {

class PlanEntry {
 public:
  // standing_in: a stand-in executes the plan while its kernel is being compiled.
  enum class State : std::uint8_t { fresh, compiling, standing_in, ready, refused };

  explicit PlanEntry(const PlanRequest& wanted) : request(wanted) {}
  PlanEntry(const PlanEntry&) = delete;
  PlanEntry& operator=(const PlanEntry&) = delete;
  ~PlanEntry();

  const PlanRequest request;

  State state() const { return state_.load(std::memory_order_acquire); }
  bool executable() const { return state() == State::ready || state() == State::standing_in; }
  // Makes the plan if no thread has begun to, and waits for its kernel. Afterwards the state is
  // ready or refused. Thread-safe.
  void finalize(kilnHandle_t handle);
  // Starts the same on a background thread, with a stand-in as `stand_in` allows, or updates the
  // state if it is over. Waits for no compiler, unless KILN_STAND_IN_ANY needs one.
  void finalize_in_background(kilnHandle_t handle, kilnStandIn_t stand_in);
  void refuse(std::string why);
  kilnPlan_t plan() const { return plan_; }  // requires an executable state
  // Notes that a CUDA graph has captured an execution, so that the plan has to outlive this entry.
  void keep_plan() { kept_.store(true, std::memory_order_relaxed); }

  // The call site that computes these results together; this entry's is the first of them. Made on
  // first use.
  std::shared_ptr<CallSite> site(Results results);
  // Sets the call site whose times facts() shows: it has timed this entry's result with others.
  void show(std::shared_ptr<CallSite> site);

  // Counts a call that Kiln served, or PyTorch.
  void count(bool served) {
    (served ? served_ : native_).fetch_add(1, std::memory_order_relaxed);
    if (served && state() == State::standing_in) stood_in_.fetch_add(1, std::memory_order_relaxed);
  }
  void touch(std::uint64_t now) { last_use_.store(now, std::memory_order_relaxed); }
  std::uint64_t last_use() const { return last_use_.load(std::memory_order_relaxed); }

  // What report() shows of the entry.
  struct Facts {
    State state;
    std::uint64_t served, stood_in, native;  // calls; stood_in: those of `served` by the stand-in
    std::string why;                         // reason of the refusal; "" if Kiln serves the calls
    std::string problem;  // the problem's line for the program kiln; "" without a plan
    std::string engine, tile, origin, architecture;
    double finalize_ms = 0, compile_ms = 0;
    // The ways of the whole call, where the policy `measure` has timed them: all by Kiln, all by
    // PyTorch, then those that divide the results between both.
    std::vector<CallSite::Way> ways;
  };
  Facts facts() const;
  std::string problem_line() const;  // "" without a plan

 private:
  bool make_plan(kilnHandle_t handle);
  void start(kilnStandIn_t stand_in);
  void poll();
  void finish(kilnStatus_t status);
  void add_measurements(Facts& facts) const;

  mutable std::mutex mutex_;  // guards non-atomic members until the state is ready or refused
  kilnPlan_t plan_ = nullptr;
  std::string why_;
  mutable std::mutex sites_mutex_;
  std::array<std::shared_ptr<CallSite>, 8> sites_;  // indexed by Results
  std::shared_ptr<CallSite> shown_;
  std::atomic<State> state_{State::fresh};
  std::atomic<bool> kept_{false};
  std::atomic<std::uint64_t> served_{0}, stood_in_{0}, native_{0}, last_use_{0};
};

// The entries of a call's results, in their order; null where a result is not requested. At least
// one is not null.
using Entries = std::array<PlanEntry*, 3>;
const PlanEntry& first_of(const Entries& entries);
// The call site that computes the results of these entries.
std::shared_ptr<CallSite> site_of(const Entries& entries);

// The entry of a request; made if there is none. The table keeps at most `capacity` entries and
// evicts the least recently used. The plan of an entry is destroyed with it, when the last call
// that uses it has returned, unless a CUDA graph has captured it.
std::shared_ptr<PlanEntry> find_entry(const PlanRequest& request);

void set_table_capacity(std::size_t entries);
// Removes all entries. Later calls make new plans, which see changed bundles, caches or tuning
// files.
void clear_table();
std::vector<std::shared_ptr<PlanEntry>> all_entries();

}  // namespace kiln::torch
