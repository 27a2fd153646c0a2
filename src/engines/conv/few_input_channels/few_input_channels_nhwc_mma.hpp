// Forward propagation from few input channels, and the data gradient of a layer with few output
// channels; channels-last, 16 bits. The reduction on the tensor cores runs over all source elements
// under a pixel's taps.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class FewInputChannelsNhwcMmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "few_input_channels_nhwc_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
