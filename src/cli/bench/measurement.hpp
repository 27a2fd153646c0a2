// Measures contestants against each other by interleaving their samples, so that changes of the
// chip (clocks, temperature, other work) affect all of them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace kiln::cli::bench {

struct Times {  // microseconds of one execution
  double median = 0, min = 0, max = 0;
  int samples = 0;
};

// The statistics of at least one sample, in any order.
Times times_of(std::vector<double> samples);

// One of the sets of buffers that executions rotate through.
struct BufferSet {
  int index = 0;
  std::span<void* const> operands;  // in the order of operands_of(problem)
};

// Something that is measured: Kiln, one algorithm of a peer, or a ceiling.
struct Contestant {
  // Names of rows of the result. The fastest of all contestants with a role gets that row: the
  // algorithms of a library compete for "cudnn legacy zero" (those without a workspace) and "cudnn
  // legacy any".
  std::vector<std::string> roles;
  std::string kernel;  // engine, tile and parts, or the algorithm
  std::uint64_t workspace = 0;
  double flops = 0, bytes = 0;  // of an execution; 0: those of the problem
  bool solves = true;           // it computes the problem's result, so its output is compared
  // Enqueues one execution on the default stream. If it is empty, `refusal` says why.
  std::function<void(const BufferSet&)> execute;
  std::string refusal;
};

struct MeasurementSettings {
  int samples = 9;      // of each contestant
  double warm_up = 30;  // milliseconds of work before the samples
  double sample = 2;    // least milliseconds of a sample: executions back to back
};

struct Measured {
  Times times;
  std::string failure;  // "" if there are times
};

// One result for each contestant, in order. If a contestant throws an Error, only its own result is
// a failure.
std::vector<Measured> measure(Device& device, std::span<const Contestant> contestants,
                              const std::function<BufferSet()>& next_set,
                              const MeasurementSettings& settings);

// For each contestant, microseconds of a single execution, the median of `samples`; before each one
// `flush` is called, which enqueues what empties the L2 cache. NaN if a contestant throws an Error.
std::vector<double> measure_alone(Device& device, std::span<const Contestant> contestants,
                                  const std::function<BufferSet()>& next_set,
                                  const std::function<void()>& flush, int samples);

}  // namespace kiln::cli::bench
