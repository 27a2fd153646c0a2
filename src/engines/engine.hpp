// An engine is a stateless way to compute the problems of an operation: it lists the kernels that
// it could take for one, each with its estimated time, or refuses with a reason.
#pragma once

#include <optional>
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

struct Candidate {
  int kernel = 0;      // of the engine's kernels for the problem: the same one at any batch size
  int parts = 1;       // blocks that share a tile's reduction, a launch argument
  double seconds = 0;  // of an execution, estimated; see cost_model.hpp
  std::optional<Proposal>
      made{};                 // by an engine that tells by making it whether it takes a problem
  std::size_t workspace = 0;  // bytes that it needs: no candidate where fewer are granted
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* name() const = 0;
  // Whether the problem is of the operation that this engine is for at all. One that is not is no
  // refusal worth telling.
  virtual bool is_for(const Problem& problem) const = 0;
  // Whether a convolution's result may have another type than what it reads.
  virtual bool takes_mixed_types() const { return false; }
  // Whether its kernels run in the place of chosen ones that are being compiled: the choice does
  // not ask it.
  virtual bool stands_in() const { return false; }
  // Of a problem that it is for: at least one, in no order. Cheap: no kernel is written for it.
  virtual std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const = 0;
  // Of a problem that it takes: why only those get it who name it, a clause; "" if the choice may
  // take it by its estimate.
  virtual std::string only_by_name(const Problem&) const { return {}; }
  // Of one of these.
  virtual Proposal make(const Problem& problem, const DeviceDescription& device,
                        Candidate candidate) const = 0;
};

// An engine with one kernel for a problem, which tells by writing it whether it takes it.
class OneKernelEngine : public Engine {
 public:
  virtual std::variant<Proposal, Refusal> propose(const Problem& problem,
                                                  const DeviceDescription& device) const = 0;
  // Estimated; of a problem that it takes. Here: of moving every operand once.
  virtual double seconds(const Problem& problem, const DeviceDescription& device) const;

  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;
};

// The engine's candidates; a refusal too where it does not take mixed types.
std::variant<std::vector<Candidate>, Refusal> ask(const Engine& engine, const Problem& problem,
                                                  const DeviceDescription& device);

// All engines, of each operation the better ones first, which wins where estimates are equal.
std::span<const Engine* const> engines();

}  // namespace kiln
