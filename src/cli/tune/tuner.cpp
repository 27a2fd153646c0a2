#include "cli/tune/tuner.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/error.hpp"
#include "plan/plan.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

namespace kiln::cli::tune {
namespace {

constexpr std::uint64_t seed = 1;  // of the random data
// Candidates whose one sample takes at most this many times the least are measured in full.
constexpr double near_fastest = 1.25;

// Settings for one short sample, which is enough for candidates that are far behind. The device is
// warm by then.
bench::MeasurementSettings brief(const bench::MeasurementSettings& full) {
  return {1, full.warm_up / 10, full.sample / 2};
}

// Compiles all candidates into the cache, several at a time, where their plans find them.
void compile(const bench::Case& item, const std::vector<const Option*>& options,
             const DeviceDescription& device, int threads) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < options.size();) {
      try {
        const Proposal& proposal = options[i]->choice.proposal;
        const auto make = [&](const Step& step) {
          make_image(step.kernel, device.kind, device.arch, Caching::use, [&] {
            Grant grant = item.grant;
            grant.only_engine = options[i]->name.engine;
            return plan_line(item.problem, device, grant);
          });
        };
        for (const Step& step : proposal.steps) make(step);
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch): its plan will say so
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
}

bench::Contestant contestant(const std::shared_ptr<Device>& device, const bench::Case& item,
                             const Option& option) {
  bench::Contestant contestant;
  contestant.roles = {"kiln"};
  const auto plan = std::make_shared<Plan>(device, item.problem);
  try {
    FinalizeOptions options;
    options.choice = option.choice;
    plan->finalize(options);
  } catch (const Error& error) {
    const std::string sentence = error.what();
    contestant.refusal = sentence.substr(0, sentence.find('\n'));
    return contestant;
  }
  const auto memory = std::make_shared<DeviceBuffer>(*device, plan->workspace_bytes());
  contestant.execute = [plan, memory, scalars = item.scalars](const bench::BufferSet& set) {
    plan->execute(set.operands, scalars, nullptr, {}, {memory->address(), plan->workspace_bytes()});
  };
  return contestant;
}

}  // namespace

Tuner::Tuner(std::shared_ptr<Device> device, const TuningSettings& settings)
    : device_(std::move(device)), settings_(settings), pool_(*device_, seed) {}

void Tuner::flush() {
  if (device_->description().kind == KILN_DEVICE_HOST) return;
  const auto bytes = static_cast<std::size_t>(device_->description().l2_bytes);
  if (!flush_) flush_ = std::make_unique<DeviceBuffer>(*device_, 2 * bytes);
  device_->copy(flush_->address(), flush_->address() + bytes, bytes, nullptr);
}

Outcome Tuner::run(const bench::Case& item) {
  Outcome outcome;
  const DeviceDescription& device = device_->description();
  outcome.problem = plan_line(item.problem, device, item.grant);
  try {
    std::vector<Option> options = all_candidates(item.problem, device, item.grant.workspace);
    std::vector<std::string> engines = settings_.engines;
    if (!item.grant.only_engine.empty()) engines = {item.grant.only_engine};
    std::erase_if(options, [&](const Option& option) {
      if (engines.empty()) return option.only_by_name;
      return std::ranges::find(engines, option.name.engine) == engines.end();
    });
    if (options.empty()) fail(KILN_STATUS_NOT_SUPPORTED, "no candidate of ", join(engines, ", "));
    std::vector<EngineRefusal> refusals;
    const Proposal chosen =
        choose(item.problem, device, {.workspace = item.grant.workspace}, refusals);
    const Winner model = name_of(chosen.first().kernel, chosen.first().launch);
    for (const Option& option : options)
      outcome.attempts.push_back(
          {option.name, option.choice.seconds * 1e6, {}, {}, option.name == model, ""});
    if (options.size() > 1)
      measure_all(item, options, outcome);
    else
      outcome.attempts.front().note = "the only candidate";
  } catch (const Error& error) {
    outcome.failure = error.what();
  } catch (const std::bad_alloc&) {
    outcome.failure = "not enough memory on this machine for the operands";
  }
  return outcome;
}

void Tuner::measure_all(const bench::Case& item, std::vector<Option>& options, Outcome& outcome) {
  std::vector<std::size_t> places;
  std::vector<const Option*> wanted;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Attempt& attempt = outcome.attempts[i];
    const double least = outcome.attempts.front().predicted;
    if (!attempt.chosen && attempt.predicted > settings_.within * least) continue;
    places.push_back(i);
    wanted.push_back(&options[i]);
  }
  compile(item, wanted, device_->description(), settings_.threads);
  bench::Operands operands(*device_, pool_, item);
  std::vector<bench::Contestant> contestants;
  for (const Option* option : wanted) contestants.push_back(contestant(device_, item, *option));

  const auto measure = [&](const std::vector<std::size_t>& which,
                           const bench::MeasurementSettings& settings) {
    std::vector<bench::Contestant> some;
    for (const std::size_t i : which) some.push_back(contestants[i]);
    const auto measured = bench::measure(
        *device_, some, [&] { return operands.next(); }, settings);
    const std::vector<double> alone = bench::measure_alone(
        *device_, some, [&] { return operands.next(); }, [this] { flush(); }, settings.samples);
    for (std::size_t i = 0; i < which.size(); ++i) {
      Attempt& attempt = outcome.attempts[places[which[i]]];
      attempt.note = measured[i].failure;
      attempt.times.reset();
      attempt.flushed.reset();
      if (attempt.note.empty()) attempt.times = measured[i].times;
      if (attempt.times && !std::isnan(alone[i])) attempt.flushed = alone[i];
    }
  };
  std::vector<std::size_t> all(wanted.size()), near;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  measure(all, brief(settings_.full));
  const Attempt* const fastest = outcome.best();
  if (fastest == nullptr) fail(KILN_STATUS_EXECUTION_FAILED, "no candidate could be executed");
  const double enough = near_fastest * fastest->times->median;
  for (const std::size_t i : all) {
    const Attempt& attempt = outcome.attempts[places[i]];
    if (attempt.times && (attempt.chosen || attempt.times->median <= enough)) near.push_back(i);
  }
  if (near.size() > 1) measure(near, settings_.full);

  const Attempt* const winner = outcome.winner();
  if (winner == nullptr) fail(KILN_STATUS_EXECUTION_FAILED, "no candidate could be executed twice");
  for (const std::size_t i : all) {
    Attempt& attempt = outcome.attempts[places[i]];
    if (&attempt != winner) continue;
    contestants[i].execute(operands.fresh());
    device_->synchronize(nullptr);
    attempt.note = operands.compare().complaint();
    if (!attempt.note.empty())
      fail(KILN_STATUS_EXECUTION_FAILED,
           "the fastest is wrong, and not remembered: ", attempt.note);
  }
  const Option& fastest_option =
      options[static_cast<std::size_t>(winner - outcome.attempts.data())];
  remember_winners({tuned_kernel(item.problem, device_->description(), item.grant.workspace,
                                 fastest_option, winner->times->median)});
  outcome.kept = true;
}

}  // namespace kiln::cli::tune
