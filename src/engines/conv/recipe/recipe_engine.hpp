// The engine of a recipe: it lists candidates, and makes the proposal for a tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/laid_tiles.hpp"
#include "engines/engine.hpp"

namespace kiln {

template <class Tile>
class RecipeEngine final : public Engine {
 public:
  explicit RecipeEngine(const Recipe<Tile>& recipe) : recipe_(recipe) {}

  const char* name() const override { return recipe_.name; }
  bool is_for(const Problem& problem) const override {
    const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
    return convolution != nullptr &&
           (convolution->pass == ConvolutionPass::wgrad) == recipe_.filter_gradient &&
           (convolution->groups > 1 || !recipe_.several_groups) &&
           (convolution->in_pixels() == 1 || !recipe_.one_pixel);
  }
  bool takes_mixed_types() const override { return recipe_.mixed_types; }
  bool makes_moments() const override { return recipe_.moments; }
  bool takes_gradient() const override { return recipe_.normalization_gradient; }
  bool takes_group_strides() const override { return recipe_.group_strides; }
  std::string only_by_name(const Problem& problem) const override {
    if (recipe_.only_by_name == nullptr) return {};
    return recipe_.only_by_name(std::get<ConvolutionProblem>(problem));
  }

  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override {
    const Seen seen(std::get<ConvolutionProblem>(problem), device);
    if (auto refused = recipe_.refusal(seen)) return refused;
    const auto laid = this->laid(seen);
    if (laid->empty())
      return recipe_.why_no_tile != nullptr ? recipe_.why_no_tile(seen) : Refusal{recipe_.no_tile};
    std::vector<Candidate> candidates;
    Refusal first;
    for (std::size_t i = 0; i < laid->size(); ++i) {
      const Tile& tile = (*laid)[i];
      const TileCounts tiles = recipe_.count(tile, seen);
      for (const Offer& offer : recipe_.offers(tile, seen, tiles)) {
        if (auto refused = launch_refusal(tile, seen, offer.sharing, tiles)) {
          if (!first) first = std::move(refused);
          continue;
        }
        Candidate candidate;
        candidate.kernel = static_cast<int>(i);
        candidate.parts = offer.sharing.parts;
        candidate.groups = offer.sharing.groups;
        candidate.seconds = offer.seconds;
        candidate.workspace = offer.workspace;
        candidate.finish_seconds = offer.finish_seconds;
        candidates.push_back(std::move(candidate));
      }
    }
    if (candidates.empty()) return first;
    return candidates;
  }

  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override {
    const Seen seen(std::get<ConvolutionProblem>(problem), device);
    const auto laid = this->laid(seen);  // keeps the tile if other threads' problems displace it
    const Tile& tile = laid->at(static_cast<std::size_t>(candidate.kernel));
    return propose(tile, seen, {candidate.parts, candidate.groups});
  }

  ContinueSums continue_sums() const override { return recipe_.continue_sums; }

  // The tiles that fit, for a problem that is not refused. A candidate's kernel is an index into
  // them.
  std::vector<Tile> tiles(const ConvolutionProblem& problem,
                          const DeviceDescription& device) const {
    return recipe_.lay({problem, device});
  }

  // The proposal for one of them, whether or not the choice would take it.
  Proposal propose(const Tile& tile, const ConvolutionProblem& problem,
                   const DeviceDescription& device, const Sharing& sharing = {}) const {
    return propose(tile, {problem, device}, sharing);
  }

 private:
  Proposal propose(const Tile& tile, const Seen& seen, const Sharing& sharing) const {
    KernelSpec spec;
    spec.engine = recipe_.name;
    spec.file = recipe_.file;
    spec.entry = recipe_.entry != nullptr ? recipe_.entry : recipe_.name;
    spec.tile = recipe_.describe(tile);
    if (recipe_.shared_memory != nullptr) spec.shared_memory = recipe_.shared_memory(tile, seen);
    spec.alignment =
        recipe_.alignment != nullptr ? recipe_.alignment(seen) : size_of(seen.problem.type());
    recipe_.write(spec, tile, seen);
    LaunchSpec launch = launch_of(spec, tile, seen, sharing);
    Proposal out{{std::move(spec), std::move(launch)}};
    out.first().set_cluster(sharing.parts);
    if (recipe_.finish != nullptr) recipe_.finish(out, tile, seen, sharing);
    return out;
  }

  std::shared_ptr<const std::vector<Tile>> laid(const Seen& seen) const {
    return laid_tiles<Tile>(*this, seen.problem, seen.device, [&] { return recipe_.lay(seen); });
  }

  Refusal launch_refusal(const Tile& tile, const Seen& seen, const Sharing& sharing,
                         const TileCounts& tiles) const {
    if (recipe_.tile_refusal != nullptr)
      if (auto refused = recipe_.tile_refusal(tile, seen, sharing)) return refused;
    if (const std::int64_t blocks = blocks_of(tiles, sharing); blocks > limit32)
      return cat(blocks, " thread blocks; a launch has at most ", limit32);
    return {};
  }

  static std::int64_t blocks_of(const TileCounts& tiles, const Sharing& sharing) {
    return (tiles.blocks > 0 ? tiles.blocks : tiles.all) * sharing.parts * sharing.groups;
  }

  LaunchSpec launch_of(const KernelSpec& spec, const Tile& tile, const Seen& seen,
                       const Sharing& sharing) const {
    if (recipe_.launch != nullptr) return recipe_.launch(spec, tile, seen, sharing);
    const TileCounts tiles = recipe_.count(tile, seen);
    const std::int64_t blocks = blocks_of(tiles, sharing);
    const auto threads = static_cast<std::uint32_t>(recipe_.threads(tile));
    return recipe_.filter_gradient
               ? wgrad_launch(seen.problem, blocks, threads, spec.shared_memory)
               : gather_launch(seen.problem, tiles.of_pixels, blocks, threads, spec.shared_memory);
  }

  const Recipe<Tile>& recipe_;
};

}  // namespace kiln
