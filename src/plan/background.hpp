// Finalization in the background: plans wait in a row for one of a bounded number of threads
// (compile_threads), which live only while there is something to do.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "plan/plan.hpp"

namespace kiln {

class BackgroundFinalization {
 public:
  // `plan` must live, and be left alone, until done() or a cancel() that was granted. Throws
  // ALLOC_FAILED where there is no memory, or no thread that would ever come to it: then nothing is
  // in the row. While the process ends there are no threads any more, and the plan is finalized
  // here.
  static std::shared_ptr<BackgroundFinalization> start(Plan& plan, FinalizeOptions options = {});

  // The same of a plan that nobody waits for: its kernels are for those to come. Never throws
  // ALLOC_FAILED: they are made when they are wanted, then.
  static void start_unattended(std::unique_ptr<Plan> plan, FinalizeOptions options) noexcept;

  bool done() const { return state_ == State::done; }
  // In a forked child: it was not over when the process was forked, and the thread that it was for
  // is the parent's.
  bool lost() const;
  // In a forked child: it was in the middle of it, and the plan can neither be used nor destroyed.
  bool torn() const { return lost() && state_ == State::running; }

  // Returns when it is done or cancelled. Throws NOT_INITIALIZED if it is lost.
  void wait() const;
  // Throws what finalize() threw, and NOT_INITIALIZED of what was cancelled.
  void check() const;
  // True: it had not begun, and never will. What has begun runs to its end.
  bool cancel();

 private:
  friend struct Row;
  enum class State : int { queued, running, done, cancelled };

  BackgroundFinalization(Plan& plan, FinalizeOptions options);
  void run();  // on a thread of its own
  bool move(State from, State to);

  std::unique_ptr<Plan> own_;  // of what nobody waits for
  Plan& plan_;
  const FinalizeOptions options_;
  const std::uint64_t generation_;
  std::atomic<State> state_{State::queued};  // no lock, which a forked child could find taken
  std::exception_ptr failure_;               // of what is done
};

}  // namespace kiln
