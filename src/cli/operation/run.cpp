#include "cli/operation/run.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/device/device_buffer.hpp"
#include "cli/format.hpp"
#include "cli/operation/random_fill.hpp"
#include "plan/plan_line.hpp"

namespace kiln::cli {
namespace {

// The scalars as the kernel gets them: rounded to f32 unless its scalars are f64.
Scalars scalars_of(const Scalars& given, DataType type) {
  if (type == KILN_DATA_DOUBLE) return given;
  return {static_cast<float>(given.alpha), static_cast<float>(given.beta),
          static_cast<float>(given.alpha2)};
}

void describe_plan(const Plan& plan, RunResult& result) {
  result.engine = plan.spec().engine;
  result.tile = plan.spec().tile;
  result.architecture = plan.kernel().image->arch;
  result.origin = plan.origin();
  result.times = plan.times();
  result.plan_milliseconds = plan.finalize_milliseconds();
  result.registers = plan.kernel().kernel->registers();
  result.local_memory = plan.kernel().kernel->local_memory();
  result.workspace = plan.workspace_bytes();
}

// Executes a plan and times it. On a GPU the device times each execution after the first. The host
// device is so slow that its first execution is timed too.
class Executions {
 public:
  Executions(const Plan& plan, Device& device, std::vector<void*> operands, Scalars scalars)
      : plan_(plan), device_(device), operands_(std::move(operands)), scalars_(scalars) {
    if (plan.workspace_bytes() == 0) return;
    memory_ = std::make_unique<DeviceBuffer>(device, plan.workspace_bytes());
    constexpr unsigned char poison = 0xff;  // NaN in every type
    device.fill(memory_->address(), poison, plan.workspace_bytes());
    workspace_ = {memory_->address(), plan.workspace_bytes()};
  }

  // Executes once and waits for it. Milliseconds, by the host's clock.
  double first() {
    const auto start = std::chrono::steady_clock::now();
    execute();
    device_.synchronize(nullptr);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }

  double next() {
    if (device_.description().kind == KILN_DEVICE_HOST) return first();
    return device_.time(nullptr, 1, [&] { execute(); });
  }

  // A GPU lowers its clocks while it waits, and takes some milliseconds of work to raise them.
  void warm_up() {
    constexpr double enough = 50;  // milliseconds
    for (double busy = 0; busy < enough;) busy += next();
  }

 private:
  void execute() { plan_.execute(operands_, scalars_, nullptr, {}, workspace_); }

  const Plan& plan_;
  Device& device_;
  std::vector<void*> operands_;
  Scalars scalars_;
  std::unique_ptr<DeviceBuffer> memory_;
  Workspace workspace_;
};

void execute_and_check(const Plan& plan, Device& device, const RunSettings& settings,
                       RunResult& result) {
  const Problem& problem = plan.problem();
  const Scalars scalars = scalars_of(settings.scalars, plan.scalar_type());
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  std::vector<void*> addresses;
  for (const Operand& operand : operands_of(problem)) {
    const bool read = !operand.written || operand.updated || scalars.beta != 0;
    memory.push_back(
        !read ? poisoned_operand(operand, operand.type)
              : random_operand(operand, operand.type, random_bits(settings.seed, memory.size())));
    buffers.push_back(std::make_unique<DeviceBuffer>(device, memory.back().size()));
    buffers.back()->fill(memory.back());
    addresses.push_back(buffers.back()->address());
  }
  const auto contents = [&] {
    std::vector<std::vector<std::byte>> bytes;
    for (const std::unique_ptr<DeviceBuffer>& buffer : buffers) bytes.push_back(buffer->content());
    return bytes;
  };
  Executions executions(plan, device, addresses, scalars);

  const double first = executions.first();
  std::vector<std::vector<std::byte>> after;
  if (settings.check) after = contents();

  const bool is_gpu = device.description().kind == KILN_DEVICE_CUDA;
  if (!is_gpu) result.executions.push_back(first);
  if (is_gpu && settings.repeat > 1) executions.warm_up();
  while (result.executions.size() < static_cast<std::size_t>(settings.repeat)) {
    result.executions.push_back(executions.next());
  }
  std::sort(result.executions.begin(), result.executions.end());

  if (!settings.check) return;
  result.comparison =
      compare(problem, scalars, memory, after, random_bits(settings.seed, memory.size()));
  result.reason = result.comparison->complaint();
  if (result.reason.empty() && (is_gpu || settings.repeat > 1)) {
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i]->fill(memory[i]);
    executions.first();
    if (contents() != after) result.reason = "executing again gave other bits";
  }
  result.status = result.reason.empty() ? Status::passed : Status::failed;
}

}  // namespace

