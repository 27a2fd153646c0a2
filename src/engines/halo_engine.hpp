// What the engines of halo tiles share: refusals, candidates, and the kernel and launch that follow
// from a tile.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gather.hpp"
#include "engines/halo_tile.hpp"

namespace kiln {

class HaloEngine : public Engine {
 public:
  bool is_for(const Problem& problem) const final;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

  // Of a problem that it does not refuse: the tiles that fit, as they lie on it. A candidate's
  // kernel is the number of one of them.
  std::vector<HaloTile> tiles(const ConvolutionProblem& problem, const Gather& gather,
                              const DeviceDescription& device) const;
  // The proposal of one tile in so many parts, whichever would be chosen.
  Proposal propose(const HaloTile& tile, const ConvolutionProblem& problem, const Gather& gather,
                   int parts) const;

 protected:
  // Shapes, with as many taps in a stage of the filter.
  struct Shapes {
    std::span<const HaloShape> shapes;
    int tap_group;
  };

 private:
  // Why its tiles are not for how the operands lie; "" if they are.
  virtual std::string refusal(const ConvolutionProblem& problem, const Gather& gather) const = 0;
  virtual std::vector<Shapes> shapes(const ConvolutionProblem& problem,
                                     const Gather& gather) const = 0;
  // Bytes, of every operand.
  virtual std::size_t alignment(const ConvolutionProblem& problem) const = 0;

  KernelSpec make_spec(const HaloTile& tile, const ConvolutionProblem& problem,
                       const Gather& gather) const;
};

}  // namespace kiln
