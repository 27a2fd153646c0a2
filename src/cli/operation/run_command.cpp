// kiln conv, local, pool, act, softmax, norm, tensor: run problems, check them, time them.
#include <array>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/operation/read_line.hpp"
#include "cli/operation/run.hpp"
#include "cli/options.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln::cli {
namespace {

struct Options {
  std::unique_ptr<Operation> operation;
  RunSettings settings;
  std::string device, arch, batch;
  std::vector<std::string> lines;
  bool json = false;
};

// A problem line and, in a batch, its place: "FILE:12".
struct Item {
  std::string place, text;
};

std::vector<Item> items_of(const Options& options) {
  std::vector<Item> items;
  for (const std::string& line : options.lines) items.push_back({"", line});
  if (!options.batch.empty()) {
    for (const auto& [number, text] : problem_lines(read_problem_file(options.batch))) {
      items.push_back({cat(options.batch, ":", number), text});
    }
  }
  return items;
}

using Devices = std::map<std::string, std::shared_ptr<Device>>;  // opened so far, by name

// The device of a problem. Without --device it is the host device for a line that says so.
std::shared_ptr<Device> device_of_line(const ReadLine& line, const Options& options,
                                       Devices& devices) {
  std::vector<std::string> chips = line.chips;
  if (chips.empty() && !options.arch.empty()) chips.push_back(options.arch);
  const std::string name = device_for(options.device, chips);
  std::shared_ptr<Device>& device = devices[name];
  if (!device) device = device_of(name);
  return device;
}

// The problems of a line, each with its result; the line alone where it cannot be read.
std::vector<std::pair<Item, RunResult>> run_item(const Item& item, const Options& options,
                                                 Devices& devices) {
  std::vector<std::pair<Item, RunResult>> results;
  LineDefaults defaults;
  defaults.own = options.operation.get();
  defaults.types = {options.operation->type};
  defaults.layouts = {options.operation->layout};
  defaults.grant = options.settings.finalize.grant;
  try {
    const std::vector<ReadLine> lines = read_line(item.text, defaults);
    for (const ReadLine& line : lines) {
      RunSettings settings = options.settings;
      settings.finalize.grant = line.grant;
      RunResult result =
          run_problem(device_of_line(line, options, devices), line.problem, settings);
      result.name = line.name;
      Item shown = item;
      if (lines.size() > 1) shown.text = cat(result.command, " ", result.problem);
      results.emplace_back(std::move(shown), std::move(result));
    }
  } catch (const Error& error) {
    RunResult refused;
    refused.command = options.operation->command();
    refused.problem = item.text;
    set_error(refused, error);
    results.emplace_back(item, std::move(refused));
  }
  return results;
}

// The command line that reproduces a failure.
std::string reproducer(const RunResult& result, const Options& options) {
  std::string text = cat("kiln ", result.command, " --check");
  if (!options.device.empty()) text += cat(" --device ", options.device);
  const Scalars& scalars = options.settings.scalars;
  if (scalars.alpha != 1) text += cat(" --alpha ", scalars.alpha);
  if (scalars.beta != 0) text += cat(" --beta ", scalars.beta);
  if (scalars.alpha2 != 1) text += cat(" --alpha2 ", scalars.alpha2);
  return text + cat(" --seed ", options.settings.seed, " ", result.problem);
}

void print(const Item& item, const RunResult& result, const Options& options) {
  std::string text = padded(name_of(result.status), 9);
  const bool well = result.status == Status::ran || result.status == Status::passed;
  if (!well) {
    if (!item.place.empty()) text += item.place + ": ";
    // The reason's other lines, a compiler's messages, follow on standard error.
    const std::size_t end = result.reason.find('\n');
    std::cout << text << item.text << ": " << result.reason.substr(0, end) << std::endl;
    if (end != std::string::npos) std::cerr << result.reason << '\n';
    if (result.comparison) std::cerr << "again: " << reproducer(result, options) << '\n';
    return;
  }
  text += cat(item.text, "  ", result.engine, " ", result.tile.substr(0, result.tile.find(',')),
              "  ", result.to_json()["kernel_source"].get<std::string>(), " ",
              significant(result.plan_milliseconds, 3), " ms  exec ",
              significant(result.median(), 3), " ms  ", result.rate());
  if (const auto& comparison = result.comparison) {
    text += cat("  rel ", scientific(comparison->relative_rms, 1));
    if (comparison->checked < comparison->outputs) {
      text += cat("  checked ", comparison->checked, " of ", comparison->outputs);
    }
  }
  std::cout << text << std::endl;
}

int run(const Options& options) {
  check_engine(options.settings.finalize.grant.only_engine);
  const std::vector<Item> items = items_of(options);
  if (items.empty())
    fail(KILN_STATUS_EXECUTION_FAILED, options.batch, " has no problem; nothing is run");
  check_device_name(options.device);
  std::array<int, 4> counts{};
  Devices devices;
  for (const Item& item : items) {
    for (const auto& [shown, result] : run_item(item, options, devices)) {
      ++counts[static_cast<std::size_t>(result.status)];
      if (options.json) {
        auto json = result.to_json();
        if (!shown.place.empty()) json["place"] = shown.place;
        json["seed"] = options.settings.seed;
        std::cout << json_line(json) << std::flush;
      } else {
        print(shown, result, options);
      }
    }
  }
  // With --json, standard output has nothing but objects, one a line.
  const auto count = [&](Status status) { return counts[static_cast<std::size_t>(status)]; };
  const int failed = count(Status::failed), refused = count(Status::refused);
  std::ostream& out = options.json ? std::cerr : std::cout;
  if (options.settings.check)
    out << count(Status::passed) << " passed, ";
  else
    out << count(Status::ran) << " ran (not compared; --check does), ";
  out << failed << " failed, " << refused << " refused" << std::endl;
  return failed + refused == 0 ? 0 : 1;
}

std::uint64_t fresh_seed() {
  std::random_device device;
  return device();
}

void add_run_command(Command app, Run& run_command, std::unique_ptr<Operation> operation) {
  auto options = std::make_shared<Options>();
  options->operation = std::move(operation);
  Operation& own = *options->operation;
  const Command command = app.add_command(own.command(), own.summary());
  RunSettings& settings = options->settings;
  settings.seed = fresh_seed();
  command.footer(own.line_help());
  command.add_option("PROBLEM", options->lines, "Problems, as described below");
  command
      .add_option("--batch", options->batch,
                  "File of problems, one a line, which may begin with flags of its own; blank "
                  "lines, # comments and lines that are a flag alone are skipped")
      .type_name("FILE");
  own.add_flags(command);
  command.add_option("--device", options->device, "cuda, cuda:N or host (default: the first GPU)");
  command.add_option("--arch", options->arch,
                     "The chip of a printed line: host runs on the host device; on a GPU, kernels "
                     "are chosen for the GPU that is there");
  command.add_option("--alpha", settings.scalars.alpha, "Factor of the result").show_default();
  command
      .add_option("--beta", settings.scalars.beta,
                  "Factor of the output's previous content, which is added; 0: it is not read")
      .show_default();
  if (std::string_view(own.command()) == "tensor")
    command.add_option("--alpha2", settings.scalars.alpha2, "Factor of b").show_default();
  if (std::string_view(own.command()) == "norm")
    command
        .add_option("--alpha2", settings.scalars.alpha2,
                    "Share that a batch has in the running statistics")
        .show_default();
  command.add_flag("--check", settings.check,
                   "Compare with the double-precision reference; large outputs by a sample");
  command.add_option("--repeat", settings.repeat, "Timed executions; the median is printed")
      .range(1, 1000000)
      .show_default();
  add_grant_options(command, settings.finalize.grant);
  command.add_flag(
      "--no-cache", [options] { options->settings.finalize.caching = Caching::bypass; },
      "Compile anew; neither read nor write a cache");
  command.add_option("--seed", settings.seed, "Seed of the random data (default: a new one)");
  command.add_flag("--json", options->json,
                   "One JSON object per line; counts go to standard error");
  command.when_parsed([options, &run_command] {
    if (options->lines.empty() && options->batch.empty()) {
      throw UsageError("no problem to run; expected PROBLEM... or --batch FILE");
    }
    run_command = [options] { return run(*options); };
  });
}

}  // namespace

void add_run_commands(Command app, Run& run) {
  std::vector<std::unique_ptr<Operation>> all = operations();
  for (std::unique_ptr<Operation>& operation : all) add_run_command(app, run, std::move(operation));
}

}  // namespace kiln::cli
