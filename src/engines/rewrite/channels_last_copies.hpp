// Rewrites of channels-first tensors, and for tensors whose channels take no multiple of 16 bytes.
// They copy the tensors into the workspace with channels last, padded to such a multiple. The
// batch, and images that do not fit, are cut into chunks whose copies fit into the workspace, so
// that the L2 cache still holds a copy when it is read. The engine with the best estimate for the
// copies computes each chunk.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engines/rewrite/relaid_problem.hpp"
#include "engines/rewrite/rewrite.hpp"
#include "engines/rewrite/slices.hpp"

namespace kiln {

// The second budget of workspace, in bytes, for callers that grant less than most_workspace.
inline constexpr std::size_t least_relaid_budget = std::size_t{4} << 20;

class RelayoutRewrite : public Rewrite {
 public:
  std::variant<std::vector<Candidate>, Refusal> candidates(const ConvolutionProblem& problem,
                                                           const InnerChoice& inner) const final;
  Proposal make(const ConvolutionProblem& problem, const InnerChoice& inner,
                const Candidate& candidate) const final;

  // The variants of this rewrite. Tensors that need padding are copied in all of them.
  struct Terms {
    std::size_t budget;  // bytes of workspace
    // Whether results are written to the workspace first (dw as f32 sums). Otherwise the engine of
    // the copies writes them to the caller's tensor in its own layout.
    bool copy_results;
    // Filter gradients: whether dy is copied as x is. Otherwise the engine of the copies reads the
    // caller's.
    bool copy_dy = true;
    // Filter gradients: whether dw is written to the workspace in its own type first. Not with
    // copy_results.
    bool copy_dw = false;
    // Whether chunks are slices of the channels, not of the images.
    bool slices = false;
  };
  struct Made {
    Proposal proposal;   // an estimate sets only its workspace
    double seconds = 0;  // estimated
  };
  // The proposal with these terms, whether or not the choice would take it.
  std::variant<Made, Refusal> propose(const ConvolutionProblem& problem, const InnerChoice& inner,
                                      const Terms& terms) const {
    return work_out(problem, inner, terms, Extent::steps);
  }

 protected:
  virtual std::span<const Terms> all_terms() const = 0;  // Candidate::kernel is an index into them
  // Steps are made only for the chosen candidate, because they take much longer than an estimate.
  enum class Extent { estimate, steps };
  virtual std::variant<Made, Refusal> work_out(const ConvolutionProblem& problem,
                                               const InnerChoice& inner, const Terms& terms,
                                               Extent extent) const = 0;
  // With slices of the channels. None if a slice is refused, if its copies do not fit into the
  // workspace, or if the rewrite makes no slices.
  virtual std::optional<Made> in_slices(const ConvolutionProblem&, const InnerChoice&, const Terms&,
                                        const RelaidSlices&, Extent) const {
    return std::nullopt;
  }
  // With the best number of slices by the estimate.
  std::variant<Made, Refusal> sliced(const ConvolutionProblem& problem, const InnerChoice& inner,
                                     const Terms& terms, Extent extent) const;
};

// Forward propagation and data gradients.
class ChannelsLastCopies : public RelayoutRewrite {
 public:
  const char* name() const override { return "channels_last_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const Terms> all_terms() const override;
  std::variant<Made, Refusal> work_out(const ConvolutionProblem& problem, const InnerChoice& inner,
                                       const Terms& terms, Extent extent) const override;
  // The copies, and the problem of these.
  virtual std::variant<RelaidProblem, Refusal> relaid(const ConvolutionProblem& problem,
                                                      const InnerChoice& inner,
                                                      const Terms& terms) const;

 private:
  std::optional<Made> in_slices(const ConvolutionProblem& problem, const InnerChoice& inner,
                                const Terms& terms, const RelaidSlices& slices,
                                Extent extent) const override;
};

// Filter gradients. The sums of several chunks are added up in f32. Where the copies of all images
// do not fit, slices of the channels are the other way (slices.hpp): they need no sums.
class WgradChannelsLastCopies : public RelayoutRewrite {
 public:
  const char* name() const override { return "wgrad_channels_last_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const Terms> all_terms() const override;
  std::variant<Made, Refusal> work_out(const ConvolutionProblem& problem, const InnerChoice& inner,
                                       const Terms& terms, Extent extent) const override;
  virtual std::variant<RelaidProblem, Refusal> relaid(const ConvolutionProblem& problem,
                                                      const InnerChoice& inner,
                                                      const Terms& terms) const;

 private:
  std::optional<Made> in_slices(const ConvolutionProblem& problem, const InnerChoice& inner,
                                const Terms& terms, const RelaidSlices& slices,
                                Extent extent) const override;
};

}  // namespace kiln
