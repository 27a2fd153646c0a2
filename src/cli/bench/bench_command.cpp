// kiln bench: measures Kiln and other installed libraries in the same run.
#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/bench/runner.hpp"
#include "cli/commands.hpp"
#include "cli/device/device_options.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/json_text.hpp"
#include "cli/operation/operation.hpp"
#include "cli/options.hpp"
#include "cli/usage_error.hpp"
#include "compile/compiler.hpp"
#include "core/error.hpp"

namespace kiln::cli {
namespace {

using namespace bench;  // NOLINT(google-build-using-namespace): the command is all of it

struct Options {
  Selection selection;
  std::vector<std::string> against;
  std::string device, cudnn, cublas, csv, json, batch;
  MeasurementSettings settings;
  double time_limit = 225;
  std::uint64_t seed = 1;
  bool list = false, no_check = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

// The version of the driver's kernel module, which the driver API does not report.
std::string driver_module() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  file >> version;
  return version;
}

Machine describe(const DeviceDescription& device) {
  Machine machine{
      {"date", today()},
      {"kiln", cat(KILN_VERSION_MAJOR, ".", KILN_VERSION_MINOR, ".", KILN_VERSION_PATCH)},
      {"device", device.name},
      {"architecture", cat(device.arch, ", ", device.multiprocessors, " multiprocessors, ",
                           bytes_text(device.memory_bytes))}};
  if (device.driver_version > 0) {
    const std::string module = driver_module();
    machine.emplace_back(
        "driver", cat(module.empty() ? "" : module + ", ", "CUDA ", device.driver_version / 1000,
                      ".", device.driver_version % 1000 / 10));
  }
  std::string why;
  const auto compiler = device.kind == KILN_DEVICE_HOST ? find_host_compiler(why) : find_nvrtc(why);
  machine.emplace_back("compiler", compiler ? compiler->description() : "none: " + why);
  return machine;
}

// Peers that cannot be opened are reported, and the run goes on without them.
void open_peers(const Options& options, Device& device, Runner& runner, Machine& machine) {
  for (const std::string& name : options.against) {
    try {
      if (device.description().kind == KILN_DEVICE_HOST)
        fail(KILN_STATUS_NO_DEVICE, "not on the host device");
      std::unique_ptr<Peer> peer =
          name == "cudnn" ? open_cudnn(device, options.cudnn) : open_cublas(device, options.cublas);
      machine.emplace_back(name, peer->version());
      runner.add(std::move(peer));
    } catch (const Error& error) {
      machine.emplace_back(name, cat("none: ", error.what()));
    }
  }
}

void print(const std::vector<Row>& rows) {
  if (rows.empty()) return;
  const Row* kiln = nullptr;
  for (const Row& row : rows)
    if (kiln == nullptr && row.contestant == "kiln" && !row.host_time) kiln = &row;
  // In the suite of host times, rows of one case measure different calls.
  std::string headline;
  for (const Row& row : rows) {
    const std::string own = table_headline(row);
    if (own != headline) std::cout << own;
    headline = own;
    std::cout << table_line(row, kiln);
  }
  std::cout.flush();
}

// Writes all results. It is called after each case, so that an interrupted run keeps its results.
void write(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  if (const std::string why = write_file(path, text); !why.empty())
    throw UsageError(cat("cannot write ", path, ": ", why));
}

void write_all(const Options& options, const Machine& machine, const std::vector<Row>& rows) {
  write(options.csv, csv_text(machine, rows));
  if (!options.json.empty()) write(options.json, json_lines(json_of(machine, rows), 1) + "\n");
}

int run(Options options) {
  if (!options.batch.empty()) {
    options.selection.lines_from = options.batch;
    options.selection.lines = read_problem_file(options.batch);
  }
  const std::vector<Case> cases = cases_of(options.selection);
  if (cases.empty()) throw UsageError("no case is left: --layers, --mb or --suite exclude all");
  if (options.list) {
    for (const Case& item : cases) std::cout << describe(item) << '\n';
    std::cout << cases.size() << " cases" << std::endl;
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const std::shared_ptr<Device> device = device_of(options.device);
  device->make_current();
  Runner runner(device, options.settings, options.seed, !options.no_check);
  Machine machine = describe(device->description());
  open_peers(options, *device, runner, machine);
  for (const auto& [name, value] : machine) std::cout << name << ": " << value << '\n';
  std::cout << std::endl;

  std::vector<Row> rows = runner.ceilings();
  print(rows);
  std::size_t done = 0;
  int failures = 0;
  for (const Case& item : cases) {
    if (options.time_limit > 0 && seconds() > options.time_limit) break;
    const std::vector<Row> own = runner.run(item);
    print(own);
    for (const Row& row : own) failures += row.contestant.starts_with("kiln") && !row.note.empty();
    rows.insert(rows.end(), own.begin(), own.end());
    ++done;
    write_all(options, machine, rows);
  }
  std::cout << done << " of " << cases.size() << " cases in " << duration_text(seconds());
  if (done < cases.size()) std::cout << "; the rest left out at --time-limit";
  if (failures > 0) std::cout << "; " << failures << " rows of Kiln's failed";
  std::cout << std::endl;
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_bench_command(Command app, Run& run_command) {
  auto options = std::make_shared<Options>();
  Selection& selection = options->selection;
  const Command command = app.add_command(
      "bench", "Time problems beside cuDNN, cuBLAS and the chip's ceilings, in one run");
  const auto list = [&](const std::string& flag, std::vector<std::string>& values,
                        const std::string& help) {
    return command.add_option(flag, values, help).delimiter(',');
  };
  list("--suite", selection.suites,
       "paper, resnet50, vgg16: convolutions; memory: operations that memory bounds; latency: host "
       "time of plans and calls (default: paper, latency and memory, or the file of --batch)")
      .one_of(suite_names);
  command
      .add_option("--batch", options->batch,
                  "File of convolutions, one a line, as a suite of its own (see kiln conv --help)")
      .type_name("FILE");
  list("--layers", selection.layers, "Only layers with one of these in their names");
  list("--dir", selection.directions,
       "Passes of convolutions (default: all of paper, fwd of the others)")
      .one_of(direction_names);
  list("--dt", selection.types, "Data types (default: f32, and f16 too in memory)")
      .one_of(type_names);
  list("--layout", selection.layouts, "Layouts (default: nchw, and nhwc too in memory)")
      .one_of(layout_names);
  list("--math", selection.maths,
       "Of f32 convolutions: strict, default (an error no worse than FMA units'), tf32; what the "
       "peers may do (default: default)")
      .one_of(math_names);
  command.add_option("--mb", selection.batches, "Batch sizes (default: the suite's own)")
      .delimiter(',')
      .positive();
  list("--against", options->against, "Peers to open: cudnn, cublas").one_of({"cudnn", "cublas"});
  command.add_option("--cudnn", options->cudnn, "The libcudnn file (default: it is searched for)")
      .environment("KILN_CUDNN");
  command
      .add_option("--cublas", options->cublas, "The libcublas file (default: it is searched for)")
      .environment("KILN_CUBLAS");
  command.add_option("--device", options->device, "cuda, cuda:N or host (default: the first GPU)");
  command.add_option("--samples", options->settings.samples, "Timings of each contestant")
      .range(1, 10000)
      .show_default();
  command
      .add_option("--warm-up", options->settings.warm_up,
                  "Milliseconds of work before a contestant's first sample")
      .range(0.0, 10000.0)
      .show_default();
  command
      .add_option("--time-limit", options->time_limit,
                  "Seconds after which no further case begins; 0: none")
      .not_negative()
      .show_default();
  command.add_option("--csv", options->csv, "Write all rows there").type_name("FILE");
  command.add_option("--json", options->json, "Write all rows there").type_name("FILE");
  command.add_option("--seed", options->seed, "Seed of the random data").show_default();
  command.add_flag("--no-check", options->no_check,
                   "Leave out the comparison with the double-precision reference");
  command.add_flag("--list", options->list, "List the cases and measure nothing; needs no GPU");
  command.footer(
      "Rows: kiln; kiln workspace, in memory, where a grant of 16 MB changes the kernels; cudnn\n"
      "legacy zero and cudnn legacy any, the fastest algorithm of cuDNN's legacy interface\n"
      "(cudnnConvolutionForward and its like; not its graph interface) without and with a "
      "workspace\n"
      "(up to 8 GiB); cublas gemm, the product of the lowered matrices, written out beforehand;\n"
      "cublas, a product of matrices; copy and fma peak, what the chip can do. The samples of all\n"
      "of them alternate. 1.30x: Kiln's rate is 1.30 times that row's. rel: root mean square of "
      "the\n"
      "error, relative to the result's.");
  command.when_parsed(
      [options, &run_command] { run_command = [options] { return run(*options); }; });
}

}  // namespace kiln::cli
