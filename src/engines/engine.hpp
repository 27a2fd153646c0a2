// An engine is a stateless way to compute a problem: it proposes a kernel, or refuses with a
// reason.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/problem.hpp"

namespace kiln {

struct Refusal {
  std::string
      reason;  // a clause: "2 output channels a group; below 8 the tile would be mostly idle"
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  // Whether the problem is of the operation that this engine is for at all. One that is not is no
  // refusal worth telling.
  virtual bool is_for(const Problem& problem) const = 0;
  // Of a problem that it is for.
  virtual std::variant<Proposal, Refusal> propose(const Problem& problem,
                                                  const DeviceDescription& device) const = 0;
};

// All engines, of each operation the best first; the plan takes the first that does not refuse.
std::span<const Engine* const> engines();

struct EngineRefusal {
  std::string engine, reason;
};

// Every engine for the problem's operation, in the order in which they are asked, with its refusal;
// "" of those that take it.
std::vector<EngineRefusal> ask_engines(const Problem& problem, const DeviceDescription& device);

// The first proposal that is no refusal, of one engine alone if `only` names it; the refusals on
// the way are added to `refusals`. Throws NOT_SUPPORTED with every reason if there is none.
Proposal choose(const Problem& problem, const DeviceDescription& device, const std::string& only,
                std::vector<EngineRefusal>& refusals);

}  // namespace kiln
