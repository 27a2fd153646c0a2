// The rewrite of filter gradients of depthwise layers of f32 with channels last, by way of copies
// with channels first: the kernel that slides along rows of a channel's pixels does not lose speed
// with long filters. The copies are made as those with channels last are, with the parts of pixels
// and channels exchanged.
#pragma once

#include <span>
#include <variant>

#include "engines/rewrite/channels_last_copies.hpp"

namespace kiln {

class WgradChannelsFirstCopies final : public WgradChannelsLastCopies {
 public:
  const char* name() const override { return "wgrad_channels_first_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const RelayoutVariant> variants() const override;
  std::variant<RelayoutProblem, Refusal> relayout(const ConvolutionProblem& problem,
                                                  const InnerChoice& inner,
                                                  const RelayoutVariant& variant) const override;
};

}  // namespace kiln
