// The step that joins the moments that the blocks of a convolution have left in the workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "codegen/kernel_spec.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Bytes that a block leaves for each of its rows.
inline constexpr std::size_t partial_moments_bytes = 12;

// Part i of `parts` has every parts-th tile of pixels, from tile i on. The workspace begins with
// [part][row] moments.
struct PartsOfMoments {
  std::int64_t rows;  // of a part; the first ones are the channels
  std::int64_t parts, tiles, tile_pixels;
  std::int64_t pixels;   // elements of a channel
  std::int64_t at_most;  // parts, at any batch size
};
Step moments_finish(const PartsOfMoments& of, const ConvolutionProblem& problem,
                    const std::string& engine);

}  // namespace kiln
