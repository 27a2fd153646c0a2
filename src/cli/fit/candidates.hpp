// Matches measured rows with the candidates that engines and rewrites offer today.
#pragma once

#include <string>
#include <vector>

#include "cli/fit/measured_rows.hpp"
#include "engines/method.hpp"

namespace kiln::cli::fit {

struct MeasuredCandidate {
  Winner name;
  const Method* method = nullptr;
  int kernel = 0, groups = 1;          // of the Candidate
  double measured = 0, estimated = 0;  // seconds
};

struct MeasuredProblem {
  std::string group, line;
  Problem problem;
  std::vector<MeasuredCandidate> candidates{};  // at least one
  // Whether the candidate with the least estimate of all that the library offers today was
  // measured: for most_workspace bytes granted, or for none.
  bool choice_measured = false;
  bool left_out = false;  // left out of the fit

  bool compares() const { return candidates.size() > 1; }
  std::size_t best() const;    // index of the candidate with the least measured time
  std::size_t choice() const;  // index of the candidate with the least estimate
  double regret() const;       // (time of the choice - time of the best) / time of the best
};

struct MeasuredSet {
  std::vector<MeasuredProblem> problems;
  std::vector<MeasuredRow> unmatched;  // rows of no candidate today, or of one served only by name

  std::vector<MeasuredRow> rows() const;  // the rows of all candidates
};

// If several rows are for one candidate, the last one counts. Throws UsageError if a row's problem
// cannot be parsed.
MeasuredSet candidates_of(const std::vector<MeasuredRow>& rows, const DeviceDescription& device);

// Sets choice_measured according to the current estimates.
void note_choices(MeasuredSet& set, const DeviceDescription& device);

}  // namespace kiln::cli::fit
