// Measures the candidates of problems on a device, and remembers the fastest.
#pragma once

#include <memory>

#include "cli/bench/operands.hpp"
#include "cli/device/device_buffer.hpp"
#include "cli/tune/outcome.hpp"

namespace kiln::cli::tune {

struct TuningSettings {
  bench::MeasurementSettings full;  // of candidates close to the fastest
  // Candidates predicted to take longer than this many times the least prediction are left out.
  double within = 3;
  int threads = 1;                     // compilers that run at once
  std::vector<std::string> engines{};  // only these are measured; empty: all
};

class Tuner {
 public:
  Tuner(std::shared_ptr<Device> device, const TuningSettings& settings);

  // Takes one sample of each candidate, then measures those near the fastest in full: back to back,
  // on buffers that rotate, and for comparison alone with a flushed L2 cache. Compares the winner's
  // result with the reference, and writes its name to the tuning file. Failures of a
  // problem are in the outcome. Throws EXECUTION_FAILED if the tuning file cannot be written.
  Outcome run(const bench::Case& item);

 private:
  void flush();  // enqueues a copy that empties the L2 cache; nothing where there is none
  void measure_all(const bench::Case& item, std::vector<Option>& options, Outcome& outcome);

  std::shared_ptr<Device> device_;
  TuningSettings settings_;
  bench::RandomPool pool_;
  std::unique_ptr<DeviceBuffer> flush_;  // two halves of the L2 cache's size
};

}  // namespace kiln::cli::tune
