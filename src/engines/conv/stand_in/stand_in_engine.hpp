// Kernels that serve every shape: those of another engine, with its sizes late (codegen/late.hpp).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "codegen/late.hpp"
#include "engines/engine.hpp"

namespace kiln {

// A convolution's. A deriving engine says which of the other engine's kernels these are: few enough
// to be compiled ahead of every problem.
class StandInEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const final { return exact().is_for(problem); }
  bool stands_in() const final { return true; }
  bool takes_mixed_types() const final { return exact().takes_mixed_types(); }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  std::string only_by_name(const Problem&) const final {
    return "its kernels stand in for those of other engines until these are compiled";
  }
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

 private:
  virtual const Engine& exact() const = 0;
  // Why there is none for a problem that the other engine takes; "" if there is.
  virtual std::string refusal(const ConvolutionProblem& problem) const = 0;
  // Whether one of the other engine's candidates is among these.
  virtual bool has(const ConvolutionProblem&, const Candidate&) const { return true; }
  // Makes the other engine's proposal one for every shape. False if a size does not fit.
  virtual bool generalize(Proposal& proposal, const DeviceDescription& device) const = 0;
};

// A constant of a kernel that has it.
template <class Value>
const Value& constant(const KernelSpec& kernel, std::string_view name) {
  const auto found = std::find_if(kernel.constants.begin(), kernel.constants.end(),
                                  [&](const Constant& each) { return each.name == name; });
  return std::get<Value>(found->value);
}
template <class Value>
void set_constant(KernelSpec& kernel, std::string_view name, Value value) {
  for (Constant& each : kernel.constants)
    if (each.name == name) each.value = value;
}

// Gives every array of a phase's numbers as many of them as `phases`, of which those that there are
// come first.
void pad_phases(KernelSpec& kernel, std::int64_t phases);

// The same to one of a few numbers of phases, of kernels that have room for many; why there are too
// many for that, "" if there are not.
void pad_phases(KernelSpec& kernel);
std::string phase_refusal(const ConvolutionProblem& problem);

}  // namespace kiln
