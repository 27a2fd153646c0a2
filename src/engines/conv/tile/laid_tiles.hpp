// Tiles that were laid on a problem lately: which ones, and how they lie, is the same at every
// batch size, and a choice asks at several.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

std::shared_ptr<const void> lay_once(const Engine& engine, const ConvolutionProblem& problem,
                                     const DeviceDescription& device,
                                     const std::function<std::shared_ptr<const void>()>& lay);

// An engine's tiles; lay() gives them where they are not known. Of one engine always the same type.
template <class Tile, class Lay>
std::shared_ptr<const std::vector<Tile>> laid_tiles(const Engine& engine,
                                                    const ConvolutionProblem& problem,
                                                    const DeviceDescription& device,
                                                    const Lay& lay) {
  return std::static_pointer_cast<const std::vector<Tile>>(lay_once(
      engine, problem, device, [&] { return std::make_shared<std::vector<Tile>>(lay()); }));
}

}  // namespace kiln
