// Forward propagation to few channels, and the data gradient of an image, on the tensor cores. The
// product's rows are pixels of the source; its columns are pairs of an output channel and a tap of
// the filter's row. The taps of a row are added up at the end. Each phase of a strided gradient has
// columns of its own.
#pragma once

#include <optional>
#include <vector>

#include "engines/conv/few_output_channels/tile.hpp"
#include "engines/conv/few_output_channels/united.hpp"
#include "engines/engine.hpp"

namespace kiln {

class FewOutputChannelsMmaEngine : public Engine {
 public:
  const char* name() const override { return "few_output_channels_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // For a problem that is not refused: the tiles that fit, laid on it. A candidate's kernel is an
  // index into them.
  std::vector<FewOutputChannelsTile> tiles(const ConvolutionProblem& problem,
                                           const UnitedGather& united,
                                           const DeviceDescription& device) const;
  // The proposal for one tile, whether or not the choice would take it.
  Proposal propose(const FewOutputChannelsTile& tile, const ConvolutionProblem& problem,
                   const UnitedGather& united, const DeviceDescription& device) const;

 private:
  virtual bool by_warpgroups() const { return false; }
  // The refusal, if the engine's instruction does not take the problem on the device.
  virtual Refusal products_refusal(const ConvolutionProblem& /*problem*/,
                                   const DeviceDescription& /*device*/) const {
    return {};
  }
  KernelSpec make_spec(const ConvolutionProblem& problem, const UnitedGather& united,
                       const FewOutputChannelsTile& tile) const;
};

// The same with wgmma on Hopper.
class FewOutputChannelsWgmmaEngine final : public FewOutputChannelsMmaEngine {
 public:
  const char* name() const override { return "few_output_channels_wgmma"; }

 private:
  bool by_warpgroups() const override { return true; }
  Refusal products_refusal(const ConvolutionProblem& problem,
                           const DeviceDescription& device) const override;
};

}  // namespace kiln
