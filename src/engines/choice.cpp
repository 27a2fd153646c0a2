#include "engines/choice.hpp"

#include <algorithm>
#include <iterator>
#include <list>
#include <memory>

#include "core/error.hpp"
#include "core/process/per_process.hpp"
#include "engines/answers.hpp"
#include "engines/recent_problems.hpp"
#include "engines/rewrite/product_views.hpp"

namespace kiln {
namespace {

// Engines multiply sizes and strides without checking for overflow. The reason why a problem is too
// large to ask any engine; "" if it is not. An empty batch counts as one image, whose kernel is
// that of every batch.
std::string extent_refusal(const Problem& problem) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 48;
  constexpr std::int64_t most_stride = std::int64_t{1} << 52;
  for (Operand& operand : operands_of(problem)) {
    operand.dims[0] = std::max<std::int64_t>(operand.dims[0], 1);
    operand.outer_dims[0] = std::max<std::int64_t>(operand.outer_dims[0], 1);
    if (operand.count() > most_elements)
      return cat(operand.name, " has ", operand.count(), " elements; expected at most 2^48");
    for (int axis = 0; axis < Operand::axes; ++axis)
      if (operand.stride(axis) > most_stride)
        return cat(operand.name, " has a stride of ", operand.stride(axis),
                   "; expected at most 2^52");
  }
  return "";
}

[[noreturn]] void refuse(const Problem& problem, const Grant& grant, const std::string& reasons) {
  fail(KILN_STATUS_NOT_SUPPORTED, "no engine takes ", command_of(problem), " ", flags_of(grant),
       line_of(problem), ": ", reasons);
}

struct Found {
  const Method* method = nullptr;
  Estimate estimate;
  bool clustered = false;  // the kernel can split (CLUSTERED), if not here, then with fewer images
};

void keep_if_faster(const Method& method, const Estimate& estimate, std::size_t workspace,
                    Found& best) {
  if (estimate.workspace <= workspace &&
      (best.method == nullptr || estimate.seconds < best.estimate.seconds))
    best = {&method, estimate};
}

// The reason why none of the candidates fits into the granted workspace; "" if one does.
std::string workspace_refusal(const std::vector<Estimate>& estimates, std::size_t granted) {
  const auto least = std::ranges::min_element(estimates, {}, &Estimate::workspace);
  if (least == estimates.end() || least->workspace <= granted) return "";
  return cat("a workspace of ", granted, " bytes; expected at least ", least->workspace);
}

Found cheapest(const Problem& problem, const DeviceDescription& device, const Grant& grant,
               std::vector<EngineRefusal>& refusals) {
  Found best;
  for (const Method* method : methods()) {
    const std::string& only = grant.only_engine;
    if (only.empty() ? method->stands_in() : only != method->name()) continue;
    if (!method->is_for(problem)) continue;
    const auto answer = ask_once(*method, problem, Chooser(device));
    std::string reason = answer->refusal;
    if (reason.empty() && only.empty()) reason = method->only_by_name(problem);
    if (reason.empty()) reason = workspace_refusal(answer->estimates, grant.workspace);
    if (!reason.empty())
      refusals.push_back({method->name(), std::move(reason)});
    else
      for (const Estimate& each : answer->estimates)
        keep_if_faster(*method, each, grant.workspace, best);
  }
  return best;
}

// The problem at the batch size at which its kernel is chosen, and at the smallest one that uses
// this kernel.
struct References {
  Problem chosen, smallest_batch;
};
References references_of(const ConvolutionProblem& problem) {
  std::int64_t least = 1;
  const BatchRange* range = std::begin(batch_ranges);
  for (; problem.batch > range->most; ++range) least = range->most + 1;
  std::int64_t reference = range->reference;
  if (problem.in_pixels() == 1 && problem.batch > std::prev(std::end(batch_ranges))->reference)
    reference = rows_above(problem.batch, least);
  References references{problem, problem};
  std::get<ConvolutionProblem>(references.chosen).batch = reference;
  std::get<ConvolutionProblem>(references.smallest_batch).batch = least;
  return references;
}

// The reference kernel at the problem's own batch size, with the best split count (1 unless
// `several`). None if the launch would be too large for this kernel.
Found in_parts(const Found& reference, const Problem& problem, const DeviceDescription& device,
               const Grant& grant, bool several = true) {
  Found best;
  const auto answer = ask_once(*reference.method, problem, Chooser(device));
  for (const Estimate& each : answer->estimates)
    if (same_kernel(each, reference.estimate) && (each.parts == 1 || several))
      keep_if_faster(*reference.method, each, grant.workspace, best);
  return best;
}

// The kernel of the problem's range of batch sizes, with the best split count for its own. If it is
// not clustered, the split count is 1 for the whole range.
Found cheapest_of_range(const ConvolutionProblem& problem, const DeviceDescription& device,
                        const Grant& grant, std::vector<EngineRefusal>& refusals) {
  const References references = references_of(problem);
  Found found = cheapest(references.chosen, device, grant, refusals);
  if (found.method == nullptr) return found;
  // With fewer images there are fewer tiles, so that splitting pays sooner.
  const bool clustered =
      found.estimate.parts > 1 ||
      in_parts(found, references.smallest_batch, device, grant).estimate.parts > 1;
  if (references.chosen != Problem(problem))
    found = in_parts(found, problem, device, grant, clustered);
  found.clustered = clustered;
  return found;
}

// The cost model's choice; none if every engine and rewrite refuses.
Found find_cheapest(const Problem& problem, const DeviceDescription& device, const Grant& grant,
                    std::vector<EngineRefusal>& refusals) {
  const std::size_t known = refusals.size();
  if (const auto* convolution = std::get_if<ConvolutionProblem>(&problem)) {
    Found found = cheapest_of_range(*convolution, device, grant, refusals);
    if (found.method != nullptr) return found;
    refusals.resize(known);
  }
  return cheapest(problem, device, grant, refusals);
}

[[noreturn]] void refuse_for(const Problem& problem, const Grant& grant,
                             const std::vector<EngineRefusal>& refusals) {
  std::string reasons;
  for (const EngineRefusal& refusal : refusals)
    reasons += cat(reasons.empty() ? "" : "; ", refusal.engine, ": ", refusal.reason);
  refuse(problem, grant,
         reasons.empty()
             ? cat("there is no engine named ", grant.only_engine, " for this operation")
             : reasons);
}

// Recent choices, for convolutions: estimating all candidates costs more than everything else in
// making a plan whose kernel is loaded already. Other operations have few candidates.
struct Remembered {
  ConvolutionProblem problem;
  DeviceDescription device;
  Grant grant;
  Choice choice;
  std::vector<EngineRefusal> refusals;
};
class Memory {
 public:
  std::shared_ptr<const Remembered> find(const Problem& problem, const DeviceDescription& device,
                                         const Grant& grant) {
    const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
    if (convolution == nullptr) return nullptr;
    for (auto each = choices_.begin(); each != choices_.end(); ++each) {
      const Remembered& choice = **each;
      if (choice.problem != *convolution || choice.grant != grant ||
          !estimated_alike(choice.device, device))
        continue;
      choices_.splice(choices_.begin(), choices_, each);
      return choices_.front();
    }
    return nullptr;
  }
  void keep(const Problem& problem, const DeviceDescription& device, const Grant& grant,
            const Choice& choice, std::vector<EngineRefusal> refusals) {
    // A step takes some 7 KiB. Beside the execution of so many steps a new choice costs little.
    constexpr std::size_t most = 128, most_steps = 64;
    const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
    if (convolution == nullptr || choice.proposal.steps.size() > most_steps) return;
    choices_.push_front(std::make_shared<Remembered>(
        Remembered{*convolution, device, grant, choice, std::move(refusals)}));
    if (choices_.size() > most) choices_.pop_back();
  }

