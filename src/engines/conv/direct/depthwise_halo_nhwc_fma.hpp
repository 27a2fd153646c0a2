// Depthwise forward propagation and data gradient of stride 1, channels-last. TMA copies halos to
// shared memory; threads walk down their rows and keep the sums in registers.
#pragma once

#include <cstdint>
#include <span>

#include "engines/engine.hpp"

namespace kiln {

// Rows and columns of pixels of a thread, and the most pairs of channels of a block.
struct DepthwiseHaloTile {
  std::int64_t p, q, lanes;
};

class DepthwiseHaloNhwcFmaEngine final : public Engine {
 public:
  static std::span<const DepthwiseHaloTile> tiles();

  const char* name() const override { return "depthwise_halo_nhwc_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
