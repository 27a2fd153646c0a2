// The base of the halo engines whose operands wgmma reads from shared memory.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engines/conv/halo/wgmma_tile.hpp"
#include "engines/conv/tile/tile_engine.hpp"

namespace kiln {

class HaloWgmmaEngine : public TileEngine<HaloWgmmaTile> {
 private:
  // The refusal if the operands' layout does not suit the engine's tiles.
  virtual std::optional<Refusal> layout_refusal(const ConvolutionProblem& problem,
                                                const Gather& gather) const = 0;
  // Alignment of every operand, in bytes.
  virtual std::size_t alignment(const ConvolutionProblem& problem) const = 0;

  std::optional<Refusal> refusal(const ConvolutionProblem& problem, const Gather& gather,
                                 const DeviceDescription& device) const final;
  std::optional<HaloWgmmaTile> lay(const HaloWgmmaShape& shape, const Gather& gather, int tap_group,
                                   const DeviceDescription& device) const final;
  std::int64_t most_images(const HaloWgmmaTile& tile, const Gather& gather) const final;
  TileCounts count(const HaloWgmmaTile& tile, const ConvolutionProblem& problem,
                   const Gather& gather) const final;
  std::vector<Candidate> of_tile(const HaloWgmmaTile& tile, const ConvolutionProblem& problem,
                                 const Gather& gather, const DeviceDescription& device) const final;
  KernelSpec make_spec(const HaloWgmmaTile& tile, const ConvolutionProblem& problem,
                       const Gather& gather) const final;
};

}  // namespace kiln
