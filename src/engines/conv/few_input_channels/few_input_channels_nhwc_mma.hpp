// Forward propagation of channels-last tensors of 16 bits from few channels, and the data gradient
// of a layer that makes few: products over the elements that a pixel meets, on the tensor cores.
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
