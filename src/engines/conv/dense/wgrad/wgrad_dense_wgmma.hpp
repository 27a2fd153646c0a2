// Filter gradient on Hopper, with operands copied by TMA and multiplied by wgmma. Takes
// channels-last tensors of 16 bits or f32 (TF32, 3xTF32), and channels-first tensors of 16 bits or
// f32 in TF32 with a filter of one tap.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/conv/dense/wgrad/wgrad_dense_tile.hpp"
#include "engines/engine.hpp"

namespace kiln {

class WgradDenseWgmmaEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const override;
  bool takes_mixed_types() const override { return true; }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  ContinueSums continue_sums() const override;

  std::span<const WgradDenseTile> tiles(const ConvolutionProblem& problem) const;
  // Whether the tile can serve the problem's layouts of dy and dw.
  bool takes(const WgradDenseTile& tile, const ConvolutionProblem& problem) const;
  // `cluster` blocks add up a tile's sums through shared memory; `groups` such clusters leave
  // theirs in the workspace. Both are 1 for a persistent tile.
  Proposal propose(const WgradDenseTile& tile, const ConvolutionProblem& problem,
                   const DeviceDescription& device, int cluster, int groups) const;
  std::size_t workspace_bytes(const WgradDenseTile& tile, const ConvolutionProblem& problem,
                              int groups) const;

 protected:
  explicit WgradDenseWgmmaEngine(bool planar) : planar_(planar) {}

 private:
  bool planar_;  // channels first
};

class WgradDenseNhwcWgmmaEngine final : public WgradDenseWgmmaEngine {
 public:
  WgradDenseNhwcWgmmaEngine() : WgradDenseWgmmaEngine(false) {}
  const char* name() const override { return "wgrad_dense_nhwc_wgmma"; }
};

class WgradDenseNchwWgmmaEngine final : public WgradDenseWgmmaEngine {
 public:
  WgradDenseNchwWgmmaEngine() : WgradDenseWgmmaEngine(true) {}
  const char* name() const override { return "wgrad_dense_nchw_wgmma"; }
};

}  // namespace kiln
