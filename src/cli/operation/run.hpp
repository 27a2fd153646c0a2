// Plans, executes and checks one problem; the result and how it is reported.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/operation/compare.hpp"
#include "core/error.hpp"
#include "device/device.hpp"
#include "kiln/kiln.h"
#include "plan/plan.hpp"

namespace kiln::cli {

struct RunSettings {
  Scalars scalars;
  bool check = false;
  int repeat = 1;
  FinalizeOptions finalize;
  std::uint64_t seed = 0;  // of the random data
};

enum class Status {
  ran,  // executed, but not compared with the reference
  passed,
  failed,
  refused
};

struct RunResult {
  Status status = Status::ran;
  std::string reason;  // a sentence, or several lines of a compiler; "" if it ran

  std::string command;  // "conv"
  std::string problem;  // flags and line, as the command takes them
  std::string name;
  Work work;

  // Set once there is a plan:
  std::string engine, tile, architecture;
  kilnKernelOrigin_t origin = KILN_KERNEL_COMPILED;
  KernelTimes times;             // milliseconds
  double plan_milliseconds = 0;  // all of finalization
  int registers = 0, local_memory = 0;
  std::size_t workspace = 0;  // bytes

  std::vector<double> executions;  // milliseconds each, ascending
  std::optional<Comparison> comparison;

  double median() const;     // milliseconds
  double teraflops() const;  // TFLOP/s at the median
  double gigabytes() const;  // GB/s at the median, of the least bytes that must move
  std::string rate() const;  // TFLOP/s for a convolution, else GB/s
  nlohmann::ordered_json to_json() const;
};

const char* name_of(Status status);

// Plans and executes a problem, and checks it if `settings` say so. Does not throw Error: the
// result reports it.
RunResult run_problem(const std::shared_ptr<Device>& device, const Problem& problem,
                      const RunSettings& settings);

// Makes `result` that of an error: refused if the problem, or a compiler's absence, does not let it
// be planned; else failed.
void set_error(RunResult& result, const Error& error);

}  // namespace kiln::cli
