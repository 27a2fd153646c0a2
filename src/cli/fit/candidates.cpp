#include "cli/fit/candidates.hpp"

#include <algorithm>
#include <map>

#include "cli/operation/read_line.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "engines/engine.hpp"

namespace kiln::cli::fit {
namespace {

Problem problem_of(const MeasuredRow& row) {
  try {
    return read_one(row.problem, {}).problem;
  } catch (const Error& error) {
    throw UsageError(cat(row.group, ": the problem \"", row.problem, "\": ", error.what()));
  }
}

// The candidates of the engines and rewrites that rows name, without times.
std::vector<MeasuredCandidate> candidates_of(const Problem& problem,
                                             const std::vector<const MeasuredRow*>& rows,
                                             const DeviceDescription& device) {
  std::vector<MeasuredCandidate> found;
  const Chooser chooser(device);
  for (const Method* method : methods()) {
    if (std::ranges::none_of(
            rows, [&](const MeasuredRow* row) { return row->name.engine == method->name(); }))
      continue;
    if (!method->is_for(problem)) continue;
    auto answer = ask(*method, problem, chooser);
    auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
    if (candidates == nullptr || !method->only_by_name(problem).empty()) continue;
    for (Candidate& candidate : *candidates) {
      MeasuredCandidate each{
          {method->name(), "", candidate.parts}, method, candidate.kernel, candidate.groups};
      each.estimated = candidate.seconds;
      each.name.tile = make(*method, problem, chooser, std::move(candidate)).first().kernel.tile;
      found.push_back(std::move(each));
    }
  }
  return found;
}

// Whether the candidate with the least estimate was measured. All candidates count that choose()
// considers with `workspace` bytes granted, at the problem's own batch size.
bool choice_is_measured(const MeasuredProblem& item, const DeviceDescription& device,
                        std::size_t workspace) {
  const Chooser chooser(device);
  const Method* chosen = nullptr;
  Candidate least;
  for (const Method* method : methods()) {
    if (method->stands_in() || !method->is_for(item.problem)) continue;
    auto answer = ask(*method, item.problem, chooser);
    auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
    if (candidates == nullptr || !method->only_by_name(item.problem).empty()) continue;
    for (Candidate& candidate : *candidates)
      if (candidate.workspace <= workspace &&
          (chosen == nullptr || candidate.seconds < least.seconds)) {
        chosen = method;
        least = std::move(candidate);
      }
  }
  return std::ranges::any_of(item.candidates, [&](const MeasuredCandidate& candidate) {
    return candidate.method == chosen && same_kernel(candidate, least) &&
           candidate.name.parts == least.parts;
  });
}

}  // namespace

std::size_t MeasuredProblem::best() const {
  return static_cast<std::size_t>(
      std::ranges::min_element(candidates, {}, &MeasuredCandidate::measured) - candidates.begin());
}

std::size_t MeasuredProblem::choice() const {
  return static_cast<std::size_t>(
      std::ranges::min_element(candidates, {}, &MeasuredCandidate::estimated) - candidates.begin());
}

double MeasuredProblem::regret() const {
  return candidates[choice()].measured / candidates[best()].measured - 1;
}

std::vector<MeasuredRow> MeasuredSet::rows() const {
  std::vector<MeasuredRow> rows;
  for (const MeasuredProblem& item : problems)
    for (const MeasuredCandidate& candidate : item.candidates)
      rows.push_back({item.group, item.line, candidate.name, candidate.measured * 1e6});
  return rows;
}

MeasuredSet candidates_of(const std::vector<MeasuredRow>& rows, const DeviceDescription& device) {
  std::vector<std::string> lines;  // in the order of their first rows
  std::map<std::string, std::vector<const MeasuredRow*>> rows_of;
  for (const MeasuredRow& row : rows) {
    if (rows_of[row.problem].empty()) lines.push_back(row.problem);
    rows_of[row.problem].push_back(&row);
  }
  MeasuredSet set;
  for (const std::string& line : lines) {
    const std::vector<const MeasuredRow*>& measured = rows_of[line];
    MeasuredProblem item{measured.front()->group, line, problem_of(*measured.front())};
    item.candidates = candidates_of(item.problem, measured, device);
    for (const MeasuredRow* row : measured) {
      const auto found = std::ranges::find_if(
          item.candidates,
          [&](const MeasuredCandidate& candidate) { return candidate.name == row->name; });
      if (found == item.candidates.end())
        set.unmatched.push_back(*row);
      else
        found->measured = row->microseconds * 1e-6;
    }
    std::erase_if(item.candidates,
                  [](const MeasuredCandidate& candidate) { return candidate.measured == 0; });
    if (item.candidates.empty()) continue;
    set.problems.push_back(std::move(item));
  }
  note_choices(set, device);
  return set;
}

void note_choices(MeasuredSet& set, const DeviceDescription& device) {
  for (MeasuredProblem& item : set.problems)
    item.choice_measured =
        choice_is_measured(item, device, 0) || choice_is_measured(item, device, most_workspace);
}

}  // namespace kiln::cli::fit
