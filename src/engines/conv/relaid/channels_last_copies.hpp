// Convolutions of channels-first tensors, and of channels in no multiple of 16 bytes, by way of
// copies with channels last and padded, which lie in the workspace: of as many images at a time as
// have room there, so that the L2 cache still holds them.
// What multiplies is whichever engine is estimated best for the copies.
#pragma once

#include <cstddef>
#include <span>

#include "engines/engine.hpp"

namespace kiln {

// Where fewer bytes are granted than what serves best, so many may be enough.
inline constexpr std::size_t least_relaid_budget = std::size_t{4} << 20;

class RelaidEngine : public Engine {
 public:
  std::variant<std::vector<Candidate>, Refusal> candidates(
      const Problem& problem, const DeviceDescription& device) const final;
  Proposal make(const Problem& problem, const DeviceDescription& device,
                Candidate candidate) const final;

  // Within so many bytes of workspace. Results go through it too, a filter's gradient as f32, or
  // the engine of the copies stores them as they lie; dy is copied as x is, or that engine reads it
  // so. What has to be padded is copied anyway.
  struct Terms {
    std::size_t budget;
    bool copy_results;
    bool copy_dy = true;  // of filter gradients
  };
  struct Made {
    Proposal proposal;   // of an estimate, its workspace alone
    double seconds = 0;  // estimated
  };
  std::variant<Made, Refusal> propose(const ConvolutionProblem& problem,
                                      const DeviceDescription& device, const Terms& terms) const {
    return work_out(problem, device, terms, Extent::steps);
  }

 protected:
  virtual std::span<const Terms> all_terms() const = 0;  // candidate i keeps to the i-th
  // What is worked out: steps cost much more than an estimate, and are for what is chosen.
  enum class Extent { estimate, steps };
  virtual std::variant<Made, Refusal> work_out(const ConvolutionProblem& problem,
                                               const DeviceDescription& device, const Terms& terms,
                                               Extent extent) const = 0;
};

class ChannelsLastCopiesEngine final : public RelaidEngine {
 public:
  const char* name() const override { return "channels_last_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const Terms> all_terms() const override;
  std::variant<Made, Refusal> work_out(const ConvolutionProblem& problem,
                                       const DeviceDescription& device, const Terms& terms,
                                       Extent extent) const override;
};

// Sums of several times so many images are added up in f32.
class WgradChannelsLastCopiesEngine final : public RelaidEngine {
 public:
  const char* name() const override { return "wgrad_channels_last_copies"; }
  bool is_for(const Problem& problem) const override;

 protected:
  std::span<const Terms> all_terms() const override;
  std::variant<Made, Refusal> work_out(const ConvolutionProblem& problem,
                                       const DeviceDescription& device, const Terms& terms,
                                       Extent extent) const override;
};

}  // namespace kiln
