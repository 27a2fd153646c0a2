// The passes of a normalization over its tensors: their threads, kernels and launches.
#pragma once

#include "codegen/kernel_spec.hpp"
#include "engines/common/block_layout.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

// The vectors of a problem's tensors, and blocks of threads over them.
struct NormalizationPasses {
  const NormalizationProblem& problem;
  const DeviceDescription& device;
  std::vector<Operand> operands;
  Combining combining;  // of all tensors of x's sizes

  NormalizationPasses(const NormalizationProblem& problem, const DeviceDescription& device);

  Refusal refusal() const;  // of more channels than a launch has blocks for
  bool backward() const { return is_backward(problem.pass); }
  // Whether statistics, or the sums of a gradient, are taken before the pass over the elements.
  bool has_statistics() const {
    using Pass = NormalizationPass;
    return problem.pass == Pass::training || problem.pass == Pass::moments ||
           (backward() && problem.pass != Pass::backward_apply);
  }
  // Whether there is a pass over the elements.
  bool applies() const {
    return problem.pass != NormalizationPass::moments &&
           problem.pass != NormalizationPass::gradient;
  }

  // `wide`: a warp reads lines of up to 512 bytes; else lines so short that clusters of blocks over
  // the channels fill the chip.
  BlockLayout layout(bool wide) const;
  std::int64_t blocks(const BlockLayout& layout) const;  // that the channels need
  std::int64_t places(const BlockLayout& layout) const;  // for blocks at the same time
  // The share of places that have a block, with `parts` blocks for each channel, until all are
  // done.
  double busy(const BlockLayout& layout, int parts) const;
  // Blocks that share channels: those of a cluster, or any number.
  int parts(const BlockLayout& layout, bool clustered) const;
  std::int64_t vectors() const;  // of a channel, or of the channels that a thread holds together
  std::size_t workspace(const BlockLayout& layout, int parts) const;  // bytes of partial totals

  // The totals of each channel, by `parts` blocks: in clusters or, `partial`, by finish().
  Step statistics(const BlockLayout& layout, int parts, bool partial) const;
  Step finish(const BlockLayout& statistics, int parts) const;
  Step apply() const;
  Step combine() const;  // the step of NormalizationPass::combine

 private:
  Step step(const char* name, const BlockLayout& layout, int parts, bool partial) const;
  void set_operands(LaunchSpec& launch) const;
};

// Adds the patches of all operands, and of alpha, beta and factor.
void set_normalization_operands(LaunchSpec& launch, const std::vector<Operand>& operands);

}  // namespace kiln
