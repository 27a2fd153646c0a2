// Forward propagation, and data gradient of stride 1, of channels-last tensors of 16 bits whose
// groups have 4, 8 or 16 channels, on the tensor cores. The copy engine loads halos, and the filter
// stays in registers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engines/engine.hpp"

namespace kiln {

// p x q pixels by `octets` octets of channels, smaller where the image or the channels end.
// slices: warps that share the pixels of 16 channels.
struct GroupedHaloTile {
  std::int64_t p, q, octets, slices;
  friend bool operator==(const GroupedHaloTile&, const GroupedHaloTile&) = default;
};

class GroupedHaloNhwcMmaEngine final : public Engine {
 public:
  const char* name() const override { return "grouped_halo_nhwc_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // All tiles. A candidate's kernel is an index into them.
  static std::span<const GroupedHaloTile> tiles();
};

}  // namespace kiln
