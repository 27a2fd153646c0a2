// kiln inspect: the kernel of a problem at every stage of its making, and what differs between two.
// Needs no GPU.
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <sstream>
#include <utility>

#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "cli/inspect/diff.hpp"
#include "cli/inspect/inspect_stage.hpp"
#include "cli/operation/read_line.hpp"
#include "cli/options.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "core/process/file_descriptor.hpp"

namespace kiln::cli {
namespace {

struct Options {
  std::unique_ptr<Operation> operation;
  std::string line, stage = "spec", output, sources;
  Grant grant;
  std::size_t step = 0;
  std::string architectures;                 // separated by ','
  std::pair<std::string, std::string> diff;  // empty: none
  bool json = false;
};

std::vector<std::string> architectures_of(const Options& options) {
  std::vector<std::string> names;
  std::istringstream stream(options.architectures);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

// What a line says, with the command line's flags for what it does not say.
ReadLine read(const Options& options, const std::string& line) {
  LineDefaults defaults;
  defaults.own = options.operation.get();
  defaults.types = {options.operation->type};
  defaults.layouts = {options.operation->layout};
  defaults.grant = options.grant;
  return read_one(line, defaults);
}

// arch: of --arch; "": the line's own, else the default.
std::string text_of(const Options& options, const std::string& line, const std::string& arch) {
  const ReadLine asked = read(options, line);
  std::string text = stage_text(options.stage, asked.problem, chip_of(asked.chips, arch),
                                asked.grant, options.step, options.json);
  if (options.stage != "cubin" && !text.ends_with('\n')) text += '\n';
  return text;
}

// Compares two architectures for one problem, or two problems for one architecture: `--diff A B`.
std::string difference(const Options& options) {
  if (options.stage == "cubin")
    throw UsageError(
        "--diff is for text; expected --emit spec, candidates, source, ptx, sass or resources");
  if (options.json) throw UsageError("--diff prints text; expected it without --json");
  const auto is_architecture = [](const std::string& word) {
    return word == "host" || word.starts_with("sm_");
  };
  const auto& [before, after] = options.diff;
  const bool of_architectures = is_architecture(before) && is_architecture(after);
  const std::vector<std::string> given = architectures_of(options);
  if (of_architectures ? options.line.empty() || !given.empty()
                       : !options.line.empty() || given.size() > 1)
    throw UsageError(
        "--diff takes two architectures and a PROBLEM, or two problems and at most one --arch");
  const auto side = [&](const std::string& name) {
    const std::string text = of_architectures
                                 ? text_of(options, options.line, name)
                                 : text_of(options, name, given.empty() ? "" : given.front());
    return LabelledText{name, comparable(options.stage, text)};
  };
  return unified_diff(side(before), side(after));
}

std::string stages(const Options& options) {
  if (options.line.empty()) throw UsageError("no PROBLEM; see kiln inspect --help");
  const std::vector<std::string> given = architectures_of(options);
  if (given.empty()) return text_of(options, options.line, "");
  if (given.size() > 1 && options.stage != "spec" && options.stage != "candidates" &&
      options.stage != "resources" && !options.json)
    throw UsageError(
        cat("--arch is ", options.architectures, "; --emit ", options.stage,
            " takes one architecture; spec, candidates, resources and --json take several"));
  std::string text;
  for (const std::string& arch : given)
    text += cat(text.empty() || options.json ? "" : "\n", text_of(options, options.line, arch));
  return text;
}

std::string sources(const Options& options) {
  const std::vector<std::string> given = architectures_of(options);
  if (options.line.empty() || given.size() > 1 || !options.diff.first.empty())
    throw UsageError("--sources takes a PROBLEM, at most one --arch, and no --diff");
  const ReadLine asked = read(options, options.line);
  return write_sources(options.sources, asked.problem,
                       chip_of(asked.chips, given.empty() ? "" : given.front()), asked.grant);
}

// Whether what is written there, or with "" to standard output, is shown on a terminal.
bool writes_to_terminal(const std::string& path) {
  if (path.empty()) return isatty(STDOUT_FILENO) != 0;
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  return file && isatty(file.get()) != 0;
}

int run(const Options& options) {
  check_engine(options.grant.only_engine);
  if (options.json && options.stage == "cubin")
    throw UsageError(
        "a cubin is not for JSON; expected --emit cubin without --json, or another stage");
  if (options.stage == "cubin" && writes_to_terminal(options.output)) {
    throw UsageError("a cubin is not for a terminal; expected -o FILE, or a pipe");
  }
  if (!options.sources.empty()) {
    std::cout << sources(options) << std::flush;
    return 0;
  }
  const std::string text = options.diff.first.empty() ? stages(options) : difference(options);
  if (options.output.empty()) {
    std::cout << text << std::flush;
    if (!std::cout) fail(KILN_STATUS_EXECUTION_FAILED, "cannot write to standard output");
    return 0;
  }
  if (const std::string why = write_file(options.output, text); !why.empty())
    fail(KILN_STATUS_EXECUTION_FAILED, "cannot write ", options.output, ": ", why);
  return 0;
}

}  // namespace

void add_inspect_command(Command app, Run& run_command) {
  const Command command =
      app.add_command("inspect", "Show the kernel that a problem gets; needs no GPU");
  auto options = std::make_shared<Options>();
  command
      .add_option("--emit", options->stage,
                  "spec: engine, tile, key, options, constants; candidates: every kernel that was "
                  "considered, with its estimated time, and every engine's refusal; source: the "
                  "generated text; ptx; cubin; "
                  "sass, through nvdisasm or cuobjdump; resources: registers, shared memory, "
                  "spills, occupancy")
      .one_of(stage_names)
      .show_default();
  command.add_option("--arch", options->architectures,
                     "sm_XX, a chip (h100, h200, a100, ...) or host (default: the line's, the "
                     "first GPU's, else sm_90a, an H200); spec, candidates, "
                     "resources and --json take several separated by ','");
  command
      .add_option("--diff", options->diff,
                  "What differs between two problems, or with a PROBLEM between two architectures")
      .type_name("A B");
  command
      .add_option("--sources", options->sources,
                  "Write the kernel's files into this folder, to be edited and then taken from it "
                  "by KILN_KERNEL_SOURCE_DIR")
      .type_name("FOLDER");
  add_line_info_flag(command);
  command.add_flag(
      "--json", options->json,
      "One object a line: the spec, the candidates, the refusals, and what --emit names");
  add_grant_options(command, options->grant);
  command.add_option("--step", options->step, "Which of the plan's kernels, from 0");
  command.add_option("-o", options->output, "Write there instead of to standard output")
      .type_name("FILE");
  // Each operation is a subcommand with its own flags, as in `kiln inspect pool LINE`. Without a
  // subcommand the line is a convolution's.
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
    const Command sub = command.add_command(operation->command(),
                                            cat("The kernel of `kiln ", operation->command(), "`"));
    sub.footer(operation->line_help());
    sub.pass_unknown_to_parent();
    operation->add_flags(sub);
    sub.add_option("PROBLEM", options->line, "One problem, as described below");
    sub.when_parsed([=] { inspect(options, operation); });
  }
  const std::shared_ptr<Operation> conv = std::move(operations().front());
  command.footer(conv->line_help());
  conv->add_flags(command);
  command.add_option("PROBLEM", options->line, "One problem, as described below");
  command.at_most_one_command();
  command.when_parsed([=] {
    if (!command.names_command()) inspect(options, conv);
  });
}

}  // namespace kiln::cli
