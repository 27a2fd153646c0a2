// Tiles of the dense engines, laid on the problems of their suites.
#pragma once

#include "engines/conv/dense/dense_wgmma.hpp"
#include "engines/conv/dense/turned_filter.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

namespace test {

// All tiles laid on a problem, whether or not they suit it.
inline std::vector<DenseTile> all_laid(bool of_nchw, const ConvolutionProblem& problem,
                                       const DeviceDescription& on = device()->description()) {
  return seen_turned(Seen(problem, on), [&](const Seen& seen) {
    std::vector<DenseTile> tiles;
    for (const DenseTile& tile : dense_tiles(of_nchw))
      tiles.push_back(lay_dense_tile(tile, of_nchw, seen));
    return tiles;
  });
}

// The tile of a candidate.
inline DenseTile tile_of(const RecipeEngine<DenseTile>& engine, const Candidate& candidate,
                         const Problem& problem,
                         const DeviceDescription& on = device()->description()) {
  return engine.tiles(std::get<ConvolutionProblem>(problem), on)
      .at(static_cast<std::size_t>(candidate.kernel));
}

}  // namespace test
