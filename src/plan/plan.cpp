#include "plan/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.hpp"
#include "core/hexadecimal.hpp"
#include "core/log/log.hpp"
#include "plan/parameters.hpp"
#include "plan/recorder.hpp"
#include "plan/tuning.hpp"

namespace kiln {
namespace {

// The command line that makes the same plan again.
std::string reproducer(const Problem& problem, const DeviceDescription& device,
                       const FinalizeOptions& options) {
  std::string where;
  if (device.kind == KILN_DEVICE_HOST) where = " --device host";
  if (device.kind == KILN_DEVICE_CUDA && device.ordinal != 0)
    where = cat(" --device cuda:", device.ordinal);
  if (!options.only_engine.empty()) where += cat(" --engine ", options.only_engine);
  return cat("kiln ", command_of(problem), where, " ", line_of(problem));
}

}  // namespace

Plan::Plan(std::shared_ptr<Device> device, Problem problem)
    : device_(std::move(device)),
      problem_(std::move(problem)),
      places_(places_of(operands_of(problem_))),
      scalar_type_(kiln::scalar_type(problem_)) {}

void Plan::finalize(const FinalizeOptions& options) {
  if (finalized()) return;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  };
  refusals_.clear();
  Choice choice = options.choice ? *options.choice
                                 : choose_tuned(problem_, device_->description(),
                                                options.only_engine, refusals_);
  Proposal& proposal = choice.proposal;
  encode_maps(proposal.launch, *device_);
  const double propose_milliseconds = elapsed();
  if (!options.choice) record_plan(problem_, device_->description(), options.only_engine);
  FoundKernel found;
  try {
    found =
        load_kernel(proposal.kernel, *device_, options.no_cache ? Caching::bypass : Caching::use);
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_NOT_CACHED) throw;
    fail(KILN_STATUS_NOT_CACHED, text_of(problem_), ": ", error.what());
  }
  launch_ = std::move(proposal.launch);
  alignment_ = proposal.kernel.alignment;
  origin_ = found.origin;
  times_ = found.times;
  times_.generate += propose_milliseconds;
  kernel_ = std::move(found.kernel);
  tuned_ = choice.tuned;
  finalize_milliseconds_ = elapsed();
  if (log::enabled(log::Level::info))
    log::info(cat(reproducer(problem_, device_->description(), options), " -> ",
                  proposal.kernel.engine, tuned_ ? " (tuned) for " : " for ",
                  device_->description().arch, ", ", found.account, ", ",
                  std::round(finalize_milliseconds_ * 1e3) / 1e3, " ms"));
}

void Plan::execute(std::span<void* const> operands, const Scalars& scalars, void* stream,
                   std::span<const char* const> names) const {
  if (!kernel_) fail(KILN_STATUS_NOT_INITIALIZED, "the plan is not finalized");
  if (launch_.empty) return;
  check_operands(operands, names);
  ParameterBuffer buffer;
  const std::span<const std::byte> parameters =
      fill_parameters(launch_, *device_, operands, scalars, buffer);
  kernel_->kernel->launch(launch_.shape, parameters, stream);
}

std::vector<Plan::Place> Plan::places_of(const std::vector<Operand>& operands) {
  std::vector<Place> places;
  for (const Operand& operand : operands) {
    const std::size_t element = size_of(operand.type);
    std::size_t certain = operand.count() == 0 ? 0 : element;
    if (operand.contiguous()) certain = static_cast<std::size_t>(operand.span()) * element;
    places.push_back(
        {operand.name, element, certain, operand.in_place && operand.same_places(operands.back())});
  }
  return places;
}

void Plan::check_operands(std::span<void* const> operands,
                          std::span<const char* const> names) const {
  const auto name = [&](std::size_t i) { return names.empty() ? places_[i].name : names[i]; };
  const auto address = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(operands[i]); };
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].certain == 0) continue;  // of an empty batch
    if (address(i) == 0)
      fail(KILN_STATUS_BAD_PARAM, name(i), " is null; expected a device address");
    const std::size_t alignment = std::max(alignment_, places_[i].element);
    if (address(i) % alignment != 0)
      fail(KILN_STATUS_BAD_PARAM, name(i), " is at ", hexadecimal(address(i)),
           "; expected a multiple of ", alignment,
           alignment > places_[i].element
               ? ", as the convolution's alignment has it (kilnSetConvolutionAlignment)"
               : "");
  }
  const std::size_t last = places_.size() - 1;
  for (std::size_t i = 0; i < last; ++i) {
    if (places_[i].in_place && address(i) == address(last)) continue;
    if (address(i) < address(last) + places_[last].certain &&
        address(last) < address(i) + places_[i].certain)
      fail(KILN_STATUS_BAD_PARAM, name(last), " is at ", hexadecimal(address(last)),
           ", where it overlaps ", name(i), " at ", hexadecimal(address(i)),
           "; expected a result apart from it",
           places_[i].in_place ? ", or at the same address" : "");
  }
}

const KernelSpec& Plan::spec() const { return kernel_->image->spec; }

}  // namespace kiln
