// The filter gradient as a matrix product, as all of its engines see it: filters of a group x the
// columns of dw (channels and taps), summed over the pixels of all images.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

bool is_wgrad(const Problem& problem);

// The products of a sum, of a usual batch: the actual one has no say in the kernel.
std::int64_t usual_reduction(const ConvolutionProblem& problem);
// The same of one image: what any batch has.
std::int64_t least_reduction(const ConvolutionProblem& problem);

// Tiles of m filters x n columns.
std::int64_t wgrad_tile_count(const ConvolutionProblem& problem, int m, int n);

// A group's filters are the rows of a tile: with fewer than `least`, why none is for them.
std::optional<Refusal> filters_refusal(const ConvolutionProblem& problem, std::int64_t least);

// Why tiles of m x n, each in so many parts, cannot be counted in 32 bits, if they cannot.
std::optional<Refusal> wgrad_count_refusal(const ConvolutionProblem& problem, int m, int n,
                                           int parts);

// The largest offset, in elements, that a tile of m x n meets within an image of x, with the taps
// around it, or of dy, or within dw.
std::int64_t wgrad_largest_offset(const Gather& gather, int m, int n);

// What decodes tiles, pixels and columns of dw (kernel_sources/conv/geometry/gather_index.cuh).
void add_wgrad_constants(std::vector<Constant>& constants, const Gather& gather, int m, int n,
                         bool channels_inner);

// A tile on the tensor cores: its work, the stages that parts share, and the most parts.
struct WgradOption {
  FragmentWork work;
  double stages = 0;
  int most_parts = 1;
};
// Candidates of the tiles, by their number, in every number of parts that `refusal` does not
// refuse; else the last refusal, of the reason `none` if there is no tile.
std::variant<std::vector<Candidate>, Refusal> wgrad_candidates(
    const std::vector<WgradOption>& options, const DeviceDescription& device,
    const std::function<std::optional<Refusal>(std::size_t, int)>& refusal, const char* none);

}  // namespace kiln
