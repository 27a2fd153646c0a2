// Remembers the tiles that were laid on recent problems. They do not depend on the batch size, and
// a choice asks at several batch sizes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

// The remembered value for the engine, the problem at any batch size and the device; calls lay() if
// there is none.
std::shared_ptr<const void> lay_once(const Engine& engine, const ConvolutionProblem& problem,
                                     const DeviceDescription& device,
                                     const std::function<std::shared_ptr<const void>()>& lay);

// An engine's tiles, from memory or from lay(). An engine always has to ask for the same type.
template <class Tile, class Lay>
std::shared_ptr<const std::vector<Tile>> laid_tiles(const Engine& engine,
                                                    const ConvolutionProblem& problem,
                                                    const DeviceDescription& device,
                                                    const Lay& lay) {
  return std::static_pointer_cast<const std::vector<Tile>>(lay_once(
      engine, problem, device, [&] { return std::make_shared<std::vector<Tile>>(lay()); }));
}

}  // namespace kiln
