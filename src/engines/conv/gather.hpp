// Forward propagation and data gradient in one form: each output pixel sums, over taps and
// channels, elements of a source image times elements of the filter. Gathering engines see this
// form only.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

// out[n, row, o] = sum over channel, tap of
//   source[n, channel, o * stride + origin + tap * step] * w[row, channel, tap]
// for each phase's pixels o and taps; elements outside the source count as zero.
//
// fprop: source x, rows are filters, one phase. dgrad: source dy, rows are the channels of dx. With
// stride u the pixels of dx fall into u phases along each dimension, by their position modulo u:
// position h meets tap t of output o where h = o u - pad + t d, so within a phase every
// (u / gcd(u, d))-th tap contributes, and the next one is d / gcd(u, d) outputs before. Each
// phase is a gather of stride 1 of its own, and no tap is visited that does not exist.
struct Gather {
  DataType type = KILN_DATA_FLOAT;
  std::int64_t batch = 0, groups = 1;
  std::int64_t channels = 0, rows = 0;   // of one group
  Spatial source{};                      // sizes of the source
  Spatial stride{}, step{};              // in source elements: from pixel to pixel, from tap to tap
  Dims source_strides{}, out_strides{};  // {N, channel or row, depth, height, width}
  Dims z_strides{};                      // strides of what beta scales: the residual, or the output
  std::int64_t w_row = 0, w_channel = 0, w_group = 0;  // strides of the filter
  // From one group's first element to the next one's; of the bias too.
  std::int64_t source_group = 0, out_group = 0, z_group = 0, bias_group = 0;
  Spatial w_tap{};

  struct Phase {
    Spatial pixels{};                         // of one image
    Spatial taps{};                           // 0 in some dimension: the outputs are zero
    Spatial origin{};                         // position of pixel 0's first tap in the source
    Spatial position{};                       // position of pixel 0 in the output
    std::int64_t w_first = 0, out_first = 0;  // offsets of the first tap and the first pixel
    std::int64_t z_first = 0;                 // offset of the first pixel in what beta scales
    std::int64_t out_pixels() const { return pixels[0] * pixels[1] * pixels[2]; }
    std::int64_t tap_count() const { return taps[0] * taps[1] * taps[2]; }
  };
  std::vector<Phase> phases;  // those with the most taps first; phases without pixels are left out

  std::int64_t most_pixels() const;  // the most pixels of any phase, in one image
  std::int64_t most_taps() const;    // of a phase
  double mean_taps() const;          // the mean over output pixels of their phase's taps
  Spatial largest_taps() const;      // the most taps of any phase, in each dimension
  Spatial largest_pixels() const;

  // All products over those whose source element exists, minus 1: the share of work wasted on
  // padding by a kernel that does not skip it. 0 without padding.
  double padding_waste() const;
  // The mean number of taps that lie inside the source for at least one of `places` neighbouring
  // pixels: the taps that a tile of so many places of many images visits.
  double walked_taps(std::int64_t places) const;
  // For the phase with the most taps: how many taps along a dimension (0 depth, ...) lie inside the
  // source for at least one of the pixels `first` to `last`.
  std::int64_t live_taps(int dimension, std::int64_t first, std::int64_t last) const;
  // Whether a reduction index that runs over channels first (not taps) reads neighbouring source
  // elements.
  bool channels_inner() const { return channels > 1 && source_strides[1] < source_strides[4]; }
  // Whether some tap of some pixel reads outside the source along a dimension (0 depth, ...).
  bool leaves_source(int dimension) const;
};

bool is_gather(const Problem& problem);

// The refusal of kernels that take only gathers of one phase and at most two dimensions.
Refusal plane_refusal(const Gather& gather);

// The refusal for fewer than `least` output channels a group, which are the rows of a tile; none if
// there are enough.
Refusal rows_refusal(std::int64_t rows, std::int64_t least);

// The gather of a forward pass or data gradient; for a filter gradient, that of the forward pass
// that it differentiates (source x, output dy, filter dw).
Gather make_gather(const ConvolutionProblem& problem);

// The constants that every gathering kernel shares: element_t, compute_t; sizes, strides, steps;
// PHASES and, one entry a phase, OUT_*, FILTER_*, ORIGIN_*, W_FIRST, OUT_FIRST and Z_FIRST; the
// epilogue.
std::vector<Constant> gather_constants(const ConvolutionProblem& problem, const Gather& gather);

// A one-dimensional launch with GatherParams and its operands; phase_tiles: tiles of pixels in the
// phase that has most.
LaunchSpec gather_launch(const ConvolutionProblem& problem, std::int64_t phase_tiles,
                         std::int64_t blocks, std::uint32_t threads, std::uint32_t shared_memory);

// The same for a filter gradient, with WgradParams.
LaunchSpec wgrad_launch(const ConvolutionProblem& problem, std::int64_t blocks,
                        std::uint32_t threads, std::uint32_t shared_memory);

// The span, in elements, of one image of a tensor, from its strides and sizes (batch left out).
std::int64_t image_span(const Dims& strides, std::int64_t channels, const Spatial& sizes);

}  // namespace kiln
