// Measures the candidates of problems on a device, and remembers the fastest.
#pragma once

#include <memory>

#include "cli/bench/operands.hpp"
#include "cli/tune/outcome.hpp"

namespace kiln::cli::tune {

struct TuningSettings {
  bench::MeasurementSettings full;  // for candidates close to the fastest
  // Candidates predicted to take longer than this many times the least prediction are left out.
  double within = 3;
  int threads = 1;                     // compilers at a time
  std::vector<std::string> engines{};  // measured alone; empty: all
  std::size_t workspace = 0;           // bytes that kernels may use
};

class Tuner {
 public:
  Tuner(std::shared_ptr<Device> device, const TuningSettings& settings);

  // One sample of each candidate, then full measurements of those near the fastest; the winner's
  // result is compared with the reference, and it is written down. Never throws for a fault of the
  // problem, which the outcome reports. Throws EXECUTION_FAILED if nothing can be written.
  Outcome run(const bench::Case& item);

 private:
  void measure_all(const bench::Case& item, std::vector<Option>& options, Outcome& outcome);

  std::shared_ptr<Device> device_;
  TuningSettings settings_;
  bench::RandomPool pool_;
};

}  // namespace kiln::cli::tune
