#include "plan/background.hpp"

#include <condition_variable>
#include <deque>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/process/process_end.hpp"
#include "core/process/thread.hpp"
#include "plan/compile_slots.hpp"

namespace kiln {

using Job = std::shared_ptr<BackgroundFinalization>;

struct Row {
  std::condition_variable idle;
  std::deque<Job> waiting;
  int threads = 0;
  bool ended = false;

  static void add(const Job& job);

 private:
  static void work();
  static void finish();
};

namespace {

constinit PerProcess<Row> row("background threads");

}  // namespace

void Row::add(const Job& job) {
  const int most = compile_threads();
  at_process_end(AtEnd::background_threads, finish);
  auto all = row.lock();
  if (all->ended) {
    all.lock().unlock();
    job->run();
    return;
  }
  all->waiting.push_back(job);
  if (all->threads >= most) return;
  try {
    start_thread(work).detach();
    ++all->threads;
  } catch (const std::exception& error) {
    if (all->threads > 0) return;  // one of the running threads will take it
    all->waiting.pop_back();
    fail(KILN_STATUS_ALLOC_FAILED,
         "no thread can be made to finalize the plan in the background: ", error.what());
  }
}

void Row::work() {
  auto all = row.lock();
  while (!all->waiting.empty()) {
    {
      const Job job = std::move(all->waiting.front());
      all->waiting.pop_front();
      all.lock().unlock();
      job->run();
    }
    all.lock().lock();
  }
  --all->threads;
  all->idle.notify_all();
}

// Runs at the end of the process: starts nothing more and waits for running compilers, because the
// library whose code they execute is about to be unloaded.
void Row::finish() {
  auto all = row.lock();
  all->ended = true;
  for (const Job& job : all->waiting) job->cancel();
  all->waiting.clear();
  all->idle.wait(all.lock(), [&] { return all->threads == 0; });
}

BackgroundFinalization::BackgroundFinalization(Plan& plan, FinalizeOptions options)
    : plan_(plan), options_(std::move(options)), generation_(fork_generation()) {}

std::shared_ptr<BackgroundFinalization> BackgroundFinalization::start(Plan& plan,
                                                                      FinalizeOptions options) {
  Job job(new BackgroundFinalization(plan, std::move(options)));
  Row::add(job);
  return job;
}

void BackgroundFinalization::start_unattended(std::unique_ptr<Plan> plan,
                                              FinalizeOptions options) noexcept {
  try {
    const Job job(new BackgroundFinalization(*plan, std::move(options)));
    job->own_ = std::move(plan);
    Row::add(job);
  } catch (const std::exception& error) {
    log::info(error.what());
  }
}

bool BackgroundFinalization::move(State from, State to) {
  if (!state_.compare_exchange_strong(from, to)) return false;
  state_.notify_all();
  return true;
}

void BackgroundFinalization::run() {
  if (!move(State::queued, State::running)) return;
  try {
    plan_.finalize(options_);
  } catch (...) {
    failure_ = std::current_exception();
  }
  move(State::running, State::done);
}

bool BackgroundFinalization::lost() const {
  const State state = state_;
  return generation_ != fork_generation() && (state == State::queued || state == State::running);
}

void BackgroundFinalization::wait() const {
  if (lost())
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan was being finalized when this process was forked; expected a plan of its own");
  for (State state = state_; state == State::queued || state == State::running; state = state_)
    state_.wait(state);
}

void BackgroundFinalization::check() const {
  if (state_ == State::cancelled)
    fail(KILN_STATUS_NOT_INITIALIZED, "plan's finalization was cancelled before it began");
  if (failure_) std::rethrow_exception(failure_);
}

bool BackgroundFinalization::cancel() { return move(State::queued, State::cancelled); }

}  // namespace kiln
