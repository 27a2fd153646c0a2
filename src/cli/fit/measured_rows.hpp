// Files of measured candidates: those that `kiln tune --csv` writes, or only the columns that a fit
// needs.
#pragma once

#include <string>
#include <vector>

#include "engines/choice.hpp"

namespace kiln::cli::fit {

struct MeasuredRow {
  std::string group;    // the file's name without folder and ending
  std::string problem;  // text_of(problem)
  Winner name;          // with the engine's present name
  double microseconds = 0;
};

// The rows that have a time. Lines that begin with # are comments. Throws UsageError, naming file,
// line and field, if the file is not of this kind.
std::vector<MeasuredRow> read_measured_rows(const std::string& path);

// The rows as CSV with the columns problem, engine, tile, parts, measured_us.
std::string text_of(const std::vector<MeasuredRow>& rows);

}  // namespace kiln::cli::fit
