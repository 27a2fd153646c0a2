// Prints hashes of what the library decides for several thousand problems: two versions of it
// decide alike if their outputs are equal. README.md says how a change is proven.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/device/device_options.hpp"
#include "cli/operation/read_line.hpp"
#include "cli/options.hpp"
#include "cli/usage_error.hpp"
#include "core/error.hpp"
#include "core/split.hpp"
#include "engines/method.hpp"
#include "proof/problems.hpp"
#include "proof/record.hpp"
#include "proof/slow_layers.hpp"

namespace {

using namespace kiln;

struct Settings {
  std::string source = KILN_SOURCE;
  std::string chips = "sm_75,sm_80,sm_89,sm_90a,sm_100,sm_120";
  std::string show, slow;
  int every = 1, threads = 0, random = 2000;
  bool engines = false, all_texts = false;
};

// A problem on a chip; what a line of the output is about begins with the chip's name.
struct Question {
  const Problem* problem;
  const DeviceDescription* device;
  std::string chip;
};

constexpr std::size_t workspaces[] = {0, most_workspace};

std::string lines_of_choices(const Question& question) {
  const auto& [problem, device, chip] = question;
  std::string lines;
  for (const std::size_t workspace : workspaces)
    lines += cat(chip, " ", workspace, " ", text_of(*problem), ": ",
                 proof::digest_of(proof::chosen(*problem, *device, workspace)), " stand-in ",
                 proof::hash_of(proof::stand_in_for(*problem, *device, workspace)), "\n");
  return lines;
}

std::string lines_of_engines(const Question& question, bool all_texts) {
  const auto& [problem, device, chip] = question;
  std::string lines;
  for (const Method* method : methods())
    if (method->is_for(*problem))
      lines += cat(chip, " ", method->name(), " ", text_of(*problem), ": ",
                   proof::digest_of(proof::answer_of(*method, *problem, *device, all_texts)), "\n");
  return lines;
}

int print_all(const Settings& settings) {
  std::vector<std::pair<std::string, DeviceDescription>> chips;
  for (const std::string_view chip : split(settings.chips, ','))
    chips.emplace_back(chip, cli::architecture_of(std::string(chip)));
  const std::vector<Problem> problems =
      proof::all_problems(settings.source, static_cast<std::uint64_t>(settings.random));
  std::vector<Question> questions;
  for (std::size_t i = 0; i < problems.size(); i += static_cast<std::size_t>(settings.every))
    for (const auto& [name, device] : chips) questions.push_back({&problems[i], &device, name});

  std::vector<std::string> answers(questions.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < questions.size() && !failed;) try {
        answers[i] = settings.engines ? lines_of_engines(questions[i], settings.all_texts)
                                      : lines_of_choices(questions[i]);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "proof: %s %s: %s\n", questions[i].chip.c_str(),
                     text_of(*questions[i].problem).c_str(), error.what());
        failed = true;
      }
  };
  const unsigned count = settings.threads > 0 ? static_cast<unsigned>(settings.threads)
                                              : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  if (failed) return 1;
  for (const std::string& lines : answers) std::fputs(lines.c_str(), stdout);
  return 0;
}

// "CHIP WORKSPACE PROBLEM" or "CHIP ENGINE PROBLEM", as a line of the output begins.
int show(const Settings& settings) {
  const std::string& text = settings.show;
  const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
  if (first == text.npos || second == text.npos)
    throw cli::UsageError(
        cat("--show is \"", text, "\"; expected a chip, a workspace or an engine, and a problem"));
  std::string line = text.substr(second + 1);
  if (const std::size_t colon = line.find(": "); colon != line.npos) line.resize(colon);
  const std::string whose = text.substr(first + 1, second - first - 1);
  const DeviceDescription device = cli::architecture_of(text.substr(0, first));
  const Problem problem = cli::read_one(line, {}).problem;
  for (const Method* method : methods())
    if (method->name() == whose && method->is_for(problem)) {
      const proof::Record record = proof::answer_of(*method, problem, device, settings.all_texts);
      std::fputs(proof::text_of(record).c_str(), stdout);
      return 0;
    }
  if (whose.empty() || whose.find_first_not_of("0123456789") != whose.npos || whose.size() > 9)
    throw cli::UsageError(cat("--show names \"", whose, "\"; expected bytes of workspace, or an ",
                              "engine of the problem's operation"));
  const std::size_t workspace = std::stoul(whose);
  std::printf("%s\n==== stand-in\n%s",
              proof::text_of(proof::chosen(problem, device, workspace)).c_str(),
              proof::text_of(proof::stand_in_for(problem, device, workspace)).c_str());
  return 0;
}

int compare_slow_layers(const Settings& settings) {
  const std::vector<std::string> changes = proof::changes_of_slow_layers(
      proof::slow_layers(proof::network_layers(settings.source)), settings.slow);
  for (const std::string& change : changes) std::printf("%s\n", change.c_str());
  return changes.empty() ? 0 : 1;
}

int run(std::vector<std::string> words) {
  Settings settings;
  cli::CommandLine line("proof", "Prints hashes of every choice, launch, workspace and text", "");
  const cli::Command program = line.program();
  program.add_option("--source", settings.source, "The checkout whose lists and tables are asked")
      .show_default();
  program.add_option("--chips", settings.chips, "Chips, as --arch of kiln takes them")
      .show_default();
  program.add_option("--random", settings.random, "Random problems beside the lists")
      .range(0, 1'000'000)
      .show_default();
  program.add_option("--every", settings.every, "Ask only about every N-th problem")
      .range(1, 1'000'000)
      .show_default();
  program.add_option("--threads", settings.threads, "0: one for each core")
      .range(0, 1024)
      .show_default();
  program.add_flag("--engines", settings.engines,
                   "What every engine answers, in place of what is chosen");
  program.add_flag("--all-texts", settings.all_texts,
                   "With --engines: the kernels of all candidates, not of one");
  program.add_option("--show", settings.show,
                     "Print in full what a line of the output, or its beginning, is about");
  program.add_option("--slow", settings.slow,
                     "Compare the layers of networks that get a slow engine with those of a file");
  if (!line.parse(std::move(words))) return 0;
  if (!settings.slow.empty()) return compare_slow_layers(settings);
  return settings.show.empty() ? print_all(settings) : show(settings);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "proof: %s\n", error.what());
    return 2;
  }
}
