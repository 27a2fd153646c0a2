// kiln prewarm: compiles the kernels of a manifest into the cache, and packs them into a bundle.
// Needs no GPU.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cli/cache/bundle_file.hpp"
#include "cli/cache/manifest.hpp"
#include "cli/commands.hpp"
#include "cli/device/device_file.hpp"
#include "cli/device/device_options.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/operation/operation.hpp"
#include "cli/options.hpp"
#include "cli/printable.hpp"
#include "cli/progress.hpp"
#include "cli/usage_error.hpp"
#include "codegen/source.hpp"
#include "core/error.hpp"
#include "engines/stand_in/stand_in_kernels.hpp"
#include "plan/compile_slots.hpp"
#include "plan/kernel_store.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

namespace kiln::cli {
namespace {

struct Options {
  std::string file, bundle;
  std::vector<std::string> architectures, device_files;
  ManifestDefaults defaults;
  bool stand_ins = false, json = false;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

struct Job {
  std::string label;  // the problem's line, or what stand-in it is
  KernelSpec kernel;
  kilnDeviceKind_t kind;
  std::string arch;
};

struct Counts {
  std::atomic<int> compiled{0}, present{0}, failed{0};
};

// Set by Ctrl-C: running compilations finish and no new one begins. A second Ctrl-C ends the
// program, which is harmless: entries appear in the cache whole or not at all.
volatile std::sig_atomic_t interrupted = 0;

void watch_for_interrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

std::vector<DeviceDescription> devices_of(const Options& options) {
  std::vector<DeviceDescription> devices;
  for (const std::string& arch : options.architectures) devices.push_back(architecture_of(arch));
  for (const std::string& file : options.device_files) devices.push_back(read_device_file(file));
  return devices;
}

// A line, or with --json an object, of what became of a kernel or of a line of the manifest.
// `about`: how long it took, or why it failed.
struct Told {
  const char *status = "", *text = "";  // "compiled", "compiled       "
  std::string problem, about;
};
std::string text_of(const Told& told, bool as_json) {
  const bool failed = std::string_view(told.status) == "failed";
  if (!as_json)
    return cat(told.text, printable_lines(told.problem),
               told.about.empty() ? ""
               : failed           ? ": "
                                  : "  ",
               printable_lines(told.about));
  nlohmann::ordered_json json{{"status", told.status}, {"problem", told.problem}};
  if (!told.about.empty()) json[failed ? "reason" : "time"] = told.about;
  std::string line = json_line(json);
  line.pop_back();
  return line;
}

struct Work {
  std::vector<Job> jobs;
  std::vector<std::string> problems;  // labels of all, also of those that share a kernel
  std::set<std::string> winners;      // lines of the tuning file by which some were chosen
};

// Adds the stand-ins, which compute problems of any shape, for the devices given, else for the
// machine's GPUs.
void add_stand_ins(const std::vector<DeviceDescription>& given, Work& work) {
  std::string why;
  const std::vector<DeviceDescription> devices = given.empty() ? list_cuda_devices(why) : given;
  if (devices.empty())
    throw UsageError(cat("no --arch and no --device for --stand-ins, and no GPU: ", why));
  std::set<std::string> seen;
  for (const DeviceDescription& device : devices) {
    if (!seen.insert(device.arch).second) continue;
    for (KernelSpec& kernel : stand_in_kernels(device)) {
      const std::string label = cat(device.arch, " ", kernel.engine, " ", kernel.tile);
      work.jobs.push_back({label, std::move(kernel), device.kind, device.arch});
    }
  }
}

// Chooses the kernels for the manifest's problems and lists each kernel once: problems that differ
// only in their batch mostly share one.
Work work_of(const Options& options, Counts& counts) {
  const std::vector<DeviceDescription> given = devices_of(options);
  Work work;
  if (options.stand_ins) add_stand_ins(given, work);
  if (options.file.empty()) return work;
  ManifestDefaults defaults = options.defaults;
  defaults.other_devices = !given.empty();
  const Manifest manifest = read_manifest(options.file, defaults);
  const auto complain = [&](const std::string& problem, const std::string& why) {
    ++counts.failed;
    std::cout << text_of({"failed", "failed         ", problem, why}, options.json) << std::endl;
  };
  for (const std::string& flaw : manifest.flaws) complain(flaw, "");
  std::set<std::string> seen, told;
  for (const ManifestEntry& entry : manifest.entries) {
    const auto& devices = given.empty() ? entry.devices : given;
    if (devices.empty())
      throw UsageError(
          cat("no --arch and no --device, and ", entry.place, " names no architecture"));
    for (const DeviceDescription& device : devices) {
      const std::string label = plan_line(entry.problem, device, entry.grant);
      try {
        std::vector<EngineRefusal> refusals;
        Choice choice = choose_tuned(entry.problem, device, entry.grant, refusals);
        if (choice.tuned)
          work.winners.insert(
              tuning_line(*find_winner(entry.problem, device, entry.grant.workspace)));
        if (told.insert(label).second) work.problems.push_back(label);
        const auto add = [&](KernelSpec& kernel) {
          if (seen.insert(cat(device.arch, "\n", generate_source(kernel, device.kind))).second)
            work.jobs.push_back({label, std::move(kernel), device.kind, device.arch});
        };
        for (Step& step : choice.proposal.steps) add(step.kernel);
      } catch (const Error& error) {
        complain(cat(entry.place, ": ", label), error.what());
      }
    }
  }
  return work;
}

void compile(const Job& job, bool as_json, Counts& counts, Progress& progress) {
  progress.begin(job.label);
  const auto done = [&](const Told& told, bool remarkable) {
    progress.done(job.label, text_of(told, as_json), remarkable || as_json);
  };
  try {
    const FoundImage found =
        make_image(job.kernel, job.kind, job.arch, Caching::use, [&] { return job.label; });
    if (found.origin != KILN_KERNEL_COMPILED) {
      ++counts.present;
      done({"present", "already there  ", job.label, ""}, false);
    } else {
      ++counts.compiled;
      done({"compiled", "compiled       ", job.label, fixed(found.times.compile, 0) + " ms"},
           false);
    }
  } catch (const std::exception& error) {
    ++counts.failed;
    done({"failed", "failed         ", job.label, error.what()}, true);
  }
}

void compile_all(const std::vector<Job>& jobs, const Options& options, Counts& counts) {
  set_compile_threads(options.threads);
  watch_for_interrupt();
  Progress progress(static_cast<int>(jobs.size()));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; !interrupted && (i = next++) < jobs.size();) {
      compile(jobs[i], options.json, counts, progress);
    }
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < options.threads; ++i) helpers.emplace_back(work);
  work();
}

void pack(const Options& options, const Work& work) {
  std::vector<PackedKernel> kernels;
  for (const Job& job : work.jobs) kernels.push_back({job.kernel, job.kind, job.arch, job.label});
  write_bundle(options.bundle, kernels, work.problems, work.winners);
  if (options.json)
    std::cout << json_line({{"bundle", options.bundle}, {"kernels", kernels.size()}}) << std::flush;
  else
    std::cout << "bundle " << options.bundle << ": " << kernels.size() << " kernels" << std::endl;
}

int run(const Options& options) {
  if (options.file.empty() && !options.stand_ins)
    throw UsageError("nothing to compile; expected FILE, --stand-ins, or both");
  const cache::DiskStore& store = kernel_cache();
  if (cache_mode() != CacheMode::on) {
    throw UsageError(cat("KILN_CACHE is ", name_of(cache_mode()),
                         "; expected on, for kernels are made here and kept"));
  }
  if (!store.usable()) {
    fail(KILN_STATUS_EXECUTION_FAILED, "the kernel cache cannot be used: ", store.why_unusable());
  }
  Counts counts;
  const Work work = work_of(options, counts);
  if (work.jobs.empty() && counts.failed == 0)
    fail(KILN_STATUS_EXECUTION_FAILED, options.file, " has no problem; nothing is compiled",
         options.bundle.empty() ? "" : ", and no bundle written");
  compile_all(work.jobs, options, counts);
  std::ostream& out = options.json ? std::cerr : std::cout;
  out << counts.compiled << " compiled, " << counts.present << " already there, " << counts.failed
      << " failed" << std::endl;
  if (interrupted) {
    std::cerr << "kiln: interrupted; the kernels compiled so far are in the cache\n";
    return 130;
  }
  if (const auto failures = store.counters().publish_failures; failures > 0) {
    fail(KILN_STATUS_EXECUTION_FAILED, failures,
         " of the kernels compiled could not be written to ", store.directory());
  }
  if (!options.bundle.empty() && counts.failed > 0) {
    std::cerr << "kiln: no bundle is written while kernels are missing\n";
  } else if (!options.bundle.empty()) {
    pack(options, work);
  }
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace

void add_prewarm_command(Command app, Run& run_command) {
  const Command command = app.add_command(
      "prewarm", "Compile the kernels of a manifest into the cache, or a bundle; needs no GPU");
  auto options = std::make_shared<Options>();
  command.footer(
      "A line is a command, its flags and a problem, as KILN_RECORD=FILE, logs and every command\n"
      "write it; --arch, --engine and --workspace are flags of a line too:\n"
      "  pool --dir bwd --dt f16 mb16ic64_ih112oh56_kh3_sh2_ph0\n"
      "Without a command it is a convolution; flags of a line override --dt and --layout.\n"
      "Or a JSON object, as --json writes them:\n"
      "  {\"command\":\"conv\",\"problem\":\"ic64ih56oc64kh3ph1\",\"dt\":[\"f32\",\"f16\"],\n"
      "   \"layout\":\"nhwc\",\"batch\":[1,8],\"architecture\":\"sm_90a\"}     (on one line)\n"
      "What an interrupted run has compiled, the next one finds there.");
  command.add_option("FILE", options->file, "A manifest, a problem a line, as described below");
  command.add_flag("--stand-ins", options->stand_ins,
                   "The kernels that serve every shape, and run while a shape's own is compiled; "
                   "default architecture: the GPUs' here");
  command
      .add_option("--arch", options->architectures,
                  "sm_XX, a chip such as h100-pcie, or host; several separated by ','. Default: "
                  "those that the lines name")
      .delimiter(',')
      .single();
  command
      .add_option("--device", options->device_files,
                  "A device's description, as `kiln info --describe-device` writes it")
      .single()
      .type_name("FILE");
  command.add_option("--bundle", options->bundle, "Pack all the kernels into this file")
      .type_name("FILE");
  command.add_option("-j", options->threads, "Compilations at a time")
      .range(1, 1024)
      .show_default();
  command.add_option("--mb", options->defaults.batches, "Batch sizes in place of the lines' own")
      .delimiter(',')
      .range(0, 1 << 30);
  command.add_option("--dt", options->defaults.types, "Data types, several separated by ','")
      .delimiter(',')
      .one_of(type_names)
      .show_default();
  command.add_option("--layout", options->defaults.layouts, "Layouts, several separated by ','")
      .delimiter(',')
      .one_of(layout_names)
      .show_default();
  command.add_flag("--json", options->json,
                   "One JSON object a kernel, and one of the bundle; counts go to standard error");
  add_line_info_flag(command);
  command.when_parsed(
      [options, &run_command] { run_command = [options] { return run(*options); }; });
}

}  // namespace kiln::cli
