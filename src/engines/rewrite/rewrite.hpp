// A rewrite turns a problem into others: into one of copies that lie otherwise, of parts of the
// tensors, or of the same tensors seen in another shape, and maybe a pass over the result. It
// computes nothing itself. It is given what chooses an engine, or another rewrite, for those
// problems, and adds up the estimates.
#pragma once

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/engine.hpp"
#include "engines/grant.hpp"
#include "engines/method.hpp"
#include "problem/problem.hpp"

namespace kiln {

// The estimate of a choice, without its kernel.
struct ChoiceEstimate {
  double seconds = 0;
  std::size_t workspace = 0;  // bytes
};

// A filter gradient's candidate whose sums of one chunk of images continue those of another.
struct ContinuedSums {
  const Engine* engine;
  Candidate candidate;
};

// What chooses, on one device, for the problems that a rewrite makes.
class InnerChoice {
 public:
  explicit InnerChoice(const DeviceDescription& device) : device_(device) {}
  virtual ~InnerChoice() = default;
  const DeviceDescription& device() const { return device_; }

  // What would be chosen, and its proposal. Both throw NOT_SUPPORTED if nothing takes the problem.
  virtual ChoiceEstimate estimate(const Problem& problem, const Grant& grant) const = 0;
  virtual Proposal choose(const Problem& problem, const Grant& grant) const = 0;
  // Why the only engine of the grant refuses the problem, whatever the workspace.
  virtual Refusal refusal(const Problem& problem, const Grant& grant) const = 0;
  // The candidate with the least estimate for the first and largest chunk of a filter gradient's
  // images, of an engine that takes the last and smallest one too. None if there is none whose sums
  // can be continued and fit into the workspace.
  virtual std::optional<ContinuedSums> continued(const ConvolutionProblem& first,
                                                 const ConvolutionProblem& last,
                                                 std::size_t workspace) const = 0;

 private:
  const DeviceDescription& device_;
};

// Stateless, as an engine is.
class Rewrite : public Method {
 public:
  const Rewrite* rewrite() const final { return this; }
  // The ways in which a problem for which is_for() holds can be rewritten, in no order, with the
  // estimates of all that follows: at least one, or a refusal. Candidate::kernel is their number.
  virtual std::variant<std::vector<Candidate>, Refusal> candidates(
      const ConvolutionProblem& problem, const InnerChoice& inner) const = 0;
  // The steps of one of these candidates.
  virtual Proposal make(const ConvolutionProblem& problem, const InnerChoice& inner,
                        const Candidate& candidate) const = 0;
};

}  // namespace kiln
