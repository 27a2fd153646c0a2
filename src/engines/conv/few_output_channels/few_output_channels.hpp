// Forward propagation to few channels, and the data gradient of an image, on the tensor cores: the
// rows of the product are places of the source, its columns are pairs of an output channel and a
// tap of the filter's row, and the taps of a row are added up at the end. The phases of a strided
// gradient have columns of their own.
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

  // Of a problem that it does not refuse: the tiles that fit, as they lie on it. A candidate's
  // kernel is the number of one of them.
  std::vector<FewOutputChannelsTile> tiles(const ConvolutionProblem& problem,
                                           const UnitedGather& united,
                                           const DeviceDescription& device) const;
  // The proposal of one tile, whichever would be chosen.
  Proposal propose(const FewOutputChannelsTile& tile, const ConvolutionProblem& problem,
                   const UnitedGather& united, const DeviceDescription& device) const;

 private:
  virtual bool by_warpgroups() const { return false; }
  // Why products that the tensor cores have are not for the engine, if they are not.
  virtual std::optional<Refusal> products_refusal(const ConvolutionProblem& /*problem*/,
                                                  const DeviceDescription& /*device*/) const {
    return std::nullopt;
  }
  KernelSpec make_spec(const ConvolutionProblem& problem, const UnitedGather& united,
                       const FewOutputChannelsTile& tile) const;
};

// The same on Hopper's warpgroup products.
class FewOutputChannelsWgmmaEngine final : public FewOutputChannelsMmaEngine {
 public:
  const char* name() const override { return "few_output_channels_wgmma"; }

 private:
  bool by_warpgroups() const override { return true; }
  std::optional<Refusal> products_refusal(const ConvolutionProblem& problem,
                                          const DeviceDescription& device) const override;
};

}  // namespace kiln
