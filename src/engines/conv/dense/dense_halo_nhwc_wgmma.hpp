// Forward propagation and data gradient of stride 1 on Hopper: channels-last tensors of 16 bits or
// f32 in TF32. All taps of the filter read one halo in shared memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// A tile of 64 rows (filters) by a patch of pixels, 8 columns wide.
struct DensePatch {
  int rows;  // rows of pixels

  int pixels() const { return rows * 8; }
};

class DenseHaloNhwcWgmmaEngine final : public Engine {
 public:
  const char* name() const override { return "dense_halo_nhwc_wgmma"; }
  bool is_for(const Problem& problem) const override { return is_gather(problem); }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // All patches. A candidate's kernel is an index into them.
  static std::span<const DensePatch> patches();
  Proposal propose(const DensePatch& patch, const ConvolutionProblem& problem,
                   const DeviceDescription& device) const;
};

}  // namespace kiln