 private:
  std::list<std::shared_ptr<const Remembered>> choices_;  // most recent first
};
constinit PerProcess<Memory> memory("chosen kernels");

// The candidate that a tuning winner names, if it still exists.
std::optional<Choice> find(const Winner& winner, const Problem& problem,
                           const DeviceDescription& device, std::size_t workspace) {
  const Chooser chooser(device);
  for (const Method* method : methods()) {
    if (winner.engine != method->name() || !method->is_for(problem)) continue;
    auto answer = ask(*method, problem, chooser);
    auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
    if (candidates == nullptr) return std::nullopt;
    for (Candidate& candidate : *candidates) {
      if (candidate.parts != winner.parts || candidate.workspace > workspace) continue;
      const double seconds = candidate.seconds;
      Proposal proposal = make(*method, problem, chooser, std::move(candidate));
      if (proposal.first().kernel.tile == winner.tile)
        return Choice{std::move(proposal), seconds, true};
    }
  }
  return std::nullopt;
}

// A matrix product is chosen as the convolution that it is in one of its views.
//
// The view whose candidate a tuning winner names.
std::optional<Choice> find_view(const Winner& winner, const std::vector<ProductView>& views,
                                const DeviceDescription& device, std::size_t workspace) {
  const ProductView* named = nullptr;  // the tile ends with the longest name
  for (const ProductView& view : views)
    if (winner.tile.ends_with(view.tile) &&
        (named == nullptr || view.tile.size() > named->tile.size()))
      named = &view;
  if (named == nullptr) return std::nullopt;
  Winner own = winner;
  own.tile.resize(own.tile.size() - named->tile.size());
  auto choice = find(own, named->problem, device, workspace);
  if (choice) name_operands(choice->proposal, *named);
  return choice;
}

Choice choose_view(const Problem& product, const std::vector<ProductView>& views,
                   const DeviceDescription& device, const Grant& grant,
                   std::vector<EngineRefusal>& refusals) {
  const ProductView* best = nullptr;
  double seconds = 0;
  std::vector<EngineRefusal> all;
  for (const ProductView& view : views) {
    const Found found = find_cheapest(view.problem, device, grant, all);
    if (found.method == nullptr || (best != nullptr && found.estimate.seconds >= seconds)) continue;
    best = &view;
    seconds = found.estimate.seconds;
  }
  if (best == nullptr) refuse_for(product, grant, all);
  Choice choice = choose(best->problem, device, grant, refusals, nullptr);
  name_operands(choice.proposal, *best);
  return choice;
}

// Every engine with the candidates of any view, or its refusal of the first one.
std::vector<EngineRefusal> ask_for_views(const std::vector<ProductView>& views,
                                         const DeviceDescription& device) {
  std::vector<EngineRefusal> answers;
  for (const ProductView& view : views)
    for (EngineRefusal& answer : ask_engines(view.problem, device)) {
      const auto known = std::ranges::find(answers, answer.engine, &EngineRefusal::engine);
      if (known == answers.end())
        answers.push_back(std::move(answer));
      else if (answer.reason.empty())
        known->reason.clear();
    }
  return answers;
}

}  // namespace

