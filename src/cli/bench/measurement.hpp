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

// Of at least one sample, in any order.
Times times_of(std::vector<double> samples);

// One of the sets of buffers that executions take by turns.
struct BufferSet {
  int index = 0;
  std::span<void* const> operands;  // in the order of operands_of(problem)
};

// Whoever solves a problem: Kiln, one algorithm of a peer, a ceiling.
struct Contestant {
  // The roles whose rows it competes for. Of all contestants with a role, the fastest gets the row:
  // the algorithms of a library compete for "cudnn legacy zero" (those without a workspace) and
  // "cudnn legacy any".
  std::vector<std::string> roles;
  std::string kernel;  // engine, tile and parts, or the algorithm
  std::uint64_t workspace = 0;
  double flops = 0, bytes = 0;  // of an execution, where they are not those of the problem
  bool solves = true;           // the problem itself, so that its output can be compared
  // Enqueues one execution on the default stream. Empty if there is none, and `refusal` says why.
  std::function<void(const BufferSet&)> execute;
  std::string refusal;
};

struct MeasurementSettings {
  int samples = 9;      // of each contestant
  double warm_up = 30;  // milliseconds of work before them
  double sample = 2;    // milliseconds that a sample lasts at least: executions back to back
};

struct Measured {
  Times times;
  std::string failure;  // "" if there are times
};

// One of each contestant, in order. An Error while one executes is its failure, and not the
// others'.
std::vector<Measured> measure(Device& device, std::span<const Contestant> contestants,
                              const std::function<BufferSet()>& next_set,
                              const MeasurementSettings& settings);

}  // namespace kiln::cli::bench
