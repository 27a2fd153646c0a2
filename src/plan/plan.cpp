#include "plan/plan.hpp"

#include <array>
#include <chrono>
#include <cstring>

#include "core/error.hpp"
#include "core/log.hpp"

namespace kiln {
namespace {

// The largest parameter struct of any kernel; execute() keeps a copy of that size on its stack.
constexpr std::size_t most_parameter_bytes = 256;

const char* origin_name(kilnKernelOrigin_t origin) {
  switch (origin) {
    case KILN_KERNEL_COMPILED: return "compiled";
    case KILN_KERNEL_MEMORY: return "memory";
    case KILN_KERNEL_DISK: return "disk";
  }
  return "?";
}

std::string line_of(const Problem& problem) {
  return std::visit([](const auto& value) { return to_line(value); }, problem);
}

}  // namespace

Plan::Plan(std::shared_ptr<Device> device, Problem problem)
    : device_(std::move(device)), problem_(std::move(problem)) {}

void Plan::finalize(const FinalizeOptions& options) {
  if (finalized()) return;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  };
  refusals_.clear();
  for (const Engine* engine : engines()) {
    if (!options.only_engine.empty() && options.only_engine != engine->name()) continue;
    auto answer = engine->propose(problem_, device_->description());
    if (auto* refusal = std::get_if<Refusal>(&answer)) {
      refusals_.push_back({engine->name(), std::move(refusal->reason)});
      continue;
    }
    auto& proposal = std::get<Proposal>(answer);
    if (proposal.launch.parameters.size() > most_parameter_bytes)
      fail(KILN_STATUS_INTERNAL_ERROR, "engine ", engine->name(), " has ",
           proposal.launch.parameters.size(), " bytes of kernel parameters; at most ",
           most_parameter_bytes);
    const double propose_milliseconds = elapsed();
    FoundKernel found =
        load_kernel(proposal.kernel, *device_, options.no_cache ? Caching::bypass : Caching::use);
    launch_ = std::move(proposal.launch);
    alignment_ = proposal.kernel.alignment;
    origin_ = found.origin;
    times_ = found.times;
    times_.generate += propose_milliseconds;
    kernel_ = std::move(found.kernel);
    finalize_milliseconds_ = elapsed();
    if (log::enabled(log::Level::info))
      log::info(cat("kiln conv ", line_of(problem_), " -> ", engine->name(), ", ",
                    origin_name(origin_), ", ", finalize_milliseconds_, " ms"));
    return;
  }
  std::string reasons;
  for (const EngineRefusal& refusal : refusals_)
    reasons += cat(reasons.empty() ? "" : "; ", refusal.engine, ": ", refusal.reason);
  if (reasons.empty()) reasons = cat("there is no engine named ", options.only_engine);
  fail(KILN_STATUS_NOT_SUPPORTED, "no engine takes ", line_of(problem_), ": ", reasons);
}

void Plan::execute(std::span<void* const> operands, double alpha, double beta, void* stream) const {
  if (!kernel_) fail(KILN_STATUS_NOT_INITIALIZED, "the plan is not finalized");
  if (launch_.empty) return;
  std::array<std::byte, most_parameter_bytes> parameters;
  std::memcpy(parameters.data(), launch_.parameters.data(), launch_.parameters.size());
  for (const LaunchSpec::Patch& patch : launch_.patches) {
    std::byte* const target = parameters.data() + patch.offset;
    switch (patch.hole) {
      case LaunchSpec::Hole::operand: {
        void* const address = operands[patch.operand];
        check_operand(address, patch.operand);
        std::memcpy(target, &address, sizeof address);
        break;
      }
      case LaunchSpec::Hole::alpha: std::memcpy(target, &alpha, sizeof alpha); break;
      case LaunchSpec::Hole::beta: std::memcpy(target, &beta, sizeof beta); break;
    }
  }
  kernel_->kernel->launch(launch_.shape, {parameters.data(), launch_.parameters.size()}, stream);
}

void Plan::check_operand(const void* address, int index) const {
  static constexpr const char* names[] = {"x", "w", "y"};
  if (!address) fail(KILN_STATUS_BAD_PARAM, names[index], " is null; expected a device address");
  if (reinterpret_cast<std::uintptr_t>(address) % alignment_ != 0)
    fail(KILN_STATUS_BAD_PARAM, names[index], " is at ", reinterpret_cast<std::uintptr_t>(address),
         "; expected a multiple of ", alignment_);
}

const KernelSpec& Plan::spec() const { return kernel_->image->spec; }

}  // namespace kiln
