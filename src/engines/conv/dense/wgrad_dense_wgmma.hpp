// Filter gradient on Hopper, whose copy engine brings operands to warpgroups that multiply them: of
// channels-last tensors of 16 bits, and of f32 in TF32 or in three such products; of channels-first
// ones of 16 bits, with a filter of one tap.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/conv/dense/wgrad_dense_tile.hpp"
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

  std::span<const WgradDenseTile> tiles(const ConvolutionProblem& problem) const;
  // Whether it can have the tile: not with every order of dy and dw.
  bool takes(const WgradDenseTile& tile, const ConvolutionProblem& problem) const;
  // `cluster` blocks add up a tile's sums in their shared memory, `groups` of those in the
  // workspace; one of one of a persistent tile.
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

// The first step of a proposal of two then adds to what that of another one of the same tile,
// cluster and groups has left in the workspace: sums of other images.
void continue_sums(Step& step);

}  // namespace kiln
