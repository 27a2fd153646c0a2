// An engine is a stateless way to compute problems of one operation. For a problem it lists the
// kernels that it offers, each with its estimated time, or refuses with a reason.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/method.hpp"
#include "problem/problem.hpp"

namespace kiln {

// The most workspace that any plan uses, in bytes.
inline constexpr std::size_t most_workspace = std::size_t{16} << 20;

// Why something is not possible; in a condition, whether it is refused at all.
struct [[nodiscard]] Refusal {
  Refusal() = default;                                  // it is possible
  Refusal(std::string why) : reason(std::move(why)) {}  // NOLINT(google-explicit-constructor)
  Refusal(const char* why) : reason(why) {}             // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return !reason.empty(); }

  // A clause: "2 output channels a group; below 8 the tile would be mostly idle".
  std::string reason;
};

struct Candidate {
  int kernel = 0;      // number among the engine's kernels for the problem, at any batch size
  int parts = 1;       // split count: blocks that share a tile's reduction; a launch argument
  double seconds = 0;  // estimated time of one execution (cost_model.hpp)
  std::optional<Proposal>
      made{};  // the proposal, if the engine had to make it to know whether it takes the problem
  std::size_t workspace = 0;  // bytes it needs; with fewer granted it is not chosen
  // Clusters of `parts` blocks that share a tile's reduction: more than 1 leave their sums in the
  // workspace, and a second step adds them up. That is another kernel than with 1.
  int groups = 1;
  double finish_seconds = 0;  // of `seconds`: those of the second step, if sums can be continued
};

// Makes the first step of a proposal of several groups add to the sums in the workspace, which the
// first step of such a proposal, for other images, has left there.
using ContinueSums = void (*)(Step& first);

class Engine : public Method {
 public:
  const Engine* engine() const final { return this; }
  // Candidates for a problem for which is_for() holds: at least one, in no order, or a refusal.
  // Cheap: no kernel is written.
  virtual std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const = 0;
  // Writes kernel and launch for a candidate of candidates().
  virtual Proposal make(const Problem& problem, const DeviceDescription& device,
                        Candidate candidate) const = 0;
  // Filter gradients whose images are computed in chunks, so that all chunks but the last leave
  // their sums in the workspace. Not null: make() also takes a candidate of several groups for
  // another number of images than that for which it was offered.
  virtual ContinueSums continue_sums() const { return nullptr; }
};

// An engine with one kernel for each problem. It finds out by writing the kernel whether it takes
// the problem.
class OneKernelEngine : public Engine {
 public:
  virtual std::variant<Proposal, Refusal> propose(const Problem& problem,
                                                  const DeviceDescription& device) const = 0;
  // Estimated time for a problem that it takes; by default the time to move every operand once.
  virtual double seconds(const Problem& problem, const DeviceDescription& device) const;

  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;
};

// Refuses for an engine or rewrite if the result has another type than the inputs and it does not
// take mixed types, if moments of the result or a normalization's gradient are asked for that it
// does not make, or if groups lie where it does not look for them.
Refusal result_refusal(const Method& method, const Problem& problem);
// The engine's candidates, that refusal or its own.
std::variant<std::vector<Candidate>, Refusal> ask(const Engine& engine, const Problem& problem,
                                                  const DeviceDescription& device);

// The engines among methods().
std::span<const Engine* const> engines();

}  // namespace kiln
