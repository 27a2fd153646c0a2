// A plan: one problem on one device, made once, executed many times.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/choice.hpp"
#include "kiln/kiln.h"
#include "plan/kernel_store.hpp"
#include "problem/scalars.hpp"

namespace kiln {

struct FinalizeOptions {
  Terms terms{};
  Caching caching = Caching::use;
  std::optional<Choice> choice{};  // made already: nothing is chosen, nor recorded
};

// Device memory that the caller lends to one execution.
struct Workspace {
  void* address = nullptr;
  std::size_t bytes = 0;
};

class Plan {
 public:
  // One kernel launch of an execution.
  struct Step {
    LaunchSpec launch;
    std::shared_ptr<const LoadedKernel> kernel;
  };

  Plan(std::shared_ptr<Device> device, Problem problem);

  // Chooses the engine and its kernel, and records the plan. Throws NOT_SUPPORTED.
  Choice choose(const Terms& terms);
  // Chooses, generates the source, finds or compiles the kernel, loads it. Throws NOT_SUPPORTED,
  // NOT_CACHED, NO_COMPILER, COMPILE_FAILED, EXECUTION_FAILED; the plan then stays unfinalized.
  void finalize(const FinalizeOptions& options = {});
  bool finalized() const { return !steps_.empty(); }

  // Operands in the order of operands_of(problem), in errors under the caller's names for them, if
  // given. Packs arguments and launches: no allocation, no lock, no text. Throws EXECUTION_FAILED,
  // NOT_INITIALIZED, BAD_PARAM (an operand that is null or misaligned, a result that surely shares
  // elements with an input and is not in place, or less workspace than workspace_bytes()).
  void execute(std::span<void* const> operands, const Scalars& scalars, void* stream,
               std::span<const char* const> names = {}, const Workspace& workspace = {}) const;

  const Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const Problem& problem() const { return problem_; }
  kilnDataType_t scalar_type() const { return scalar_type_; }  // of alpha and beta
  const std::vector<EngineRefusal>& refusals() const { return refusals_; }

  // The rest only once finalized.
  bool tuned() const { return tuned_; }  // the engine and its tile were found by measuring
  const KernelSpec& spec() const;
  std::span<const Step> steps() const { return steps_; }
  const LaunchSpec& launch() const { return steps_.front().launch; }     // of the first step
  const LoadedKernel& kernel() const { return *steps_.front().kernel; }  // of the first step
  // What execute() asks of operands and of workspace.
  std::size_t alignment() const { return alignment_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // From here on execute() asks for what another plan with this proposal asks for, too.
  void ask_also(const Proposal& proposal);
  kilnKernelOrigin_t origin() const { return origin_; }
  const KernelTimes& times() const { return times_; }
  double finalize_milliseconds() const { return finalize_milliseconds_; }

 private:
  // What execute() must know of an operand.
  struct Place {
    const char* name;
    std::size_t element;  // bytes
    std::size_t certain;  // bytes from its address on that surely belong to it
    bool in_place;        // the result may be at its address
  };
  static std::vector<Place> places_of(const std::vector<Operand>& operands);
  void check_operands(std::span<void* const> operands, std::span<const char* const> names) const;
  void check_workspace(std::span<void* const> operands, std::span<const char* const> names,
                       const Workspace& workspace) const;

  std::shared_ptr<Device> device_;
  Problem problem_;
  std::vector<Place> places_;
  kilnDataType_t scalar_type_;
  std::vector<Step> steps_;
  std::size_t alignment_ = 1;
  std::size_t workspace_bytes_ = 0;
  std::vector<EngineRefusal> refusals_;
  kilnKernelOrigin_t origin_ = KILN_KERNEL_COMPILED;
  KernelTimes times_;
  double finalize_milliseconds_ = 0;
  bool tuned_ = false;
};

}  // namespace kiln
