// Forward propagation and data gradient of channels-last tensors on Hopper, whose copy engine
// brings operands to warpgroups that multiply them: of 16 bits, and of f32 in TF32.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Rows (filters, or channels of dx) by pixels. `consumers` warpgroups divide the left side, `left`
// times 64 of it each; all `right` of the other are each one's.
struct DenseTile {
  bool pixels_left;
  int consumers, left, right;

  int block_left() const { return consumers * left * 64; }
  int pixels() const { return pixels_left ? block_left() : right; }
  int rows() const { return pixels_left ? right : block_left(); }
  int threads() const { return 128 * (1 + consumers); }
  int slab_pixels() const { return pixels_left ? 64 : right; }
};
std::string describe(const DenseTile& tile);

class DenseNhwcWgmmaEngine final : public Engine {
 public:
  const char* name() const override { return "dense_nhwc_wgmma"; }
  bool is_for(const Problem& problem) const override { return is_gather(problem); }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // All, in the order in which candidates number them.
  static std::span<const DenseTile> tiles();
  Proposal propose(const DenseTile& tile, const ConvolutionProblem& problem,
                   const DeviceDescription& device) const;
};

}  // namespace kiln
