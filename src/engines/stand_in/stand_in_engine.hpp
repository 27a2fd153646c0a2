// Stand-ins: kernels that serve every shape of convolution. They are another engine's kernels whose
// sizes are parameters instead of constants (codegen/late.hpp), so that they can be compiled before
// any problem is known. They execute while the chosen kernel is being compiled.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "codegen/late.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The base of stand-ins. A derived class says which of the other engine's kernels it offers: few
// enough to be compiled ahead of all problems.
class StandInEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const final { return exact().is_for(problem); }
  bool stands_in() const final { return true; }
  bool takes_mixed_types() const final { return exact().takes_mixed_types(); }
  bool takes_group_strides() const final { return exact().takes_group_strides(); }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  std::string only_by_name(const Problem&) const final {
    return "its kernels stand in for those of other engines until these are compiled";
  }
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

 private:
  // The other engine, whose kernels are written for one shape.
  virtual const Engine& exact() const = 0;
  // The reason why there is no stand-in for a problem that the other engine takes; "" if there is.
  virtual Refusal refusal(const ConvolutionProblem& problem) const = 0;
  // Removes the other engine's candidates that are not offered as stand-ins.
  virtual void select(std::vector<Candidate>& /*all*/, const ConvolutionProblem&,
                      const DeviceDescription&) const {}
  // Changes the other engine's proposal to a kernel for every shape. Returns false if a size does
  // not fit into 32 bits.
  virtual bool generalize(Proposal& proposal, const DeviceDescription& device) const = 0;
};

// The value of a constant, which the kernel has to have.
template <class Value>
const Value& constant(const KernelSpec& kernel, std::string_view name) {
  const auto found = std::find_if(kernel.constants.begin(), kernel.constants.end(),
                                  [&](const Constant& each) { return each.name == name; });
  return std::get<Value>(found->value);
}
// Sets the constant if the kernel has it.
template <class Value>
void set_constant(KernelSpec& kernel, std::string_view name, Value value) {
  for (Constant& each : kernel.constants)
    if (each.name == name) each.value = value;
}

// Extends every array with one value per phase to `phases` values; the new ones are zeros. Sets
// PHASES.
void pad_phases(KernelSpec& kernel, std::int64_t phases);

// The same, to the least of a few fixed numbers of phases, so that there are few kernels.
void pad_phases(KernelSpec& kernel);
// The reason why the problem has too many phases for that; "" if it has not.
Refusal phase_refusal(const ConvolutionProblem& problem);

}  // namespace kiln
