// kiln inspect: the kernel of a problem at every stage of its making. Needs no GPU.
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/disassemble.hpp"
#include "cli/problem_options.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli {
namespace {

struct Options {
  ProblemOptions problem;
  std::string line, stage = "spec", arch, engine, output;
};

std::string default_architecture() {
  std::string why;
  const auto devices = list_cuda_devices(why);
  return devices.empty() ? "sm_90a" : devices[0].arch;
}

std::string print_spec(const ConvolutionProblem& problem, const Proposal& proposal,
                       const DeviceDescription& device) {
  const KernelSpec& kernel = proposal.kernel;
  const LaunchShape& shape = proposal.launch.shape;
  return cat("problem        ", to_line(problem), "\narchitecture   ", device.arch,
             "\nengine         ", kernel.engine, "\ntile           ", kernel.tile,
             "\nkernel         ", kernel.entry, " of ", kernel.file, "\ngrid           ",
             join(shape.grid, " x "), " blocks of ", join(shape.block, " x "), " threads",
             shape.cluster > 1 ? cat(", clusters of ", shape.cluster) : "", "\nshared memory  ",
             kernel.shared_memory, " bytes a block\nalignment      ", kernel.alignment,
             " bytes\n\n", print_constants(kernel));
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string stage_of(const Options& options) {
  const ConvolutionProblem problem = options.problem.make(parse_convolution_line(options.line));
  const DeviceDescription device =
      architecture_of(options.arch.empty() ? default_architecture() : options.arch);
  const Proposal proposal = choose_kernel(problem, device, options.engine);
  if (options.stage == "spec") return print_spec(problem, proposal, device);
  if (options.stage == "source") return generate_source(proposal.kernel, device.kind);
  if (device.kind == KILN_DEVICE_HOST && options.stage != "cubin") {
    throw UsageError(cat("the host device has no ", options.stage,
                         "; expected --emit spec, source or cubin (its shared object)"));
  }
  const auto image = make_image(proposal.kernel, device.kind, device.arch).image;
  if (options.stage == "ptx") return image->ptx;
  if (options.stage == "cubin") return text_of(image->binary);
  return disassemble(image->binary);
}

int run(const Options& options) {
  check_engine(options.engine);
  if (options.stage == "cubin" && options.output.empty() && isatty(STDOUT_FILENO)) {
    throw UsageError("a cubin is not for a terminal; expected -o FILE, or a pipe");
  }
  std::string text = stage_of(options);
  if (options.stage != "cubin" && !text.empty() && text.back() != '\n') text += '\n';
  if (options.output.empty()) {
    std::cout << text << std::flush;
    if (!std::cout) fail(KILN_STATUS_EXECUTION_FAILED, "cannot write to standard output");
    return 0;
  }
  std::ofstream file(options.output, std::ios::binary);
  file << text;
  file.close();
  if (!file) fail(KILN_STATUS_EXECUTION_FAILED, "cannot write ", options.output);
  return 0;
}

}  // namespace

void add_inspect_command(CLI::App& app, Run& run_command) {
  CLI::App& command =
      *app.add_subcommand("inspect", "Show the kernel that a problem gets; needs no GPU");
  auto options = std::make_shared<Options>();
  command.footer(problem_help);
  command.add_option("PROBLEM", options->line, "One problem, as described below")->required();
  command
      .add_option("--emit", options->stage,
                  "spec: engine, tile, constants; source: the generated text; ptx; cubin; sass, "
                  "through nvdisasm or cuobjdump")
      ->check(CLI::IsMember({"spec", "source", "ptx", "cubin", "sass"}))
      ->capture_default_str();
  command.add_option("--arch", options->arch,
                     "sm_XX or host (default: the first GPU's, else sm_90a)");
  options->problem.add_to(command);
  command.add_option("--engine", options->engine, "Use this engine alone");
  command.add_option("-o", options->output, "Write there instead of to standard output")
      ->type_name("FILE");
  command.callback([options, &run_command] { run_command = [options] { return run(*options); }; });
}

}  // namespace kiln::cli
