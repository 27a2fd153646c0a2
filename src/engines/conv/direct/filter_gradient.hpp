// Filter gradients with few channels a group: tiles of dw whose sums over all pixels several blocks
// share, as clusters and, where workspace is granted, in a second step.
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
  std::int64_t block_rows = 0;      // channels of dy
  std::int64_t block_channels = 0;  // of x, of each group; 0: all
  std::int64_t filter_rows = 0;
  std::int64_t units = 0;    // tiles of pixels of dy, of all images
  std::int64_t at_once = 1;  // units that a block takes at a time
  std::int64_t threads = 0;
  std::int64_t resident = 4;  // blocks of a multiprocessor, at once or one after the other

  std::int64_t tiles(const ConvolutionProblem& problem, const Gather& gather) const;
  std::int64_t elements(const Gather& gather) const;  // of a tile
  std::int64_t channels(const Gather& gather) const {
    return block_channels == 0 ? gather.channels : block_channels;
  }
};

// What a second step takes, which adds up what blocks leave in the workspace.
constexpr double second_kernel_seconds = 6e-6;

// As many groups of blocks as keep every multiprocessor busy, each with some units for every
// thread.
int filter_gradient_groups(const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
                           const DeviceDescription& device);

// Kernel 0 is that of one step, by a block or a cluster a tile; kernel 1 that of two. `seconds`: of
// the first step by so many blocks, where a second one follows or none.
std::vector<Candidate> filter_gradient_candidates(
    const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
    const DeviceDescription& device,
    const std::function<double(std::int64_t blocks, bool two_steps)>& seconds);

// A kernel with the constants of a tile (kernel_sources/conv/direct/depthwise_wgrad_tile.cuh), and
// those that tell what of x and dy lies where.
KernelSpec filter_gradient_spec(const char* engine, const char* file, const char* entry,
                                const ConvolutionProblem& problem,
                                const FilterGradientTiles& tiles);
void add_filter_gradient_geometry(KernelSpec& spec, const Gather& gather);

// `spec`: of the kernel that adds up products, without PARTIAL.
Proposal filter_gradient_proposal(const ConvolutionProblem& problem,
                                  const FilterGradientTiles& tiles, KernelSpec spec, int cluster,
                                  int groups);

// An engine of such gradients: each problem has one tile, in one step and in two.
class FilterGradientEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const final;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

  // `cluster` blocks add up their sums in shared memory, `groups` of those in the workspace.
  virtual Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device,
                           int cluster, int groups) const = 0;

 protected:
  struct Answer {
    FilterGradientTiles tiles;
    std::function<double(std::int64_t blocks, bool two_steps)> seconds;
  };
  // What it refers to outlives the answer.
  virtual std::variant<Answer, Refusal> ask(const ConvolutionProblem& problem, const Gather& gather,
                                            const DeviceDescription& device) const = 0;
};

}  // namespace kiln
