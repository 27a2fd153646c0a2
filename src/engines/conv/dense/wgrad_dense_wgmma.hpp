// Filter gradient on Hopper, whose copy engine brings operands to warpgroups that multiply them: of
// channels-last tensors of 16 bits, and of f32 in TF32 or in three such products; of channels-first
// ones of 16 bits, with a filter of one tap.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

// Filters by columns of dw, which are blocks of a line of channels of a tap. `consumers` warpgroups
// divide the filters, `left` times 64 each; all `right` columns are each one's.
struct WgradDenseTile {
  int consumers, left, right;
  int step_pixels;      // of dy that a stage holds
  int element = 2;      // bytes of an operand's
  int helpers = 1;      // warpgroups that ask for copies and, of f32, turn x
  bool planar = false;  // channels first
  bool split = false;   // f32 in three products

  bool turns() const { return element == 4; }
  int filters() const { return consumers * left * 64; }
  int threads() const { return 128 * (helpers + consumers); }
  int quads() const { return left * right / 8; }        // of a thread's sums
  int turned_slots() const { return turns() ? 2 : 0; }  // for x of a step
  int stages() const;                                   // as many as shared memory holds
  int barriers_at() const;
  int shared_memory() const;
};
std::string describe(const WgradDenseTile& tile);

class WgradDenseWgmmaEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  std::span<const WgradDenseTile> tiles(const ConvolutionProblem& problem) const;
  // `cluster` blocks add up a tile's sums in their shared memory, `groups` of those in the
  // workspace.
  Proposal propose(const WgradDenseTile& tile, const ConvolutionProblem& problem, int cluster,
                   int groups) const;
  std::size_t workspace_bytes(const WgradDenseTile& tile, const ConvolutionProblem& problem,
                              int groups) const;

 protected:
  explicit WgradDenseWgmmaEngine(bool planar) : planar_(planar) {}

 private:
  bool planar_;  // channels first
};

class WgradDenseNhwcWgmmaEngine final : public WgradDenseWgmmaEngine {
 public:
  WgradDenseNhwcWgmmaEngine() : WgradDenseWgmmaEngine(false) {}
  const char* name() const override { return "wgrad_dense_nhwc_wgmma"; }
  std::string only_by_name(const Problem& problem) const override;
};

class WgradDenseNchwWgmmaEngine final : public WgradDenseWgmmaEngine {
 public:
  WgradDenseNchwWgmmaEngine() : WgradDenseWgmmaEngine(true) {}
  const char* name() const override { return "wgrad_dense_nchw_wgmma"; }
};

}  // namespace kiln
