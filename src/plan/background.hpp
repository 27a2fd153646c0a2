// Finalization in the background: plans wait in a row for one of a bounded number of threads
// (compile_threads), which live only while there is something to do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "plan/plan.hpp"

namespace kiln {

class BackgroundFinalization {
 public:
  // `plan` must live, and be left alone, until done() or a cancel() that was granted.
  static std::shared_ptr<BackgroundFinalization> start(Plan& plan, FinalizeOptions options = {});

  bool done() const;
  // Returns when it is done; what finalize() threw is thrown here, each time. Throws
  // NOT_INITIALIZED in a forked child, whose parent's threads are not there.
  void wait();
  // True: it had not begun, and never will. What has begun runs to its end.
  bool cancel();

 private:
  friend class BackgroundThreads;
  enum class State { queued, running, done, cancelled };

  BackgroundFinalization(Plan& plan, FinalizeOptions options);
  void run();  // on a thread of its own

  Plan& plan_;
  const FinalizeOptions options_;
  const std::uint64_t generation_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = State::queued;
  std::exception_ptr failure_;
};

}  // namespace kiln
