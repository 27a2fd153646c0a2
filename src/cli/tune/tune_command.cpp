// kiln tune: measures the candidates of given problems, and remembers the fastest one of each for
// later plans.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cli/cache/manifest.hpp"
#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/operation/operation.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/tune/tuner.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "plan/compile_slots.hpp"
#include "plan/kernel_cache.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

namespace kiln::cli {
namespace {

using namespace tune;  // NOLINT(google-build-using-namespace): the command is all of it

struct Options {
  std::vector<std::string> lines;
  std::string batch, device, csv;
  bench::Selection selection;
  TuningSettings settings;
  std::size_t workspace = 0;  // granted where a line does not say
  double time_limit = 0;
  bool json = false;
};

struct Asked {
  std::vector<bench::Case> cases;
  std::vector<std::string> chips;  // that lines name
};

void add_lines(const Manifest& manifest, Asked& asked) {
  for (const std::string& flaw : manifest.flaws) throw UsageError(flaw);
  for (const ManifestEntry& entry : manifest.entries) {
    bench::Case item;
    item.problem = entry.problem;
    item.grant = entry.grant;
    asked.cases.push_back(std::move(item));
    asked.chips.insert(asked.chips.end(), entry.chips.begin(), entry.chips.end());
  }
}

// Problems in the order in which they were given, each once.
Asked cases_of(const Options& options) {
  ManifestDefaults defaults;
  defaults.batches = options.selection.batches;
  defaults.grant.workspace = std::min(options.workspace, most_workspace);
  defaults.other_devices = true;
  if (!options.selection.types.empty()) defaults.types = options.selection.types;
  if (!options.selection.layouts.empty()) defaults.layouts = options.selection.layouts;
  Asked all, asked;
  std::string lines;
  for (const std::string& line : options.lines) lines += line + "\n";
  add_lines(parse_manifest("PROBLEM", lines, defaults), all);
  if (!options.batch.empty()) add_lines(read_manifest(options.batch, defaults), all);
  if (!options.selection.suites.empty())
    for (bench::Case& item : bench::cases_of(options.selection)) {
      item.grant = defaults.grant;
      all.cases.push_back(std::move(item));
    }
  std::set<std::string> seen;
  for (bench::Case& item : all.cases)
    if (seen.insert(flags_of(item.grant) + kiln::text_of(item.problem)).second)
      asked.cases.push_back(std::move(item));
  asked.chips = std::move(all.chips);
  return asked;
}

// Writes all outcomes. It is called after each problem, so that an interrupted run keeps its
// results.
void write_csv(const std::string& path, const std::vector<Outcome>& outcomes) {
  if (path.empty()) return;
  if (const std::string why = write_file(path, csv_text(outcomes)); !why.empty())
    throw UsageError(cat("cannot write ", path, ": ", why));
}

int run(const Options& options) {
  if (cache_mode() != CacheMode::on)
    throw UsageError(cat("KILN_CACHE is ", kiln::name_of(cache_mode()),
                         "; expected on, for what is found is kept"));
  for (const std::string& engine : options.settings.engines) check_engine(engine);
  const Asked asked = cases_of(options);
  const std::vector<bench::Case>& cases = asked.cases;
  if (cases.empty())
    throw UsageError(options.selection.suites.empty()
                         ? cat(options.batch, " has no problem; expected one a line")
                         : "no problem is left: --layers or --mb exclude all");
  const std::shared_ptr<Device> device = device_of(device_for(options.device, asked.chips));
  device->make_current();
  set_compile_threads(options.settings.threads);
  Tuner tuner(device, options.settings);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<Outcome> outcomes;
  int failures = 0, kept = 0;
  {
    Progress progress(static_cast<int>(cases.size()));
    for (const bench::Case& item : cases) {
      if (options.time_limit > 0 && seconds() > options.time_limit) break;
      const std::string job = plan_line(item.problem, device->description(), item.grant);
      progress.begin(job);
      outcomes.push_back(tuner.run(item));
      failures += !outcomes.back().failure.empty();
      kept += outcomes.back().kept;
      std::string told =
          options.json ? json_line(json_of(outcomes.back())) : text_of(outcomes.back());
      if (options.json) told.pop_back();
      progress.done(job, told, true);
      write_csv(options.csv, outcomes);
    }
  }
  std::ostream& out = options.json ? std::cerr : std::cout;
  out << text_of(summary_of(outcomes)) << '\n'
      << outcomes.size() << " of " << cases.size() << " problems in " << duration_text(seconds())
      << ", " << failures << " failed; "
      << (kept == 0 ? "no winner is kept" : cat(kept, " winners are in ", tuning_file()))
      << std::endl;
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_tune_command(Command app, Run& run_command) {
  auto options = std::make_shared<Options>();
  options->settings.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  bench::Selection& selection = options->selection;
  const Command command =
      app.add_command("tune", "Measure all candidates of problems; plans then take the fastest");
  command.footer(
      "Problems are lines as `kiln prewarm` takes them: \"conv --dt f16 mb1_ic64ih56oc64kh3ph1\".\n"
      "Time goes into what differs: candidates predicted to take more than --within times the "
      "best\n"
      "prediction are left out, each other is sampled once, and those within 25% of the fastest "
      "are\n"
      "measured in full: executions back to back, on operands that rotate through more than the "
      "L2\n"
      "cache, as in a step of a network. \"flushed\" is a single execution's time, with that "
      "cache\n"
      "flushed before it. Of each problem: * the fastest, > the cost model's choice.");
  command.add_option("PROBLEM", options->lines, "Problems, as described below");
  command
      .add_option("--batch", options->batch,
                  "File of problems, one a line, as `kiln prewarm` reads")
      .type_name("FILE");
  const auto list = [&](const std::string& flag, std::vector<std::string>& values,
                        const std::string& help) {
    return command.add_option(flag, values, help).delimiter(',');
  };
  list("--suite", selection.suites, "The benchmark's: paper, resnet50, vgg16, memory")
      .one_of({"paper", "resnet50", "vgg16", "memory"});
  list("--layers", selection.layers, "Only layers of the suites with one of these in their names");
  list("--dir", selection.directions, "Passes of the suites: fwd, dgrad, wgrad")
      .one_of(bench::direction_names);
  list("--math", selection.maths, "Math modes of f32 in the suites: strict, default, tf32")
      .one_of(bench::math_names);
  list("--dt", selection.types, "Data types (default: f32)").one_of(type_names);
  list("--layout", selection.layouts, "Layouts (default: nchw)").one_of(layout_names);
  command.add_option("--mb", selection.batches, "Batch sizes (default: the lines' own)")
      .delimiter(',')
      .positive();
  command.add_option("--device", options->device, "cuda, cuda:N or host (default: the first GPU)");
  command
      .add_option("--engine", options->settings.engines,
                  "Candidates of these engines alone; plans then take the fastest of them")
      .delimiter(',')
      .single();  // a problem may follow
  command.add_option("--workspace", options->workspace,
                     "Bytes of workspace that kernels may use, at most 16 MB; for plans granted as "
                     "many (default: 0)");
  command
      .add_option(
          "--within", options->settings.within,
          "Leave out candidates predicted to take more than this many times the best prediction")
      .range(1.0, 1e6)
      .show_default();
  command.add_option("--samples", options->settings.full.samples, "Timings of each candidate")
      .range(1, 10000)
      .show_default();
  command
      .add_option("--warm-up", options->settings.full.warm_up,
                  "Milliseconds of work before a candidate's first sample")
      .range(0.0, 10000.0)
      .show_default();
  command.add_option("-j", options->settings.threads, "Compilations at a time")
      .range(1, 1024)
      .show_default();
  command
      .add_option("--time-limit", options->time_limit,
                  "Seconds after which no further problem begins; 0: none")
      .not_negative()
      .show_default();
  command.add_flag("--json", options->json,
                   "One JSON object a problem; counts go to standard error");
  command.add_option("--csv", options->csv, "Write all candidates there").type_name("FILE");
  command.when_parsed([options, &run_command] {
    if (options->lines.empty() && options->batch.empty() && options->selection.suites.empty())
      throw UsageError("no problem to tune; expected PROBLEM..., --batch FILE or --suite NAME");
    run_command = [options] { return run(*options); };
  });
}

}  // namespace kiln::cli
