#include "plan/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "codegen/loops.hpp"
#include "core/error.hpp"
#include "core/hexadecimal.hpp"
#include "core/log/log.hpp"
#include "plan/parameters.hpp"
#include "plan/plan_line.hpp"
#include "plan/tuning.hpp"

namespace kiln {
Plan::Plan(std::shared_ptr<Device> device, Problem problem)
    : device_(std::move(device)),
      problem_(std::move(problem)),
      places_(places_of(operands_of(problem_))),
      scalar_type_(kiln::scalar_type(problem_)) {}

Choice Plan::choose(const Grant& grant) {
  refusals_.clear();
  Choice choice = choose_tuned(problem_, device_->description(), grant, refusals_);
  record_plan(problem_, device_->description(), grant);
  return choice;
}

void Plan::finalize(const FinalizeOptions& options) {
  if (finalized()) return;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  };
  Choice choice = options.choice ? *options.choice : choose(options.grant);
  Proposal& proposal = choice.proposal;
  const double propose_milliseconds = elapsed();
  std::vector<Step> steps;
  FoundKernel first;
  KernelTimes times;
  const auto add = [&](kiln::Step& step) {
    encode_maps(step.launch, *device_);
    FoundKernel found = load_kernel(step.kernel, *device_, options.caching, [&] {
      return plan_line(problem_, device_->description(), options.grant);
    });
    times += found.times;
    steps.push_back({std::move(step.launch), found.kernel});
    if (steps.size() == 1) first = std::move(found);
  };
  try {
    for (kiln::Step& step : proposal.steps) add(step);
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_NOT_CACHED) throw;
    fail(KILN_STATUS_NOT_CACHED, plan_line(problem_, device_->description(), options.grant), ": ",
         error.what());
  }
  alignment_ = proposal.first().kernel.alignment;
  workspace_bytes_ = proposal.workspace;
  origin_ = first.origin;
  times_ = times;
  times_.generate += propose_milliseconds;
  tuned_ = choice.tuned;
  steps_ = std::move(steps);
  loops_ = std::move(proposal.loops);
  finalize_milliseconds_ = elapsed();
  if (log::enabled(log::Level::info))
    log::info(cat("kiln ", plan_line(problem_, device_->description(), options.grant), " -> ",
                  proposal.first().kernel.engine, tuned_ ? " (tuned) for " : " for ",
                  device_->description().arch, ", ", first.account, ", ",
                  std::round(finalize_milliseconds_ * 1e3) / 1e3, " ms"));
}

void Plan::execute(std::span<void* const> operands, const Scalars& scalars, void* stream,
                   std::span<const char* const> names, const Workspace& workspace) const {
  if (!finalized()) fail(KILN_STATUS_NOT_INITIALIZED, "the plan is not finalized");
  if (launch().empty) return;
  check_operands(operands, names);
  if (workspace_bytes_ > 0) check_workspace(operands, names, workspace);
  for_each_launch(steps_.size(), loops_, [&](std::size_t number, const Iterations& iterations) {
    const Step& step = steps_[number];
    ParameterBuffer buffer;
    const std::span<const std::byte> parameters = fill_parameters(
        step.launch, *device_, operands, workspace.address, scalars, iterations, buffer);
    step.kernel->kernel->launch(step.launch.shape, parameters, stream);
  });
}

std::vector<Plan::Place> Plan::places_of(const std::vector<Operand>& operands) {
  std::vector<Place> places;
  for (const Operand& operand : operands) {
    const std::size_t element = size_of(operand.type);
    std::size_t certain = operand.count() == 0 ? 0 : element;
    if (operand.contiguous()) certain = static_cast<std::size_t>(operand.span()) * element;
    places.push_back({operand.name, element, certain,
                      operand.in_place && operand.same_places(operands.back()), operand.written});
  }
  return places;
}

void Plan::check_operands(std::span<void* const> operands,
                          std::span<const char* const> names) const {
  const auto name = [&](std::size_t i) { return names.empty() ? places_[i].name : names[i]; };
  const auto address = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(operands[i]); };
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].certain == 0) continue;  // an empty batch has no elements
    if (address(i) == 0)
      fail(KILN_STATUS_BAD_PARAM, name(i), " is null; expected a device address");
    const std::size_t alignment = std::max(alignment_, places_[i].element);
    if (address(i) % alignment != 0)
      fail(KILN_STATUS_BAD_PARAM, name(i), " is at ", hexadecimal(address(i)),
           "; expected a multiple of ", alignment,
           alignment <= places_[i].element ? ""
           : std::holds_alternative<MatmulProblem>(problem_)
               ? ", as the matrix product's alignment has it (kilnSetMatmulDescriptor)"
               : ", as the convolution's alignment has it (kilnSetConvolutionAlignment)");
  }
  const std::size_t last = places_.size() - 1;
  for (std::size_t result = 0; result <= last; ++result) {
    if (!places_[result].written) continue;
    for (std::size_t i = 0; i <= last; ++i) {
      if (i == result || (i > result && places_[i].written)) continue;  // each pair once
      const bool in_place = places_[i].in_place && result == last;
      if (in_place && address(i) == address(last)) continue;
      if (address(i) < address(result) + places_[result].certain &&
          address(result) < address(i) + places_[i].certain)
        fail(KILN_STATUS_BAD_PARAM, name(result), " is at ", hexadecimal(address(result)),
             ", where it overlaps ", name(i), " at ", hexadecimal(address(i)),
             "; expected a result apart from it", in_place ? ", or at the same address" : "");
    }
  }
}

void Plan::check_workspace(std::span<void* const> operands, std::span<const char* const> names,
                           const Workspace& workspace) const {
  if (workspace.bytes < workspace_bytes_)
    fail(KILN_STATUS_BAD_PARAM, "the handle's workspace has ", workspace.bytes,
         " bytes; expected at least the plan's ", workspace_bytes_, " (kilnSetWorkspace)");
  const auto begin = reinterpret_cast<std::uintptr_t>(workspace.address);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(operands[i]);
    if (address < begin + workspace_bytes_ && begin < address + places_[i].certain)
      fail(KILN_STATUS_BAD_PARAM, names.empty() ? places_[i].name : names[i], " is at ",
           hexadecimal(address), ", where it overlaps the handle's workspace at ",
           hexadecimal(begin), "; expected a workspace apart from every tensor");
  }
}

void Plan::ask_also(const Proposal& proposal) {
  alignment_ = std::max(alignment_, proposal.first().kernel.alignment);
  workspace_bytes_ = std::max(workspace_bytes_, proposal.workspace);
}

const KernelSpec& Plan::spec() const { return kernel().image->spec; }

}  // namespace kiln
