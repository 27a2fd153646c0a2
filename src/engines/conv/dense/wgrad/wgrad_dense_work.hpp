// How a dense filter gradient is divided into tiles, blocks and steps, and the work that the cost
// model estimates.
#pragma once

#include <cstdint>

#include "conv/dense/wgrad/params.h"
#include "device/device.hpp"
#include "engines/conv/dense/wgrad/wgrad_dense_tile.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/cost/dense_cost.hpp"
#include "problem/convolution.hpp"

namespace kiln {

inline constexpr int quad_bytes = 16;
inline constexpr int most_finish_warps = 32;  // of a block of the second step

// Groups of channels that are computed as one: as many as fit in 64 filters and 64 channels.
std::int64_t packed_groups(const ConvolutionProblem& problem);
// Filters, and channels, of groups that are computed as one.
std::int64_t rows_of(const ConvolutionProblem& problem);
std::int64_t channels_of(const ConvolutionProblem& problem);

std::int64_t column_blocks(const WgradDenseTile& tile, const ConvolutionProblem& problem);
std::int64_t tile_count(const WgradDenseTile& tile, const ConvolutionProblem& problem);
std::int64_t pixels_of(const ConvolutionProblem& problem);  // of dy
// Whether dy has its channels first. The engines for channels-last x ask this.
bool dy_planar(const ConvolutionProblem& problem);
std::int64_t step_count(const WgradDenseTile& tile, const ConvolutionProblem& problem);

// The work of a tile whose reduction is not divided yet, and that of its parts.
DenseWgradWork whole_work(const WgradDenseTile& tile, const ConvolutionProblem& problem);
DenseWgradWork divided(DenseWgradWork work, const WgradDenseTile& tile,
                       const ConvolutionProblem& problem, const Sharing& sharing);

// The number of groups of clusters: as many as fill the device, or half of it, which leaves half as
// many sums, as far as they fit in the workspace. 0 or 1 if there is no room for several.
int groups_of(const DenseWgradWork& whole, const WgradDenseTile& tile,
              const ConvolutionProblem& problem, int cluster, const DeviceDescription& device);

// How a block of the second step divides the groups: a warp has as many of them as it has loads in
// flight. If they are few, the block takes several slices of a tile.
DenseWgradFinishParams finish_shape(int groups);

}  // namespace kiln