const char* name_of(Status status) {
  switch (status) {
    case Status::ran: return "RAN";
    case Status::passed: return "PASSED";
    case Status::failed: return "FAILED";
    case Status::refused: return "REFUSED";
  }
  return "?";
}

double RunResult::median() const {
  if (executions.empty()) return 0;
  const std::size_t middle = executions.size() / 2;
  return executions.size() % 2 ? executions[middle]
                               : (executions[middle - 1] + executions[middle]) / 2;
}

double RunResult::teraflops() const {
  return median() > 0 ? work.flops / (median() * 1e-3) * 1e-12 : 0;
}

double RunResult::gigabytes() const {
  return median() > 0 ? work.bytes / (median() * 1e-3) * 1e-9 : 0;
}

std::string RunResult::rate() const {
  return work.flops > 0 ? rate_text(teraflops()) : cat(significant(gigabytes(), 3), " GB/s");
}

nlohmann::ordered_json RunResult::to_json() const {
  nlohmann::ordered_json json;
  json["status"] = cli::name_of(status);
  json["reason"] = reason;
  json["command"] = command;
  json["problem"] = problem;
  json["name"] = name;
  if (engine.empty()) return json;
  json["engine"] = engine;
  json["tile"] = tile;
  json["architecture"] = architecture;
  json["kernel_source"] = kiln::name_of(origin);
  json["compile_ms"] = times.compile;
  json["load_ms"] = times.load;
  json["lookup_ms"] = times.lookup;
  json["plan_ms"] = plan_milliseconds;
  json["registers"] = registers;
  json["local_memory_bytes"] = local_memory;
  json["workspace_bytes"] = workspace;
  if (!executions.empty()) {
    json["time_ms"] = {{"median", median()},
                       {"min", executions.front()},
                       {"max", executions.back()},
                       {"count", executions.size()}};
    if (work.flops > 0) json["tflops"] = teraflops();
    json["gbps"] = gigabytes();
  }
  if (comparison) {
    json["outputs"] = comparison->outputs;
    json["checked"] = comparison->checked;
    json["errors"] = {{"relative_rms", comparison->relative_rms},
                      {"max", comparison->max_error},
                      {"max_bound_share", comparison->max_bound_share}};
  }
  return json;
}

void set_error(RunResult& result, const Error& error) {
  const bool refused =
      error.status() == KILN_STATUS_BAD_PARAM || error.status() == KILN_STATUS_NOT_SUPPORTED ||
      error.status() == KILN_STATUS_NO_COMPILER || error.status() == KILN_STATUS_NOT_CACHED;
  result.status = refused ? Status::refused : Status::failed;
  result.reason = error.what();
}

RunResult run_problem(const std::shared_ptr<Device>& device, const Problem& problem,
                      const RunSettings& settings) {
  RunResult result;
  result.command = command_of(problem);
  result.problem = plan_words(problem, device->description(), settings.finalize.grant);
  result.work = work_of(problem, settings.scalars.beta != 0);
  try {
    Plan plan(device, problem);
    plan.finalize(settings.finalize);
    describe_plan(plan, result);
    execute_and_check(plan, *device, settings, result);
  } catch (const Error& error) {
    set_error(result, error);
  } catch (const std::bad_alloc&) {
    result.status = Status::failed;
    result.reason = "not enough memory on this machine for the operands";
  }
  return result;
}

}  // namespace kiln::cli