std::vector<EngineRefusal> ask_engines(const Problem& problem, const DeviceDescription& device) {
  if (const auto* const product = std::get_if<MatmulProblem>(&problem))
    return ask_for_views(product_views(*product), device);
  std::vector<EngineRefusal> answers;
  const std::string extent = extent_refusal(problem);
  const Chooser chooser(device);
  for (const Method* method : methods()) {
    if (!method->is_for(problem)) continue;
    answers.push_back({method->name(), extent});
    if (!extent.empty()) continue;
    try {
      auto answer = ask(*method, problem, chooser);
      if (auto* refusal = std::get_if<Refusal>(&answer))
        answers.back().reason = std::move(refusal->reason);
    } catch (const Error& error) {
      if (error.status() != KILN_STATUS_NOT_SUPPORTED) throw;
      answers.back().reason = error.what();
    }
  }
  return answers;
}

Choice choose(const Problem& problem, const DeviceDescription& device, const Grant& grant,
              std::vector<EngineRefusal>& refusals, const Winner* winner) {
  if (const std::string extent = extent_refusal(problem); !extent.empty())
    refuse(problem, grant, extent);
  if (const auto* const product = std::get_if<MatmulProblem>(&problem)) {
    const std::vector<ProductView> views = product_views(*product);
    const bool named =
        winner != nullptr && (grant.only_engine.empty() || grant.only_engine == winner->engine);
    if (named)
      if (auto choice = find_view(*winner, views, device, grant.workspace)) return *choice;
    return choose_view(problem, views, device, grant, refusals);
  }
  if (winner != nullptr && (grant.only_engine.empty() || grant.only_engine == winner->engine))
    if (auto choice = find(*winner, problem, device, grant.workspace)) return std::move(*choice);
  if (const auto before = memory.lock()->find(problem, device, grant)) {
    refusals.insert(refusals.end(), before->refusals.begin(), before->refusals.end());
    return before->choice;
  }
  const std::size_t known = refusals.size();
  const Found found = find_cheapest(problem, device, grant, refusals);
  if (found.method == nullptr) refuse_for(problem, grant, refusals);
  Choice choice{make_proposal(*found.method, problem, Chooser(device), found.estimate),
                found.estimate.seconds, false};
  if (found.clustered) choice.proposal.first().kernel.clustered = true;
  memory.lock()->keep(problem, device, grant, choice,
                      {refusals.begin() + static_cast<std::ptrdiff_t>(known), refusals.end()});
  return choice;
}

