// The base of the engines whose tiles have a halo in shared memory: it lists candidates and makes
// the proposal for a tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/laid_tiles.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Tile: the type of a tile laid on a problem. Its `shape` has rows m and threads().
template <class Tile>
class TileEngine : public Engine {
 public:
  using Shape = decltype(Tile::shape);

  bool is_for(const Problem& problem) const final { return is_gather(problem); }

  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& any, const DeviceDescription& device) const final {
    const auto& problem = std::get<ConvolutionProblem>(any);
    const Gather gather = make_gather(problem);
    if (auto refused = refusal(problem, gather, device)) return refused;
    const auto laid =
        laid_tiles<Tile>(*this, problem, device, [&] { return tiles(problem, gather, device); });
    const std::vector<Tile>& fitting = *laid;
    if (fitting.empty())
      return Refusal{"the halo of no tile fits into shared memory, or offsets into 32 bits"};
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < fitting.size(); ++i) {
      const std::int64_t blocks = count(fitting[i], problem, gather).all;
      for (Candidate& candidate : of_tile(fitting[i], problem, gather, device)) {
        if (blocks * candidate.parts > limit32) continue;
        candidate.kernel = static_cast<int>(i);
        candidates.push_back(std::move(candidate));
      }
    }
    if (candidates.empty())
      return Refusal{cat("more than ", limit32, " thread blocks in a launch")};
    return candidates;
  }

  Proposal make(const Problem& any, const DeviceDescription& device,
                Candidate candidate) const final {
    const auto& problem = std::get<ConvolutionProblem>(any);
    const Gather gather = make_gather(problem);
    const auto laid =
        laid_tiles<Tile>(*this, problem, device, [&] { return tiles(problem, gather, device); });
    return propose(laid->at(static_cast<std::size_t>(candidate.kernel)), problem, gather,
                   candidate.parts);
  }

  // For a problem that is not refused: the tiles that fit, laid on it. A candidate's kernel is an
  // index into them.
  std::vector<Tile> tiles(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device) const {
    std::vector<Tile> tiles;
    for (const Shapes& each : shapes(problem, gather))
      for (const Shape& shape : each.shapes) {
        const std::optional<Tile> tile = lay(shape, gather, each.tap_group, device);
        if (tile && narrow_offsets(problem, gather, shape.m, tile->chunk_channels(),
                                   most_images(*tile, gather)))
          tiles.push_back(*tile);
      }
    return tiles;
  }

  // The proposal for one tile and split count, whether or not the choice would take it.
  Proposal propose(const Tile& tile, const ConvolutionProblem& problem, const Gather& gather,
                   int parts) const {
    const TileCounts tiles = count(tile, problem, gather);
    Proposal out{{make_spec(tile, problem, gather), {}}};
    out.first().launch = gather_launch(problem, tiles.of_pixels, tiles.all * parts,
                                       static_cast<std::uint32_t>(tile.shape.threads()),
                                       out.first().kernel.shared_memory);
    out.first().set_cluster(parts);
    return out;
  }

 protected:
  static constexpr int most_parts = 8;  // larger clusters are not portable, and were no faster

  // All shapes, each with its number of taps in a stage of the filter.
  struct Shapes {
    std::span<const Shape> shapes;
    int tap_group;
  };

 private:
  // The refusal if the engine does not take the problem.
  virtual Refusal refusal(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device) const = 0;
  virtual std::vector<Shapes> shapes(const ConvolutionProblem& problem,
                                     const Gather& gather) const = 0;
  // The shape laid on a problem; none if it does not fit.
  virtual std::optional<Tile> lay(const Shape& shape, const Gather& gather, int tap_group,
                                  const DeviceDescription& device) const = 0;
  // The most images that a tile touches.
  virtual std::int64_t most_images(const Tile& tile, const Gather& gather) const = 0;
  virtual TileCounts count(const Tile& tile, const ConvolutionProblem& problem,
                           const Gather& gather) const = 0;
  // The candidates of one tile, one for each split count, with their estimates; `kernel` is not set
  // yet.
  virtual std::vector<Candidate> of_tile(const Tile& tile, const ConvolutionProblem& problem,
                                         const Gather& gather,
                                         const DeviceDescription& device) const = 0;
  virtual KernelSpec make_spec(const Tile& tile, const ConvolutionProblem& problem,
                               const Gather& gather) const = 0;
};

}  // namespace kiln
