// Files of measured candidates: what `kiln tune --csv` writes, or the columns of it that a fit
// needs.
#pragma once

#include <string>
#include <vector>

#include "engines/choice.hpp"

namespace kiln::cli::fit {

struct MeasuredRow {
  std::string group;    // the file's name without folder and ending
  std::string problem;  // as the program takes it
  Winner name;          // with the engine's name of today
  double microseconds = 0;
};

// The rows that have a time. Lines that begin with # are comments. Throws UsageError, naming file,
// line and field, for what is no such file.
std::vector<MeasuredRow> read_measured_rows(const std::string& path);

// The columns problem, engine, tile, parts, measured_us.
std::string text_of(const std::vector<MeasuredRow>& rows);

}  // namespace kiln::cli::fit
