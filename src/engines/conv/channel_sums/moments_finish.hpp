// The step that joins the moments that the blocks of a convolution have left in the workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Bytes that a block leaves for each of its rows; those of blocks that count their elements.
inline constexpr std::size_t partial_moments_bytes = 12, counted_moments_bytes = 16;

// The workspace begins with [part][row] moments. If parts do not count their elements, part i of
// `parts` has every parts-th tile of pixels, from tile i on; else tiles are not looked at.
struct PartsOfMoments {
  std::int64_t rows;  // of a part; the first ones are the channels
  std::int64_t parts, tiles, tile_pixels;
  std::int64_t pixels;   // elements of a channel
  std::int64_t at_most;  // parts, at any batch size
  bool counted = false;
};
Step moments_finish(const PartsOfMoments& of, const ConvolutionProblem& problem,
                    const std::string& engine);

}  // namespace kiln
