// The benchmark's results: one row per contestant and case, printed as a table, CSV or JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/measurement.hpp"

namespace kiln::cli::bench {

struct Row {
  std::string suite, layer, operation, direction, type, layout, math;
  std::int64_t batch = 0;
  std::string contestant, kernel;
  bool host_time = false;  // host time until the call returns, not the device's time
  std::optional<Times> times;
  double flops = 0, bytes = 0;  // of one execution
  std::uint64_t workspace = 0;
  std::optional<double> relative_rms, max_error;  // against the double-precision reference
  std::string note;     // why there are no times, or what is wrong with them
  std::string problem;  // text_of(problem)

  double teraflops() const;  // TFLOP/s at the median; 0 without times
  double gigabytes() const;
  std::string rate() const;  // TFLOP/s if flops are counted, else GB/s
};

// Names and values of everything that times depend on besides the code: chip, driver, versions.
using Machine = std::vector<std::pair<std::string, std::string>>;

std::string csv_field(const std::string& text);  // quoted where it must be
std::string csv_header();
std::string csv_line(const Row& row);
// The machine as lines of comments, then the header and the rows.
std::string csv_text(const Machine& machine, const std::vector<Row>& rows);
nlohmann::ordered_json json_of(const Machine& machine, const std::vector<Row>& rows);

// The headline of a case, and the line of one of its rows, compared with Kiln's row.
std::string table_headline(const Row& row);
std::string table_line(const Row& row, const Row* kiln);

}  // namespace kiln::cli::bench
