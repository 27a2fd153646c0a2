// Filter gradients with few channels a group: several blocks share the sums of a tile of dw, as
// clusters and, where workspace is granted, in a second step.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

struct FilterGradientTiles {
  std::int64_t block_rows = 0;      // channels of dy in a tile
  std::int64_t block_channels = 0;  // channels of x of each group; 0: all
  std::int64_t filter_rows = 0;
  std::int64_t units = 0;    // tiles of pixels of dy, of all images
  std::int64_t at_once = 1;  // units that a block's threads take at a time
  std::int64_t threads = 0;
  std::int64_t resident = 4;  // blocks for each multiprocessor, at once or one after the other

  std::int64_t tiles(const ConvolutionProblem& problem, const Gather& gather) const;
  std::int64_t elements(const Gather& gather) const;  // of a tile
  std::int64_t channels(const Gather& gather) const {
    return block_channels == 0 ? gather.channels : block_channels;
  }
};

// Seconds of the second step, which adds up what blocks left in the workspace.
constexpr double second_kernel_seconds = 6e-6;

// The number of groups of blocks that keeps every multiprocessor busy and leaves each thread some
// units.
int filter_gradient_groups(const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
                           const DeviceDescription& device);

// Candidate kernel 0 takes one step, with a block or a cluster for each tile; kernel 1 takes two.
// `seconds`: of the first step by so many blocks, with or without a second step.
std::vector<Candidate> filter_gradient_candidates(
    const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
    const DeviceDescription& device,
    const std::function<double(std::int64_t blocks, bool two_steps)>& seconds);

// A kernel with the constants of a tile (kernel_sources/conv/direct/depthwise_wgrad_tile.cuh) and
// of the layout of x and dy.
KernelSpec filter_gradient_spec(const char* engine, const char* file, const char* entry,
                                const ConvolutionProblem& problem,
                                const FilterGradientTiles& tiles);
void add_filter_gradient_geometry(KernelSpec& spec, const Gather& gather);

// `spec`: the kernel of the first step, without PARTIAL.
Proposal filter_gradient_proposal(const ConvolutionProblem& problem,
                                  const FilterGradientTiles& tiles, KernelSpec spec, int cluster,
                                  int groups);

// An engine for such gradients. Each problem has one tile, as a candidate of one step and of two.
class FilterGradientEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const final;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

  // `cluster` blocks add up their sums through shared memory; `groups` such clusters leave theirs
  // in the workspace.
  virtual Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device,
                           int cluster, int groups) const = 0;

 protected:
  struct Answer {
    FilterGradientTiles tiles;
    std::function<double(std::int64_t blocks, bool two_steps)> seconds;
  };
  // The references must outlive the answer.
  virtual std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                            const DeviceDescription& device) const = 0;
};

}  // namespace kiln
