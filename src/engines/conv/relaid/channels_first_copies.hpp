// Engines for depthwise layers of f32 with channels last, by way of copies with channels first: the
// kernels that slide along rows of a channel's pixels do not lose speed with long filters. The
// copies are made as those with channels last are, with the parts of pixels and channels exchanged.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "engines/conv/relaid/channels_last_copies.hpp"

namespace kiln {

// Forward propagation and data gradients.
class ChannelsFirstCopiesEngine final : public ChannelsLastCopiesEngine {
 public:
  const char* name() const override { return "channels_first_copies"; }
  bool is_for(const Problem& problem) const override;
  std::string only_by_name(const Problem& problem) const override;

 protected:
  std::span<const Terms> all_terms() const override;
  std::variant<RelaidProblem, Refusal> relaid(const ConvolutionProblem& problem,
                                              const DeviceDescription& device,
                                              const Terms& terms) const override;
};

// Filter gradients.
class WgradChannelsFirstCopiesEngine final : public WgradChannelsLastCopiesEngine {
 public:
  const char* name() const override { return "wgrad_channels_first_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const Terms> all_terms() const override;
  std::variant<RelaidProblem, Refusal> relaid(const ConvolutionProblem& problem,
                                              const DeviceDescription& device,
                                              const Terms& terms) const override;
};

}  // namespace kiln
