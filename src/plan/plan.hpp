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
  std::string only_engine{};  // ask this engine alone; "": all, best first
  bool no_cache = false;      // compile afresh: neither memory nor disk is asked, and neither gains
  std::optional<Choice> choice{};  // made already: nothing is chosen, nor recorded
};

class Plan {
 public:
  Plan(std::shared_ptr<Device> device, Problem problem);

  // Chooses the engine, generates the source, finds or compiles the kernel, loads it. Throws
  // NOT_SUPPORTED, NO_COMPILER, COMPILE_FAILED, EXECUTION_FAILED; the plan then stays unfinalized.
  void finalize(const FinalizeOptions& options = {});
  bool finalized() const { return kernel_ != nullptr; }

  // Operands in the order of operands_of(problem), in errors under the caller's names for them, if
  // given. Packs arguments and launches: no allocation, no lock, no text. Throws EXECUTION_FAILED,
  // NOT_INITIALIZED, BAD_PARAM (an operand that is null or misaligned, or a result that surely
  // shares elements with an input and is not in place).
  void execute(std::span<void* const> operands, const Scalars& scalars, void* stream,
               std::span<const char* const> names = {}) const;

  const Device& device() const { return *device_; }
  const Problem& problem() const { return problem_; }
  kilnDataType_t scalar_type() const { return scalar_type_; }  // of alpha and beta
  const std::vector<EngineRefusal>& refusals() const { return refusals_; }

  // The rest only once finalized.
  bool tuned() const { return tuned_; }  // the engine and its tile were found by measuring
  const KernelSpec& spec() const;
  const LaunchSpec& launch() const { return launch_; }
  const LoadedKernel& kernel() const { return *kernel_; }
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

  std::shared_ptr<Device> device_;
  Problem problem_;
  std::vector<Place> places_;
  kilnDataType_t scalar_type_;
  LaunchSpec launch_;
  std::size_t alignment_ = 1;
  std::shared_ptr<const LoadedKernel> kernel_;
  std::vector<EngineRefusal> refusals_;
  kilnKernelOrigin_t origin_ = KILN_KERNEL_COMPILED;
  KernelTimes times_;
  double finalize_milliseconds_ = 0;
  bool tuned_ = false;
};

}  // namespace kiln
