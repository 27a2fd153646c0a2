// A plan for one problem on one device. It is finalized once and executed many times.
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
  Grant grant{};
  Caching caching = Caching::use;
  std::optional<Choice> choice{};  // if given, it is used, and the plan is not recorded
};

// Device memory that the caller lends to one execution.
struct Workspace {
  void* address = nullptr;
  std::size_t bytes = 0;
};

class Plan {
 public:
  // One kernel launch of an execution, or those of a loop.
  struct Step {
    LaunchSpec launch;
    std::shared_ptr<const LoadedKernel> kernel;
  };

  Plan(std::shared_ptr<Device> device, Problem problem);

  // Chooses the engine and its kernel, and records the plan. Throws NOT_SUPPORTED.
  Choice choose(const Grant& grant);
  // Chooses, generates the source, finds or compiles the kernel, loads it. Throws NOT_SUPPORTED,
  // NOT_CACHED, NO_COMPILER, COMPILE_FAILED, EXECUTION_FAILED; the plan then stays unfinalized.
  void finalize(const FinalizeOptions& options = {});
  bool finalized() const { return !steps_.empty(); }

  // Enqueues the kernels on `stream`. `operands` are in the order of operands_of(problem); `names`,
  // if given, are the caller's names for them in messages. Allocates nothing and takes no lock.
  // Throws EXECUTION_FAILED, NOT_INITIALIZED, or BAD_PARAM (an operand is null or misaligned, the
  // result certainly overlaps an input and is not in place, or the workspace is smaller than
  // workspace_bytes()).
  void execute(std::span<void* const> operands, const Scalars& scalars, void* stream,
               std::span<const char* const> names = {}, const Workspace& workspace = {}) const;

  const Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  const Problem& problem() const { return problem_; }
  kilnDataType_t scalar_type() const { return scalar_type_; }  // the type of alpha and beta
  const std::vector<EngineRefusal>& refusals() const { return refusals_; }

  // The following require finalized().
  bool tuned() const { return tuned_; }  // engine and tile are a measured winner
  const KernelSpec& spec() const;
  std::span<const Step> steps() const { return steps_; }
  std::span<const Loop> loops() const { return loops_; }
  const LaunchSpec& launch() const { return steps_.front().launch; }     // of the first step
  const LoadedKernel& kernel() const { return *steps_.front().kernel; }  // of the first step
  // What execute() requires: the alignment of operands and the size of the workspace, in bytes.
  std::size_t alignment() const { return alignment_; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Makes execute() also require what a plan with this proposal would require.
  void ask_also(const Proposal& proposal);
  kilnKernelOrigin_t origin() const { return origin_; }
  const KernelTimes& times() const { return times_; }
  double finalize_milliseconds() const { return finalize_milliseconds_; }

 private:
  // What execute() needs to check an operand.
  struct Place {
    const char* name;
    std::size_t element;  // bytes of an element
    std::size_t certain;  // bytes from its address on that certainly belong to it
    bool in_place;        // whether the last operand may have the same address
    bool written;
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
  std::vector<Loop> loops_;
  std::size_t alignment_ = 1;
  std::size_t workspace_bytes_ = 0;
  std::vector<EngineRefusal> refusals_;
  kilnKernelOrigin_t origin_ = KILN_KERNEL_COMPILED;
  KernelTimes times_;
  double finalize_milliseconds_ = 0;
  bool tuned_ = false;
};

}  // namespace kiln
