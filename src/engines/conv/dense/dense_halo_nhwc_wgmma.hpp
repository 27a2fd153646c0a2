// Forward propagation and data gradient of stride 1 of channels-last tensors on Hopper, of 16 bits
// and of f32 in TF32, for filters of several taps, which read one halo in shared memory.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// 64 rows by a patch of 8 columns of pixels.
struct DensePatch {
  int rows;  // of pixels

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

  // All, in the order in which candidates number them.
  static std::span<const DensePatch> patches();
  Proposal propose(const DensePatch& patch, const ConvolutionProblem& problem,
                   const DeviceDescription& device) const;
};

}  // namespace kiln