Proposal choose(const Problem& problem, const DeviceDescription& device, const Grant& grant,
                std::vector<EngineRefusal>& refusals) {
  return choose(problem, device, grant, refusals, nullptr).proposal;
}

ChoiceEstimate Chooser::estimate(const Problem& problem, const Grant& grant) const {
  if (const std::string extent = extent_refusal(problem); !extent.empty())
    refuse(problem, grant, extent);
  std::vector<EngineRefusal> refusals;
  const Found found = find_cheapest(problem, device(), grant, refusals);
  if (found.method == nullptr) refuse_for(problem, grant, refusals);
  return {found.estimate.seconds, found.estimate.workspace};
}

Proposal Chooser::choose(const Problem& problem, const Grant& grant) const {
  std::vector<EngineRefusal> ignored;
  return kiln::choose(problem, device(), grant, ignored);
}

Refusal Chooser::refusal(const Problem& problem, const Grant& grant) const {
  for (const Method* method : methods())
    if (method->name() == grant.only_engine) return ask_once(*method, problem, *this)->refusal;
  fail(KILN_STATUS_INTERNAL_ERROR, "there is no ", grant.only_engine);
}

std::optional<ContinuedSums> Chooser::continued(const ConvolutionProblem& first,
                                                const ConvolutionProblem& last,
                                                std::size_t workspace) const {
  std::optional<ContinuedSums> best;
  for (const Engine* engine : engines()) {
    if (engine->continue_sums() == nullptr || !engine->is_for(first) ||
        ask_once(*engine, last, *this)->estimates.empty())
      continue;
    const auto answer = ask_once(*engine, first, *this);
    for (const Estimate& each : answer->estimates)
      if (each.groups > 1 && each.workspace <= workspace &&
          (!best || each.seconds < best->candidate.seconds))
        best = {engine, candidate_of(each)};
  }
  return best;
}

std::vector<Option> all_candidates(const Problem& problem, const DeviceDescription& device,
                                   std::size_t workspace) {
  const auto least_first = [](const Option& a, const Option& b) {
    return a.choice.seconds < b.choice.seconds;
  };
  if (const auto* const product = std::get_if<MatmulProblem>(&problem)) {
    std::vector<Option> all;
    for (const ProductView& view : product_views(*product))
      for (Option& option : all_candidates(view.problem, device, workspace)) {
        name_operands(option.choice.proposal, view);
        option.name.tile += view.tile;
        all.push_back(std::move(option));
      }
    std::stable_sort(all.begin(), all.end(), least_first);
    return all;
  }
  std::vector<EngineRefusal> refusals;
  choose(problem, device, {}, refusals);  // throws where there is none
  std::vector<Option> options;
  const Chooser chooser(device);
  for (const Method* method : methods()) {
    if (!method->is_for(problem)) continue;
    auto answer = ask(*method, problem, chooser);
    auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
    if (candidates == nullptr) continue;
    const bool only_by_name = !method->only_by_name(problem).empty();
    for (Candidate& candidate : *candidates) {
      if (candidate.workspace > workspace) continue;
      const double seconds = candidate.seconds;
      const int parts = candidate.parts;
      Proposal proposal = make(*method, problem, chooser, std::move(candidate));
      Winner name{method->name(), proposal.first().kernel.tile, parts};
      options.push_back({std::move(name), {std::move(proposal), seconds, false}, only_by_name});
    }
  }
  std::stable_sort(options.begin(), options.end(), least_first);
  return options;
}

}  // namespace kiln
