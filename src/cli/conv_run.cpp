#include "cli/conv_run.hpp"

#include <algorithm>
#include <chrono>

#include "cli/random_fill.hpp"

namespace kiln::cli {
namespace {

class Buffer {
 public:
  Buffer(Device& device, std::span<const std::byte> content)
      : device_(device),
        bytes_(content.size()),
        address_(device.allocate(std::max<std::size_t>(bytes_, 1))) {
    if (bytes_ > 0) device_.copy_in(address_, content.data(), bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { device_.free(address_); }

  void* address() const { return address_; }
  std::vector<std::byte> content() const {
    std::vector<std::byte> content(bytes_);
    if (bytes_ > 0) device_.copy_out(content.data(), address_, bytes_);
    return content;
  }

 private:
  Device& device_;
  std::size_t bytes_;
  void* address_;
};

// alpha and beta as the kernel will have them.
Scaling scaling_of(const ConvSettings& settings, DataType type) {
  if (compute_type(type) == KILN_DATA_DOUBLE) return {settings.alpha, settings.beta};
  return {static_cast<float>(settings.alpha), static_cast<float>(settings.beta)};
}

const char* name_of(kilnKernelOrigin_t origin) {
  switch (origin) {
    case KILN_KERNEL_COMPILED: return "compiled";
    case KILN_KERNEL_MEMORY: return "memory";
    case KILN_KERNEL_DISK: return "disk";
  }
  return "?";
}

void describe_plan(const Plan& plan, ConvResult& result) {
  result.engine = plan.spec().engine;
  result.tile = plan.spec().tile;
  result.architecture = plan.kernel().image->arch;
  result.origin = plan.origin();
  result.times = plan.times();
  result.plan_milliseconds = plan.finalize_milliseconds();
  result.registers = plan.kernel().kernel->registers();
  result.local_memory = plan.kernel().kernel->local_memory();
}

// On a GPU each execution is timed by the device, after the first one; the host device is too slow
// for an execution that is not timed.
class Executions {
 public:
  Executions(const Plan& plan, Device& device, std::array<void*, 3> operands, Scaling scaling)
      : plan_(plan), device_(device), operands_(operands), scaling_(scaling) {}

  // Its milliseconds on the host's clock.
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
  void execute() { plan_.execute(operands_, scaling_.alpha, scaling_.beta, nullptr); }

  const Plan& plan_;
  Device& device_;
  std::array<void*, 3> operands_;
  Scaling scaling_;
};

void execute_and_check(const Plan& plan, Device& device, const ConvolutionProblem& problem,
                       const ConvSettings& settings, ConvResult& result) {
  const Scaling scaling = scaling_of(settings, problem.type);
  const auto x = random_operand(x_of(problem), problem.type, random_bits(settings.seed, 0));
  const auto w = random_operand(w_of(problem), problem.type, random_bits(settings.seed, 1));
  const auto y0 = scaling.beta == 0
                      ? poisoned_operand(y_of(problem), problem.type)
                      : random_operand(y_of(problem), problem.type, random_bits(settings.seed, 2));
  const Buffer x_buffer(device, x), w_buffer(device, w), y_buffer(device, y0);
  Executions executions(plan, device, {x_buffer.address(), w_buffer.address(), y_buffer.address()},
                        scaling);

  const double first = executions.first();
  std::vector<std::byte> y;
  if (settings.check) y = y_buffer.content();

  const bool is_gpu = device.description().kind == KILN_DEVICE_CUDA;
  if (!is_gpu) result.executions.push_back(first);
  if (is_gpu && settings.repeat > 1) executions.warm_up();
  while (result.executions.size() < static_cast<std::size_t>(settings.repeat)) {
    result.executions.push_back(executions.next());
  }
  std::sort(result.executions.begin(), result.executions.end());

  if (!settings.check) return;
  result.comparison = compare_forward(problem, scaling, x, w, y0, y, random_bits(settings.seed, 3));
  result.reason = result.comparison->complaint();
  const bool executed_again = is_gpu || settings.repeat > 1;
  if (result.reason.empty() && executed_again && scaling.beta == 0 && y_buffer.content() != y) {
    result.reason = "executing again gave other bits";
  }
  if (!result.reason.empty()) result.status = Status::failed;
}

}  // namespace

const char* name_of(Status status) {
  switch (status) {
    case Status::passed: return "PASSED";
    case Status::failed: return "FAILED";
    case Status::refused: return "REFUSED";
  }
  return "?";
}

double ConvResult::median() const {
  if (executions.empty()) return 0;
  const std::size_t middle = executions.size() / 2;
  return executions.size() % 2 ? executions[middle]
                               : (executions[middle - 1] + executions[middle]) / 2;
}

double ConvResult::teraflops() const {
  return median() > 0 ? flops / (median() * 1e-3) * 1e-12 : 0;
}

nlohmann::ordered_json ConvResult::to_json() const {
  nlohmann::ordered_json json;
  json["status"] = cli::name_of(status);
  json["reason"] = reason;
  json["problem"] = problem;
  json["name"] = name;
  if (engine.empty()) return json;
  json["engine"] = engine;
  json["tile"] = tile;
  json["architecture"] = architecture;
  json["kernel_source"] = name_of(origin);
  json["compile_ms"] = times.compile;
  json["load_ms"] = times.load;
  json["lookup_ms"] = times.lookup;
  json["plan_ms"] = plan_milliseconds;
  json["registers"] = registers;
  json["local_memory_bytes"] = local_memory;
  json["workspace_bytes"] = 0;  // no engine takes any
  if (!executions.empty()) {
    json["time_ms"] = {{"median", median()},
                       {"min", executions.front()},
                       {"max", executions.back()},
                       {"count", executions.size()}};
    json["tflops"] = teraflops();
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

void set_error(ConvResult& result, const Error& error) {
  const bool refused = error.status() == KILN_STATUS_BAD_PARAM ||
                       error.status() == KILN_STATUS_NOT_SUPPORTED ||
                       error.status() == KILN_STATUS_NO_COMPILER;
  result.status = refused ? Status::refused : Status::failed;
  result.reason = error.what();
}

ConvResult run_convolution(const std::shared_ptr<Device>& device, const ConvolutionProblem& problem,
                           const ConvSettings& settings) {
  ConvResult result;
  result.problem = to_line(problem);
  result.flops = problem.flops();
  try {
    Plan plan(device, problem);
    plan.finalize(settings.finalize);
    describe_plan(plan, result);
    execute_and_check(plan, *device, problem, settings, result);
  } catch (const Error& error) {
    set_error(result, error);
  } catch (const std::bad_alloc&) {
    result.status = Status::failed;
    result.reason = "not enough memory on this machine for the operands";
  }
  return result;
}

}  // namespace kiln::cli
