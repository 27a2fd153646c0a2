// The benchmark's results: one row per contestant and case, as a line of a table, as CSV, as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
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
  std::string problem;  // as the program takes it

  double teraflops() const;  // TFLOP/s at the median; 0 without times
  double gigabytes() const;
  std::string rate() const;  // TFLOP/s if flops are counted, else GB/s
};

// Names and values of everything besides the code that times depend on: chip, driver, versions.
using Machine = std::vector<std::pair<std::string, std::string>>;

std::string csv_field(const std::string& text);  // quoted where it must be
std::string csv_header();
std::string csv_line(const Row& row);
// The machine as lines of comments, the header, the rows.
std::string csv_text(const Machine& machine, const std::vector<Row>& rows);
nlohmann::ordered_json json_of(const Machine& machine, const std::vector<Row>& rows);

// A case's headline and its rows, each beside Kiln's.
std::string table_headline(const Row& row);
std::string table_line(const Row& row, const Row* kiln);

}  // namespace kiln::cli::bench
