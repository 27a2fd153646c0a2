// Forward propagation and data gradient of channels-last tensors of 16 bits whose groups have 2, 4,
// 8 or 16 channels. The reduction of a tensor core product is the channels of a group at several
// taps.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class GroupedNhwcMmaEngine final : public OneKernelEngine {
 public:
  const char* name() const override { return "grouped_nhwc_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<Proposal, Refusal> propose(const Problem& problem,
                                          const DeviceDescription& device) const override;
  double seconds(const Problem& problem, const DeviceDescription& device) const override;
};

}  // namespace kiln
