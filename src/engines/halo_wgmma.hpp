// Forward propagation and data gradient of channels-last tensors on Hopper's warpgroup products,
// with the source's halo in shared memory.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "engines/engine.hpp"
#include "engines/gather.hpp"
#include "engines/line_tile.hpp"

namespace kiln {

class HaloWgmmaEngine final : public Engine {
 public:
  const char* name() const override { return "halo_wgmma"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;

  // Of a problem that it does not refuse: the tiles that fit, as they lie on it. A candidate's
  // kernel is the number of one of them.
  std::vector<LineTile> tiles(const ConvolutionProblem& problem, const Gather& gather,
                              const DeviceDescription& device) const;
  // The proposal of one tile in so many parts, whichever would be chosen.
  Proposal propose(const LineTile& tile, const ConvolutionProblem& problem, const Gather& gather,
                   int parts) const;

 private:
  KernelSpec make_spec(const LineTile& tile, const ConvolutionProblem& problem,
                       const Gather& gather) const;
};

}  // namespace kiln
