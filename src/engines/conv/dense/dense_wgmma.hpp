// Forward propagation and data gradient on Hopper, with operands copied by TMA and multiplied by
// wgmma. Takes tensors of 16 bits, and of f32 in TF32, channels last or, with a filter of one tap,
// channels first. With channels last, forward the moments of the result too (moments.hpp), and a
// normalization's gradient (conv/dense/epilogue/gradient.hpp).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// A tile of rows (filters, or channels of dx) by pixels. `consumers` warpgroups divide operand A,
// left x 64 each; every one of them reads all `right` columns of operand B.
struct DenseTile {
  bool pixels_left;
  int consumers, left, right;
  // Data gradients with strides: the rows of all phases are rows of one product. For phases of one
  // tap each, which all read the same pixels.
  bool joined = false;

  int block_left() const { return consumers * left * 64; }
  int pixels() const { return pixels_left ? block_left() : right; }
  int rows() const { return pixels_left ? right : block_left(); }
  int threads() const { return 128 * (1 + consumers); }
  int slab_pixels() const { return pixels_left ? 64 : right; }
  // For channels-first tensors: lines of 128 bytes of a channel's pixels in shared memory, and rows
  // of a slab.
  int pixel_lines(std::size_t element) const {
    const int line = 128 / static_cast<int>(element);
    return (pixels() + line - 1) / line;
  }
  int planar_slab_rows() const { return pixels_left ? right : 64; }
  // Pixels in a line of shared memory, for results whose pixels are contiguous.
  int line_pixels(std::size_t element) const {
    const int most = element == 2 ? 64 : 32;
    return pixels() % most == 0 ? most : pixels() % 32 == 0 ? 32 : 16;
  }
};
std::string describe(const DenseTile& tile);

class DenseWgmmaEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const override { return is_gather(problem); }
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // All tiles. A candidate's kernel is an index into them.
  std::span<const DenseTile> tiles() const;
  Proposal propose(const DenseTile& tile, const ConvolutionProblem& problem,
                   const DeviceDescription& device) const;

 protected:
  explicit DenseWgmmaEngine(bool planar) : planar_(planar) {}

 private:
  bool planar_;  // channels first
};

class DenseNhwcWgmmaEngine final : public DenseWgmmaEngine {
 public:
  DenseNhwcWgmmaEngine() : DenseWgmmaEngine(false) {}
  bool makes_moments() const override { return true; }
  bool takes_gradient() const override { return true; }
  const char* name() const override { return "dense_nhwc_wgmma"; }
};

class DenseNchwWgmmaEngine final : public DenseWgmmaEngine {
 public:
  DenseNchwWgmmaEngine() : DenseWgmmaEngine(true) {}
  const char* name() const override { return "dense_nchw_wgmma"; }
};

}  // namespace kiln
