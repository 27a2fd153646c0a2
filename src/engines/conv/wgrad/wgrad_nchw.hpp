// Filter gradient on the tensor cores for an x in NCHW, or with few channels. The part of x that
// all taps of a band of pixels read is copied to shared memory once, as lines.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engines/conv/wgrad/band.hpp"
#include "engines/engine.hpp"

namespace kiln {

class WgradNchwMmaEngine : public Engine {
 public:
  const char* name() const override { return "wgrad_nchw_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // For a problem that is not refused: the tiles that fit, laid on it. A candidate's kernel is an
  // index into them.
  std::vector<BandTile> tiles(const ConvolutionProblem& problem,
                              const DeviceDescription& device) const;
  // The proposal for one tile and split count, whether or not the choice would take it.
  Proposal propose(BandTile tile, const ConvolutionProblem& problem, int parts) const;

 private:
  virtual Refusal products_refusal(const ConvolutionProblem& /*problem*/,
                                   const DeviceDescription& /*device*/) const {
    return {};
  }
  virtual std::span<const FragmentShape> shapes(const ConvolutionProblem& problem) const;
  KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather,
                       const BandTile& tile) const;
};

// The same with wgmma on Hopper.
class WgradNchwWgmmaSwapEngine final : public WgradNchwMmaEngine {
 public:
  const char* name() const override { return "wgrad_nchw_wgmma_swap"; }

 private:
  Refusal products_refusal(const ConvolutionProblem& problem,
                           const DeviceDescription& device) const override;
  std::span<const FragmentShape> shapes(const ConvolutionProblem& problem) const override;
};

}  // namespace kiln
