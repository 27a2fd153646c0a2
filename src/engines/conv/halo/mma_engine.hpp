// The base of the halo engines whose operands pass through registers (mma.sync, and wgmma with
// swapped operands).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engines/conv/halo/mma_tile.hpp"
#include "engines/conv/halo/tile_engine.hpp"

namespace kiln {

class HaloMmaEngine : public TileEngine<HaloMmaTile> {
 private:
  // The refusal if the operands' layout does not suit the engine's tiles.
  virtual Refusal layout_refusal(const ConvolutionProblem& problem, const Gather& gather) const = 0;
  // The refusal if the device lacks the engine's instruction.
  virtual Refusal products_refusal(const DeviceDescription& /*device*/) const { return {}; }
  // Alignment of every operand, in bytes.
  virtual std::size_t alignment(const ConvolutionProblem& problem) const = 0;

  Refusal refusal(const ConvolutionProblem& problem, const Gather& gather,
                  const DeviceDescription& device) const final;
  std::optional<HaloMmaTile> lay(const HaloMmaShape& shape, const Gather& gather, int tap_group,
                                 const DeviceDescription& device) const final;
  std::int64_t most_images(const HaloMmaTile& tile, const Gather& gather) const final;
  TileCounts count(const HaloMmaTile& tile, const ConvolutionProblem& problem,
                   const Gather& gather) const final;
  std::vector<Candidate> of_tile(const HaloMmaTile& tile, const ConvolutionProblem& problem,
                                 const Gather& gather, const DeviceDescription& device) const final;
  KernelSpec make_spec(const HaloMmaTile& tile, const ConvolutionProblem& problem,
                       const Gather& gather) const final;
};

}  // namespace kiln
