// Softmax and its gradient for rows of any length. Elements that shared memory does not keep are
// read twice. Takes every problem.
#pragma once

#include "engines/engine.hpp"

namespace kiln {

class SoftmaxOnlineEngine final : public Engine {
 public:
  const char* name() const override { return "softmax_online"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

// The same kernel with several rows for each cluster: it reads the next row while it writes one.
class SoftmaxOnlineInTurnEngine final : public Engine {
 public:
  const char* name() const override { return "softmax_online_in_turn"; }
  bool is_for(const Problem& problem) const override;
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const override;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const override;
};

}  // namespace kiln
