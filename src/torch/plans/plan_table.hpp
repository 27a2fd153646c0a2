// The bounded table of plans that all threads share, and what is known of each: whether it is
// ready, why not, how often it was used, and what measuring said.
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
  // standing_in: Kiln's stand-in executes the plan while its own kernel is being compiled.
  enum class State : std::uint8_t { fresh, compiling, standing_in, ready, refused };

  explicit PlanEntry(const PlanRequest& wanted) : request(wanted) {}
  PlanEntry(const PlanEntry&) = delete;
  PlanEntry& operator=(const PlanEntry&) = delete;
  ~PlanEntry();

  const PlanRequest request;

  State state() const { return state_.load(std::memory_order_acquire); }
  bool executable() const { return state() == State::ready || state() == State::standing_in; }
  // Makes the plan if that has not begun, and waits for its kernel. Any number of threads may call
  // it; one makes the plan. Afterwards the state is ready or refused.
  void finalize(kilnHandle_t handle);
  // Starts that on a thread of Kiln's, with what may stand in meanwhile, or looks whether it is
  // over. Waits for no compiler, unless KILN_STAND_IN_ANY needs it.
  void finalize_in_background(kilnHandle_t handle, kilnStandIn_t stand_in);
  void refuse(std::string why);
  kilnPlan_t plan() const { return plan_; }  // only when executable

  // The call site that computes these results together, the first of which is this entry's; made
  // when first asked for.
  std::shared_ptr<CallSite> site(Results results);
  // Tells which call site has timed this entry's result among others, for facts().
  void show(std::shared_ptr<CallSite> site);

  // A call that Kiln served, or PyTorch.
  void count(bool served) {
    (served ? served_ : native_).fetch_add(1, std::memory_order_relaxed);
    if (served && state() == State::standing_in) stood_in_.fetch_add(1, std::memory_order_relaxed);
  }
  void touch(std::uint64_t now) { last_use_.store(now, std::memory_order_relaxed); }
  std::uint64_t last_use() const { return last_use_.load(std::memory_order_relaxed); }

  // What report() tells.
  struct Facts {
    State state;
    std::uint64_t served, stood_in, native;  // stood_in: of those served, by the stand-in
    std::string why;                         // it is not Kiln's; "" if it is
    std::string problem;  // the line that the program kiln takes; "" where there is no plan
    std::string engine, tile, origin, architecture;
    double finalize_ms = 0, compile_ms = 0;
    // Of the whole call that it belongs to, where the policy `measure` has timed it: first Kiln's,
    // then PyTorch's, then those that share it.
    std::vector<CallSite::Way> ways;
  };
  Facts facts() const;
  std::string problem_line() const;  // "" where there is no plan

 private:
  bool make_plan(kilnHandle_t handle);
  void start(kilnStandIn_t stand_in);
  void poll();
  void finish(kilnStatus_t status);
  void add_measurements(Facts& facts) const;

  mutable std::mutex mutex_;  // guards what is not atomic until the state is ready or refused
  kilnPlan_t plan_ = nullptr;
  bool had_stand_in_ = false;
  std::string why_;
  mutable std::mutex sites_mutex_;
  std::array<std::shared_ptr<CallSite>, 8> sites_;  // by results
  std::shared_ptr<CallSite> shown_;
  std::atomic<State> state_{State::fresh};
  std::atomic<std::uint64_t> served_{0}, stood_in_{0}, native_{0}, last_use_{0};
};

// The plans of a call's results, in their order; null: not asked for. One at least is there.
using Entries = std::array<PlanEntry*, 3>;
const PlanEntry& first_of(const Entries& entries);
// Their call site.
std::shared_ptr<CallSite> site_of(const Entries& entries);

// The entry of a request, made if there is none. The table keeps at most `capacity` entries, and
// forgets those that were not used the longest.
std::shared_ptr<PlanEntry> find_entry(const PlanRequest& request);

void set_table_capacity(std::size_t entries);
// Forgets all: plans are made anew, in a bundle, cache or tuning file that has changed.
void clear_table();
std::vector<std::shared_ptr<PlanEntry>> all_entries();

}  // namespace kiln::torch
