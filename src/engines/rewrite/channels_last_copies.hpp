// Rewrites of channels-first tensors, and for tensors whose channels take no multiple of 16 bytes.
// They copy the tensors into the workspace with channels last, padded to such a multiple. The
// batch, and images that do not fit, are cut into chunks whose copies fit into the workspace, so
// that the L2 cache still holds a copy when it is read. The engine with the best estimate for the
// copies computes each chunk.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engines/rewrite/relayout_problem.hpp"
#include "engines/rewrite/rewrite.hpp"
#include "engines/rewrite/slices.hpp"

namespace kiln {

// The second budget of workspace, in bytes, for callers that grant less than most_workspace.
inline constexpr std::size_t least_relayout_budget = std::size_t{4} << 20;

// A way to make the copies. Tensors that need padding are copied in all of them.
struct RelayoutVariant {
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

class RelayoutRewrite : public Rewrite {
 public:
  std::variant<std::vector<Candidate>, Refusal> candidates(const ConvolutionProblem& problem,
                                                           const InnerChoice& inner) const final;
  Proposal make(const ConvolutionProblem& problem, const InnerChoice& inner,
                const Candidate& candidate) const final;

  struct Result {
    Proposal proposal;   // an estimate sets only its workspace
    double seconds = 0;  // estimated
  };
  // The proposal of this variant, whether or not the choice would take it.
  std::variant<Result, Refusal> propose(const ConvolutionProblem& problem, const InnerChoice& inner,
                                        const RelayoutVariant& variant) const {
    return estimate_or_build(problem, inner, variant, Extent::steps);
  }

 protected:
  // Candidate::kernel is an index into them.
  virtual std::span<const RelayoutVariant> variants() const = 0;
  // Steps are built only for the chosen candidate, because they take much longer than an estimate.
  enum class Extent { estimate, steps };
  virtual std::variant<Result, Refusal> estimate_or_build(const ConvolutionProblem& problem,
                                                          const InnerChoice& inner,
                                                          const RelayoutVariant& variant,
                                                          Extent extent) const = 0;
  // What a slice of the channels computes at once: all images, or chunks of them as a convolution
  // without slices would.
  enum class Images { all, in_chunks };
  // With slices of the channels. None if a slice is refused, if its copies do not fit into the
  // workspace, or if the rewrite makes no such slices.
  virtual std::optional<Result> in_slices(const ConvolutionProblem&, const InnerChoice&,
                                          const RelayoutVariant&, const RelayoutSlices&, Images,
                                          Extent) const {
    return std::nullopt;
  }
  // With the best number of slices by the estimate.
  std::variant<Result, Refusal> sliced(const ConvolutionProblem& problem, const InnerChoice& inner,
                                       const RelayoutVariant& variant, Extent extent) const;
};

// Forward propagation and data gradients.
class ChannelsLastCopies : public RelayoutRewrite {
 public:
  const char* name() const override { return "channels_last_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const RelayoutVariant> variants() const override;
  std::variant<Result, Refusal> estimate_or_build(const ConvolutionProblem& problem,
                                                  const InnerChoice& inner,
                                                  const RelayoutVariant& variant,
                                                  Extent extent) const override;
  // The copies, and the problem of these.
  virtual std::variant<RelayoutProblem, Refusal> relayout(const ConvolutionProblem& problem,
                                                          const InnerChoice& inner,
                                                          const RelayoutVariant& variant) const;

 private:
  std::optional<Result> in_slices(const ConvolutionProblem& problem, const InnerChoice& inner,
                                  const RelayoutVariant& variant, const RelayoutSlices& slices,
                                  Images images, Extent extent) const override;
};

// Filter gradients. The sums of several chunks are added up in f32. Where the copies of all images
// do not fit, slices of the channels are the other way (slices.hpp): they need no sums.
class WgradChannelsLastCopies : public RelayoutRewrite {
 public:
  const char* name() const override { return "wgrad_channels_last_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const RelayoutVariant> variants() const override;
  std::variant<Result, Refusal> estimate_or_build(const ConvolutionProblem& problem,
                                                  const InnerChoice& inner,
                                                  const RelayoutVariant& variant,
                                                  Extent extent) const override;
  virtual std::variant<RelayoutProblem, Refusal> relayout(const ConvolutionProblem& problem,
                                                          const InnerChoice& inner,
                                                          const RelayoutVariant& variant) const;

 private:
  std::optional<Result> in_slices(const ConvolutionProblem& problem, const InnerChoice& inner,
                                  const RelayoutVariant& variant, const RelayoutSlices& slices,
                                  Images images, Extent extent) const override;
};

}  // namespace kiln
