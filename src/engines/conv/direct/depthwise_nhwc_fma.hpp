// Forward propagation and data gradient of channels-last tensors with few channels a group. A
// thread has 16 bytes of channels, reads the source once into registers, and sums in the compute
// type.
#pragma once

#include <cstdint>
#include <span>

#include "engines/engine.hpp"

namespace kiln {

// Rows and columns of pixels of a thread; the most vectors of channels, and threads, of a block.
struct DepthwiseNhwcTile {
  std::int64_t p, q, lanes, threads;
};

class DepthwiseNhwcFmaEngine final : public Engine {
 public:
  static std::span<const DepthwiseNhwcTile> tiles();

  const char* name() const override { return "depthwise_nhwc_fma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
