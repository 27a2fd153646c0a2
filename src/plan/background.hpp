// Finalization in the background: plans wait in a queue for one of at most compile_threads()
// threads, which exist only while the queue has work.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "plan/plan.hpp"

namespace kiln {

class BackgroundFinalization {
 public:
  // `plan` must stay alive and unused until done() or until cancel() returned true. Throws
  // ALLOC_FAILED, and queues nothing, if memory is short or no thread can be started. While the
  // process ends, no threads are started and the plan is finalized in this call.
  static std::shared_ptr<BackgroundFinalization> start(Plan& plan, FinalizeOptions options = {});

  // The same for a plan that nobody waits for, made so that later plans find its kernels. If memory
  // is short, nothing happens, and later plans make their kernels themselves.
  static void start_unattended(std::unique_ptr<Plan> plan, FinalizeOptions options) noexcept;

  bool done() const { return state_ == State::done; }
  // True in a forked child if finalization was not done at the fork: its thread exists only in the
  // parent.
  bool lost() const;
  // True in a forked child if finalization was running at the fork: the plan can then be neither
  // used nor destroyed.
  bool torn() const { return lost() && state_ == State::running; }

  // Returns when finalization is done or cancelled. Throws NOT_INITIALIZED if it is lost.
  void wait() const;
  // Throws what finalize() threw, or NOT_INITIALIZED if it was cancelled.
  void check() const;
  // Returns true if finalization had not begun; it then never will. Once begun, it runs to its end.
  bool cancel();

 private:
  friend struct Row;
  enum class State : int { queued, running, done, cancelled };

  BackgroundFinalization(Plan& plan, FinalizeOptions options);
  void run();  // on a thread of its own
  bool move(State from, State to);

  std::unique_ptr<Plan> own_;  // a plan that nobody waits for
  Plan& plan_;
  const FinalizeOptions options_;
  const std::uint64_t generation_;
  std::atomic<State> state_{State::queued};  // not behind a lock, which could be held at a fork
  std::exception_ptr failure_;               // what finalize() threw; valid once done
};

}  // namespace kiln
