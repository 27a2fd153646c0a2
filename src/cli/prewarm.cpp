// kiln prewarm: compiles the kernels of a file of problems into the cache. Needs no GPU.
#include <atomic>
#include <csignal>
#include <iostream>
#include <set>
#include <thread>

#include "cli/commands.hpp"
#include "cli/device_options.hpp"
#include "cli/format.hpp"
#include "cli/operation.hpp"
#include "cli/progress.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "engines/engine.hpp"
#include "plan/kernel_store.hpp"
#include "problem/problem_line.hpp"

namespace kiln::cli {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> architectures, types{"f32"}, layouts{"nchw"};
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

struct Job {
  std::string label;  // "sm_90a conv --dt f16 g1mb128_..."
  KernelSpec kernel;
  kilnDeviceKind_t kind;
  std::string arch;
};

struct Counts {
  std::atomic<int> compiled{0}, present{0}, failed{0};
};

// Set by Ctrl-C: what is being compiled is finished, nothing more is begun. A second one ends the
// program as usual, which does no harm either: entries appear in the cache whole or not at all.
volatile std::sig_atomic_t interrupted = 0;

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

// The kernels that the file asks for, each once: problems that differ in their batch share theirs.
std::vector<Job> jobs_of(const Options& options, Counts& counts) {
  std::vector<DeviceDescription> devices;
  for (const std::string& arch : options.architectures) devices.push_back(architecture_of(arch));
  std::vector<Job> jobs;
  std::set<std::string> seen;
  for (const auto& [number, text] : problem_lines(read_file(options.file))) {
    try {
      std::string line = text;
      const std::unique_ptr<Operation> operation = take_operation(line);
      for (const std::string& type : options.types) {
        for (const std::string& layout : options.layouts) {
          operation->type = type;
          operation->layout = layout;
          const Problem problem = parse_line(*operation, line).problem;
          for (const DeviceDescription& device : devices) {
            std::vector<EngineRefusal> refusals;
            Proposal proposal = choose(problem, device, "", refusals);
            if (!seen.insert(cat(device.arch, "\n", generate_source(proposal.kernel, device.kind)))
                     .second) {
              continue;
            }
            jobs.push_back({cat(device.arch, " ", text_of(problem)), std::move(proposal.kernel),
                            device.kind, device.arch});
          }
        }
      }
    } catch (const Error& error) {
      ++counts.failed;
      std::cout << "failed         " << options.file << ":" << number << ": " << text << ": "
                << error.what() << std::endl;
    }
  }
  return jobs;
}

void compile(const Job& job, Counts& counts, Progress& progress) {
  try {
    const FoundImage found = make_image(job.kernel, job.kind, job.arch);
    if (found.origin == KILN_KERNEL_DISK) {
      ++counts.present;
      progress.done(cat("already there  ", job.label), false);
    } else {
      ++counts.compiled;
      progress.done(cat("compiled       ", job.label, "  ", fixed(found.times.compile, 0), " ms"),
                    false);
    }
  } catch (const std::exception& error) {
    ++counts.failed;
    progress.done(cat("failed         ", job.label, ": ", error.what()), true);
  }
}

int run(const Options& options) {
  const cache::DiskStore& store = kernel_cache();
  if (!store.usable()) {
    fail(KILN_STATUS_EXECUTION_FAILED, "the kernel cache cannot be used: ", store.why_unusable());
  }
  Counts counts;
  const std::vector<Job> jobs = jobs_of(options, counts);
  watch_for_interrupt();
  {
    Progress progress(static_cast<int>(jobs.size()));
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i; !interrupted && (i = next++) < jobs.size();) {
        compile(jobs[i], counts, progress);
      }
    };
    std::vector<std::jthread> helpers;
    for (int i = 1; i < options.threads; ++i) helpers.emplace_back(work);
    work();
    helpers.clear();  // joins them
  }
  std::cout << counts.compiled << " compiled, " << counts.present << " already there, "
            << counts.failed << " failed" << std::endl;
  if (interrupted) {
    std::cerr << "kiln: interrupted; the kernels compiled so far are in the cache\n";
    return 130;
  }
  if (const auto failures = store.counters().publish_failures; failures > 0) {
    fail(KILN_STATUS_EXECUTION_FAILED, failures,
         " of the kernels compiled could not be written to ", store.directory());
  }
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace

void add_prewarm_command(CLI::App& app, Run& run_command) {
  CLI::App& command = *app.add_subcommand(
      "prewarm", "Compile the kernels of a file of problems into the cache; needs no GPU");
  auto options = std::make_shared<Options>();
  command.footer(
      "A line is a command, its flags and a problem, as logs and --json print them:\n"
      "  pool --dir bwd --dt f16 mb16ic64_ih112oh56_kh3_sh2_ph0\n"
      "Without a command it is a convolution; flags of a line override --dt and --layout.");
  command.add_option("FILE", options->file, "Problems, one a line, as described below")->required();
  command.add_option("--arch", options->architectures, "sm_XX or host, several separated by ','")
      ->delimiter(',')
      ->required();
  command.add_option("-j", options->threads, "Compilations at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--dt", options->types, "Data types, several separated by ','")
      ->delimiter(',')
      ->check(CLI::IsMember(type_names))
      ->capture_default_str();
  command.add_option("--layout", options->layouts, "Layouts, several separated by ','")
      ->delimiter(',')
      ->check(CLI::IsMember(layout_names))
      ->capture_default_str();
  add_line_info_flag(command);
  command.callback([options, &run_command] { run_command = [options] { return run(*options); }; });
}

}  // namespace kiln::cli
