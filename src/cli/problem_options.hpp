// The options that, with a problem line, make a problem; and those that name a device.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/problem_line.hpp"

namespace kiln::cli {

inline const std::vector<std::string> type_names{"f32", "f64", "f16", "bf16"};
inline const std::vector<std::string> layout_names{"nchw", "nhwc"};

DataType type_of(const std::string& name);
kilnTensorFormat_t layout_of(const std::string& name);

// What the problem line does not say.
struct ProblemOptions {
  std::string type = "f32", layout = "nchw", mode = "xcorr";
  std::string x_strides, w_strides, y_strides;  // "a:b:c...": elements, outermost first

  void add_to(CLI::App& command);

  // Throws BAD_PARAM.
  ConvolutionProblem make(const ConvolutionLine& line) const;
};

// What --help tells of problem lines.
extern const char* const problem_help;

// Throws UsageError if no engine has that name; "" is no name.
void check_engine(const std::string& name);

// The kernel that a plan on such a device would take. Throws NOT_SUPPORTED with every engine's
// reason.
Proposal choose_kernel(const ConvolutionProblem& problem, const DeviceDescription& device,
                       const std::string& only_engine = {});

// The device that --device names: "cuda", "cuda:1", "host"; "" is the first GPU. Throws UsageError
// that says "use --device host" where there is no GPU.
std::shared_ptr<Device> device_of(const std::string& name);

// The description behind --arch: "sm_80", or "host". Throws BAD_PARAM.
DeviceDescription architecture_of(const std::string& arch);

}  // namespace kiln::cli
