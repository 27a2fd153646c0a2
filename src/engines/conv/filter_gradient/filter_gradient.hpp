// Filter gradients with few channels a group: several blocks share the sums of a tile of dw, as
// clusters and, where workspace is granted, in a second step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

// How dw is divided into tiles, and the pixels of dy into units. A block sums one tile of dw over
// its share of the units.
struct FilterGradientTiles {
  std::int64_t block_rows = 0;      // channels of dy in a tile of dw
  std::int64_t block_channels = 0;  // channels of x in a tile, of each group; 0: all
  std::int64_t filter_rows = 0;     // rows of the filter in a tile
  std::int64_t units = 0;           // tiles of pixels of dy, over all images
  std::int64_t at_once = 1;         // units that a block computes at a time
  std::int64_t threads = 0;         // threads of a block
  std::int64_t resident = 4;        // blocks per multiprocessor, at once or one after the other

  std::int64_t tiles(const ConvolutionProblem& problem, const Gather& gather) const;
  std::int64_t elements(const Gather& gather) const;  // elements of dw in a tile
  std::int64_t channels(const Gather& gather) const {
    return block_channels == 0 ? gather.channels : block_channels;
  }
};

// Seconds of the second step, which adds up the sums that blocks left in the workspace; on an H200.
constexpr double second_kernel_seconds = 6e-6;

// The number of groups of blocks that keeps every multiprocessor busy and leaves each thread some
// units.
int filter_gradient_groups(const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
                           const DeviceDescription& device);

// Candidate kernel 0 takes one step, with a block or a cluster for each tile; kernel 1 takes two.
// `seconds` estimates the time of the first step, whose blocks come in clusters of `cluster`.
std::vector<Candidate> filter_gradient_candidates(
    const ConvolutionProblem& problem, const FilterGradientTiles& tiles,
    const DeviceDescription& device,
    const std::function<double(std::int64_t blocks, int cluster)>& seconds);

// A kernel with the constants of a tile (kernel_sources/conv/geometry/depthwise_wgrad_tile.cuh) and
// of the layout of x and dy.
KernelSpec filter_gradient_spec(const char* engine, const char* file, const char* entry,
                                const ConvolutionProblem& problem,
                                const FilterGradientTiles& tiles);
void add_filter_gradient_geometry(KernelSpec& spec, const Gather& gather);

// `spec`: the kernel of the first step, without PARTIAL.
Proposal filter_gradient_proposal(const ConvolutionProblem& problem,
                                  const FilterGradientTiles& tiles, KernelSpec spec, int cluster,
                                  int groups);

// An engine's plan for a problem that it takes.
struct FilterGradientAnswer {
  FilterGradientTiles tiles;
  // Estimated time of the first step, in seconds; it refers to the arguments of ask().
  std::function<double(std::int64_t blocks, int cluster)> seconds;
};

// The part of an engine that depends on its kernel.
struct FilterGradientMethod {
  const char* name;
  std::variant<FilterGradientAnswer, Refusal> (*ask)(const ConvolutionProblem& problem,
                                                     const Gather& gather,
                                                     const DeviceDescription& device);
  Proposal (*propose)(const ConvolutionProblem& problem, const DeviceDescription& device,
                      int cluster, int groups);
};

// The functions of a kernel whose blocks compute a Tile. All but refusal() are called only for
// problems that refusal() accepts.
template <class Tile>
struct FilterGradientKernel {
  const char* name;  // of the engine and of the kernel's entry point
  const char* file;
  // The reason, a clause, why the kernel does not take the problem; "" if it does.
  Refusal (*refusal)(const ConvolutionProblem& problem, const Gather& gather,
                     const DeviceDescription& device);
  std::optional<Tile> (*tile_of)(const ConvolutionProblem& problem, const Gather& gather,
                                 const DeviceDescription& device);
  FilterGradientTiles (*tiles_of)(const ConvolutionProblem& problem, const Gather& gather,
                                  const Tile& tile);
  // Estimated time of the first step, in seconds.
  double (*seconds)(const ConvolutionProblem& problem, const Gather& gather, const Tile& tile,
                    std::int64_t blocks, int cluster, const DeviceDescription& device);
  // Completes a spec that has the constants of filter_gradient_spec() and of the geometry: the
  // tile's text, alignment, shared memory and constants.
  void (*complete)(KernelSpec& spec, const ConvolutionProblem& problem, const Gather& gather,
                   const Tile& tile);
  // Adds the tensor maps of x and dy, where the kernel copies boxes.
  void (*add_maps)(LaunchSpec& launch, const ConvolutionProblem& problem, const Gather& gather,
                   const Tile& tile) = nullptr;
};

// The method of a FilterGradientKernel.
template <const auto& kernel>
constexpr FilterGradientMethod filter_gradient_method = {
    kernel.name,
    [](const ConvolutionProblem& problem, const Gather& gather,
       const DeviceDescription& device) -> std::variant<FilterGradientAnswer, Refusal> {
      if (auto refused = kernel.refusal(problem, gather, device)) return refused;
      const auto tile = kernel.tile_of(problem, gather, device).value();
      return FilterGradientAnswer{
          kernel.tiles_of(problem, gather, tile),
          [&problem, &gather, &device, tile](std::int64_t blocks, int cluster) {
            return kernel.seconds(problem, gather, tile, blocks, cluster, device);
          }};
    },
    [](const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
       int groups) -> Proposal {
      const Gather gather = make_gather(problem);
      const auto tile = kernel.tile_of(problem, gather, device).value();
      const FilterGradientTiles tiles = kernel.tiles_of(problem, gather, tile);
      KernelSpec spec = filter_gradient_spec(kernel.name, kernel.file, kernel.name, problem, tiles);
      add_filter_gradient_geometry(spec, gather);
      kernel.complete(spec, problem, gather, tile);
      Proposal out = filter_gradient_proposal(problem, tiles, std::move(spec), cluster, groups);
      if (kernel.add_maps != nullptr) kernel.add_maps(out.first().launch, problem, gather, tile);
      return out;
    }};

// An engine for such gradients. Each problem has one tile, as a candidate of one step and of two.
class FilterGradientEngine : public Engine {
 public:
  const char* name() const final { return method_.name; }
  bool is_for(const Problem& problem) const final;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

  // `cluster` blocks add up their sums through shared memory; `groups` such clusters leave theirs
  // in the workspace.
  Proposal propose(const ConvolutionProblem& problem, const DeviceDescription& device, int cluster,
                   int groups) const {
    return method_.propose(problem, device, cluster, groups);
  }

 protected:
  explicit FilterGradientEngine(const FilterGradientMethod& method) : method_(method) {}

 private:
  const FilterGradientMethod& method_;
};

}  // namespace kiln
