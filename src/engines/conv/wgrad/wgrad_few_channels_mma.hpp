// Filter gradient of tensors of 16 bits or f32 of which x or dy has few channels, as those of
// layers that read or make an image: products over pixels on the tensor cores. Channels come last
// or first; with stride 1 few channels of dy take x's place (exchanged_roles.hpp), with another
// they come last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/direct/filter_gradient.hpp"
#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// A block's share of a problem (kernel_sources/conv/wgrad/wgrad_few_channels_mma.cu).
struct FewChannelsGradientTile {
  bool few_of_x = true;          // else of dy
  bool planar = false;           // channels come first
  std::int64_t element = 2;      // bytes
  bool split = false;            // f32 in three products
  std::int64_t few = 0;          // channels
  std::int64_t many = 0;         // channels of the other one, of a block
  std::int64_t filter_rows = 0;  // of a block
  std::int64_t p = 0, q = 0;     // pixels of dy at a time
  int warps_m = 1, warps_n = 1, slices = 1;
  std::int64_t products_m = 0, products_n = 0;  // of a warp's step
  std::int64_t right_accesses = 1;              // of shared memory, of a read of what is few
  std::int64_t copy_bytes = 0, many_copy = 16;  // of the one with few channels, of the other one
  std::int64_t few_pitch = 0, stage_bytes = 0, shared_memory = 0;

  std::int64_t step_pixels() const { return 32 / element; }
  int warps() const { return warps_m * warps_n * slices; }
};

class WgradFewChannelsMmaEngine final : public Engine {
 public:
  const char* name() const override { return "wgrad_few_channels_mma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // Of a problem that it does not refuse: the tiles that fit. Candidate 2 i is that of tile i in
  // one step, 2 i + 1 that in two.
  std::vector<FewChannelsGradientTile> tiles(const ConvolutionProblem& problem,
                                             const DeviceDescription& device) const;
  // `cluster` blocks add up their sums in shared memory, `groups` of those in the workspace.
  Proposal propose(const FewChannelsGradientTile& tile, const ConvolutionProblem& problem,
                   int cluster, int groups) const;
};

std::string describe(const FewChannelsGradientTile& tile);

}  // namespace kiln
