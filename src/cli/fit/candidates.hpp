// Measured rows as candidates that the engines have today.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/measured_rows.hpp"
#include "engines/engine.hpp"

namespace kiln::cli::fit {

struct MeasuredCandidate {
  Winner name;
  const Engine* engine = nullptr;
  int kernel = 0;                      // of the engine; with name.parts it tells the candidate
  double measured = 0, estimated = 0;  // seconds
};

struct MeasuredProblem {
  std::string group, line;
  Problem problem;
  std::vector<MeasuredCandidate> candidates{};  // at least one
  // Whether the candidate was measured that the program chooses today, with the most workspace that
  // any plan uses or with none.
  bool choice_measured = false;
  bool left_out = false;  // of the fit

  bool compares() const { return candidates.size() > 1; }
  std::size_t best() const;    // measured
  std::size_t choice() const;  // the least estimate
  double regret() const;       // what the choice takes more than the best, over the best's time
};

struct MeasuredSet {
  std::vector<MeasuredProblem> problems;
  std::vector<MeasuredRow> unmatched;  // rows that are no candidate today, or only by name

  std::vector<MeasuredRow> rows() const;  // all others
};

// Of two rows for one candidate the last counts. Throws UsageError for what is no problem.
MeasuredSet candidates_of(const std::vector<MeasuredRow>& rows, const DeviceDescription& device);

// Sets choice_measured anew, by the estimates of the moment.
void note_choices(MeasuredSet& set, const DeviceDescription& device);

}  // namespace kiln::cli::fit
