#include "cli/fit/report.hpp"

#include <algorithm>
#include <functional>

#include "cli/fit/constants.hpp"
#include "cli/format.hpp"
#include "cli/tune/outcome.hpp"
#include "core/text.hpp"

namespace kiln::cli::fit {
namespace {

using Wanted = std::function<bool(const MeasuredProblem&)>;

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string percent(double share) { return fixed(100 * share, 1) + "%"; }

std::string line_of(const std::string& name, const Quality& quality) {
  std::string line = cat("  ", padded(name, 24), right(cat(quality.candidates), 10),
                         right(percent(quality.rms_error), 11), right(cat(quality.problems), 10));
  if (quality.problems > 0)
    line += right(cat(quality.close), 12) + right(percent(quality.mean_regret), 13) +
            right(percent(quality.worst_regret), 14);
  return line + "\n";
}

std::string table_of(const std::string& title, const MeasuredSet& set, const Model& model,
                     const Wanted& wanted) {
  Engines all;
  std::vector<std::string> groups;
  for (const MeasuredProblem& item : set.problems) {
    if (std::ranges::find(groups, item.group) == groups.end()) groups.push_back(item.group);
    for (const MeasuredCandidate& candidate : item.candidates) all.insert(candidate.method);
  }
  std::string text = cat(padded(title, 26),
                         "candidates  rms error  problems  within 10%  mean regret  worst "
                         "regret\n");
  for (const std::string& family : family_names()) {
    const Quality quality = model.quality(model.engines_of(family), wanted);
    if (quality.candidates > 0) text += line_of(family, quality);
  }
  for (const std::string& group : groups) {
    const Quality quality = model.quality(
        all, [&](const MeasuredProblem& item) { return item.group == group && wanted(item); });
    if (quality.candidates > 0) text += line_of(group + ".csv", quality);
  }
  return text + line_of("all", model.quality(all, wanted));
}

}  // namespace

std::string table_of(const std::string& title, const MeasuredSet& set, const Model& model) {
  return table_of(title, set, model, [](const MeasuredProblem&) { return true; });
}

std::string tables_of(const MeasuredSet& set, const Model& model) {
  const bool any_left_out = std::ranges::any_of(set.problems, &MeasuredProblem::left_out);
  std::string text = table_of(any_left_out ? "part of the fit" : "family or file", set, model,
                              [](const MeasuredProblem& item) { return !item.left_out; });
  if (any_left_out)
    text += table_of("left out of the fit", set, model,
                     [](const MeasuredProblem& item) { return item.left_out; });
  return text;
}

std::string losses_of(const MeasuredSet& set) {
  std::vector<const MeasuredProblem*> losses;
  for (const MeasuredProblem& item : set.problems)
    if (1 + item.regret() > tune::close_enough) losses.push_back(&item);
  std::ranges::stable_sort(losses, std::greater(), &MeasuredProblem::regret);
  std::string text;
  for (const MeasuredProblem* item : losses) {
    text += cat(item->line, "\n");
    for (const std::size_t place : {item->choice(), item->best()}) {
      const MeasuredCandidate& candidate = item->candidates[place];
      text += cat(place == item->choice() ? "  > " : "  * ", "predicted ",
                  padded(significant(candidate.estimated * 1e6, 4), 6), " us, measured ",
                  padded(significant(candidate.measured * 1e6, 4), 6), " us  ",
                  describe(candidate.name), "\n");
    }
  }
  return text;
}

}  // namespace kiln::cli::fit
