// kiln fit: tells how good the cost model's choices among measured candidates are, and fits
// constants that make them better.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <regex>
#include <sstream>
#include <thread>

#include "cli/commands.hpp"
#include "cli/files.hpp"
#include "cli/fit/constants.hpp"
#include "cli/fit/fitting.hpp"
#include "cli/fit/report.hpp"
#include "cli/format.hpp"
#include "cli/options.hpp"
#include "cli/usage_error.hpp"
#include "core/text.hpp"

namespace kiln::cli {
namespace {

using namespace fit;  // NOLINT(google-build-using-namespace): the command is all of it

struct Options {
  std::vector<std::string> files, families;
  std::string chip = "h200", left_out, out, rows;
  int threads = 1;
};

void leave_out(MeasuredSet& set, const std::string& pattern) {
  if (pattern.empty()) return;
  try {
    const std::regex expression(pattern);
    for (MeasuredProblem& item : set.problems)
      item.left_out = std::regex_search(cat(item.group, ".csv ", item.line), expression);
  } catch (const std::regex_error& error) {
    throw UsageError(
        cat("--leave-out is \"", pattern, "\"; expected a regular expression: ", error.what()));
  }
}

void write_or_complain(const std::string& path, const std::string& text) {
  if (const std::string why = write_file(path, text); !why.empty())
    throw UsageError(cat("cannot write ", path, ": ", why));
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%F", &parts);
  return text;
}

std::string comment_of(const std::string& text) {
  std::istringstream lines(text);
  std::string comment;
  for (std::string line; std::getline(lines, line);)
    comment += line.empty() ? "//\n" : cat("// ", line, "\n");
  return comment;
}

std::string head_of(const Options& options, const DeviceDescription& device, const Fitting& fitting,
                    const std::string& counts, const std::string& tables) {
  std::string families;
  for (const FamilyFit& fit : fitting.families)
    families += cat("Fitted: ", fit.family, ", loss ", significant(fit.before, 3), " before, ",
                    significant(fit.after, 3), " after.\n");
  return comment_of(
      cat("Written by `kiln fit`; do not edit. ", device.name, ", ", today(), ".\n",
          families.empty() ? "Fitted: none; the constants are as they were.\n" : families,
          "Left out of the fit: ",
          options.left_out.empty() ? "nothing" : cat("what matches ", options.left_out), ".\n",
          counts, "\n", tables));
}

std::string counts_of(const MeasuredSet& set) {
  std::size_t candidates = 0, unmeasured = 0;
  for (const MeasuredProblem& item : set.problems) {
    candidates += item.candidates.size();
    unmeasured += !item.choice_measured;
  }
  return cat(candidates, " candidates of ", set.problems.size(),
             " problems\nrows that match no candidate of today: ", set.unmatched.size(),
             "\nproblems whose choice among all candidates was not measured: ", unmeasured, "\n");
}

int run(const Options& options) {
  for (const std::string& family : options.families)
    if (const auto names = family_names(); std::ranges::find(names, family) == names.end())
      throw UsageError(cat("--family is ", family, "; expected ", alternatives(names)));
  const DeviceDescription device = known_architecture(options.chip);
  std::vector<MeasuredRow> rows;
  for (const std::string& file : options.files)
    for (MeasuredRow& row : read_measured_rows(file)) rows.push_back(std::move(row));
  MeasuredSet set = candidates_of(rows, device);
  if (set.problems.empty())
    throw UsageError("no row matches a candidate of today; expected measurements of this version");
  leave_out(set, options.left_out);
  if (!options.rows.empty()) write_or_complain(options.rows, text_of(set.rows()));
  Model model(set, device, options.threads);
  std::cout << counts_of(set) << '\n' << tables_of(set, model);
  if (options.out.empty()) {
    if (const std::string losses = losses_of(set); !losses.empty())
      std::cout << "\nmore than 10% lost: > the choice, * the best\n" << losses;
    return 0;
  }
  std::cout << std::endl;
  const std::vector<std::string> families =
      options.families.empty() ? family_names() : options.families;
  const FittedConstants own = fitted_of(device);
  const Fitting fitting = fitted(own, model, families);
  {
    const TrialConstants trial(fitting.constants);
    note_choices(set, device);
  }
  std::string tables = tables_of(set, model);
  if (options.left_out.empty() && !fitting.families.empty()) {
    estimate_left_out(own, model, set, families);
    tables += table_of("each left out in turn", set, model);
  }
  const std::string head = head_of(options, device, fitting, counts_of(set), tables);
  write_or_complain(options.out, head + definition_of(fitting.constants, device.arch));
  std::cout << head;
  return 0;
}

}  // namespace

void add_fit_command(Command app, Run& run_command) {
  auto options = std::make_shared<Options>();
  options->threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const Command command = app.add_command(
      "fit", "Compare the cost model with measured candidates, and fit it to them; needs no GPU");
  command.footer(
      "Regret is what the choice takes more than the best one measured, over the best's time. A\n"
      "family's lines count the engines whose estimates its constants change. --out writes\n"
      "src/engines/cost/fitted_ARCH.inc, which the next build takes: see the README beside it. It\n"
      "fits to all files but one, too, for each: \"each left out in turn\" tells what a fit is "
      "worth.");
  command
      .add_option("CANDIDATES", options->files,
                  "Files that `kiln tune --csv` wrote; of two rows for a candidate the last counts")
      .required();
  command.add_option("--chip", options->chip, "The chip that they were measured on").show_default();
  command
      .add_option("--family", options->families,
                  "Fit the constants of these families alone: " + join(family_names(), ", "))
      .delimiter(',')
      .single();  // a file may follow
  command.add_option("--leave-out", options->left_out,
                     "Regular expression: leave problems out of the fit, and report them apart, "
                     "where it is found in \"FILE.csv PROBLEM\"");
  command.add_option("--out", options->out, "Fit, and write the constants there").type_name("FILE");
  command
      .add_option("--rows", options->rows,
                  "Write the rows that match a candidate of today there, without other columns")
      .type_name("FILE");
  command.add_option("-j", options->threads, "Threads").range(1, 1024).show_default();
  command.when_parsed(
      [options, &run_command] { run_command = [options] { return run(*options); }; });
}

}  // namespace kiln::cli
