// kiln inspect: the kernel of a problem at every stage of its making. Needs no GPU.
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/device_options.hpp"
#include "cli/disassemble.hpp"
#include "cli/operation.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "engines/engine.hpp"
#include "plan/kernel_store.hpp"

namespace kiln::cli {
namespace {

struct Options {
  std::unique_ptr<Operation> operation;
  std::string line, stage = "spec", arch, engine, output;
};

std::string print_spec(const Problem& problem, const Proposal& proposal,
                       const DeviceDescription& device) {
  const KernelSpec& kernel = proposal.kernel;
  const LaunchShape& shape = proposal.launch.shape;
  return cat("problem        ", kiln::text_of(problem), "\narchitecture   ", device.arch,
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
  const Problem problem = parse_line(*options.operation, options.line).problem;
  const DeviceDescription device =
      architecture_of(options.arch.empty() ? default_architecture() : options.arch);
  std::vector<EngineRefusal> refusals;
  const Proposal proposal = choose(problem, device, options.engine, refusals);
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
  command
      .add_option("--emit", options->stage,
                  "spec: engine, tile, constants; source: the generated text; ptx; cubin; sass, "
                  "through nvdisasm or cuobjdump")
      ->check(CLI::IsMember({"spec", "source", "ptx", "cubin", "sass"}))
      ->capture_default_str();
  command.add_option("--arch", options->arch,
                     "sm_XX or host (default: the first GPU's, else sm_90a)");
  command.add_option("--engine", options->engine, "Use this engine alone");
  command.add_option("-o", options->output, "Write there instead of to standard output")
      ->type_name("FILE");
  // `kiln inspect pool LINE`, with the operation's own flags; without its name, a convolution's.
  const auto inspect = [&run_command](const std::shared_ptr<Options>& shared,
                                      const std::shared_ptr<Operation>& operation) {
    run_command = [shared, operation] {
      shared->operation = operation->clone();
      return run(*shared);
    };
  };
  std::vector<std::unique_ptr<Operation>> all = operations();
  for (std::unique_ptr<Operation>& each : all) {
    const std::shared_ptr<Operation> operation = std::move(each);
    CLI::App& sub = *command.add_subcommand(operation->command(),
                                            cat("The kernel of `kiln ", operation->command(), "`"));
    sub.footer(operation->line_help());
    sub.fallthrough();
    operation->add_flags(sub);
    sub.add_option("PROBLEM", options->line, "One problem, as described below")->required();
    sub.callback([=] { inspect(options, operation); });
  }
  const std::shared_ptr<Operation> conv = std::move(operations().front());
  command.footer(conv->line_help());
  conv->add_flags(command);
  command.add_option("PROBLEM", options->line, "One problem, as described below");
  command.require_subcommand(0, 1);
  command.callback([=, &command] {
    if (!command.get_subcommands().empty()) return;
    if (options->line.empty()) throw UsageError("no PROBLEM; see kiln inspect --help");
    inspect(options, conv);
  });
}

}  // namespace kiln::cli
