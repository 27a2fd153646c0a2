// An engine is a stateless way to compute a problem: it proposes a kernel, or refuses with a
// reason.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

using Problem = std::variant<ConvolutionProblem>;

struct Refusal {
  std::string
      reason;  // a clause: "2 output channels a group; below 8 the tile would be mostly idle"
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  virtual std::variant<Proposal, Refusal> propose(const Problem& problem,
                                                  const DeviceDescription& device) const = 0;
};

// All engines, best first; the plan takes the first that does not refuse.
std::span<const Engine* const> engines();

}  // namespace kiln
