#include "plan/background.hpp"

#include <cstdlib>
#include <deque>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/per_process.hpp"
#include "plan/compile_slots.hpp"

namespace kiln {

class BackgroundThreads {
 public:
  void add(std::shared_ptr<BackgroundFinalization> job) {
    static const int at_exit = std::atexit([] { instance().finish(); });
    static_cast<void>(at_exit);
    const std::lock_guard lock(mutex_);
    row_.push_back(std::move(job));
    if (threads_ >= compile_threads()) return;
    std::thread([this] { work(); }).detach();
    ++threads_;
  }

  static BackgroundThreads& instance() {
    static PerProcess<BackgroundThreads> threads;
    return threads.get();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!row_.empty()) {
      const std::shared_ptr<BackgroundFinalization> job = std::move(row_.front());
      row_.pop_front();
      lock.unlock();
      job->run();
      lock.lock();
    }
    --threads_;
    idle_.notify_all();
  }

  // The end of the process: nothing more is begun, and compilers at work are waited for, since the
  // library that they run in is about to go.
  void finish() {
    std::unique_lock lock(mutex_);
    for (const auto& job : row_) job->cancel();
    row_.clear();
    idle_.wait(lock, [&] { return threads_ == 0; });
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::shared_ptr<BackgroundFinalization>> row_;
  int threads_ = 0;
};

BackgroundFinalization::BackgroundFinalization(Plan& plan, FinalizeOptions options)
    : plan_(plan), options_(std::move(options)), generation_(fork_generation()) {}

std::shared_ptr<BackgroundFinalization> BackgroundFinalization::start(Plan& plan,
                                                                      FinalizeOptions options) {
  std::shared_ptr<BackgroundFinalization> job(new BackgroundFinalization(plan, std::move(options)));
  BackgroundThreads::instance().add(job);
  return job;
}

void BackgroundFinalization::run() {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::queued) return;
    state_ = State::running;
  }
  std::exception_ptr failure;
  try {
    plan_.finalize(options_);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  state_ = State::done;
  changed_.notify_all();
}

bool BackgroundFinalization::done() const {
  if (generation_ != fork_generation()) return false;
  const std::lock_guard lock(mutex_);
  return state_ == State::done;
}

void BackgroundFinalization::wait() {
  if (generation_ != fork_generation())
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan was being finalized when this process was forked; expected a plan of its own");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_ == State::done || state_ == State::cancelled; });
  if (state_ == State::cancelled)
    fail(KILN_STATUS_NOT_INITIALIZED, "plan's finalization was cancelled before it began");
  if (failure_) std::rethrow_exception(failure_);
}

bool BackgroundFinalization::cancel() {
  if (generation_ != fork_generation()) return true;
  const std::lock_guard lock(mutex_);
  if (state_ == State::queued) state_ = State::cancelled;
  changed_.notify_all();
  return state_ == State::cancelled;
}

}  // namespace kiln
