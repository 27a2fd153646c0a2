// The choice among all engines' candidates: the least estimated time.
//
// A kernel serves every batch size, but the best kernel depends on the batch size: few images fill
// a chip only if tiles are small. So that a layer has few kernels, however many batch sizes it
// meets, a convolution's kernel is chosen at one of a few reference batch sizes. The split count
// (the number of blocks that share a tile's reduction) is a launch argument and is chosen for the
// actual batch size. If splitting pays nowhere in a range of batch sizes, the kernel is written
// without it.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

// Batch sizes up to `most` use the kernel chosen at `reference`.
struct BatchRange {
  std::int64_t most, reference;
};
inline constexpr BatchRange batch_ranges[] = {{2, 1},
                                              {6, 4},
                                              {12, 8},
                                              {24, 16},
                                              {48, 32},
                                              {96, 64},
                                              {std::numeric_limits<std::int64_t>::max(), 128}};

struct EngineRefusal {
  std::string engine, reason;
};

// Every engine for the problem's operation, in the order of engines(), with its refusal; "" if it
// takes the problem.
std::vector<EngineRefusal> ask_engines(const Problem& problem, const DeviceDescription& device);

// What restricts the choice.
struct Terms {
  std::string only_engine{};  // name of the only engine to ask; "": all
  std::size_t workspace = 0;  // bytes of workspace that the caller grants
  friend bool operator==(const Terms&, const Terms&) = default;
};
// The terms as flags of `kiln`, each followed by a space: "--engine direct --workspace 4096 ".
std::string flags_of(const Terms& terms);

// The names of a candidate, such as the fastest one of a measurement.
struct Winner {
  std::string engine, tile;
  int parts = 1;
  friend bool operator==(const Winner&, const Winner&) = default;
};
Winner name_of(const KernelSpec& kernel, const LaunchSpec& launch);
std::string describe(const Winner& winner);  // "direct one thread an element"; "..., 4 parts"

struct Choice {
  Proposal proposal;
  double seconds = 0;  // estimated
  bool tuned = false;  // it is a measured winner, not the cost model's choice
};

// Chooses `winner` if it is not null and among the candidates; else asks the cost model. Adds the
// refusals to `refusals`. Throws NOT_SUPPORTED with all their reasons if there is no candidate.
Choice choose(const Problem& problem, const DeviceDescription& device, const Terms& terms,
              std::vector<EngineRefusal>& refusals, const Winner* winner);

// The cost model's proposal.
Proposal choose(const Problem& problem, const DeviceDescription& device, const Terms& terms,
                std::vector<EngineRefusal>& refusals);

// The estimate of what choose() would choose, without its kernel: for problems that contain what is
// chosen for another one. Throws as choose() does.
struct ChoiceEstimate {
  double seconds = 0;
  std::size_t workspace = 0;  // bytes
};
ChoiceEstimate estimate_choice(const Problem& problem, const DeviceDescription& device,
                               const Terms& terms);

// All candidates that need at most `workspace` bytes, with their kernels, the least estimate first.
// Throws what choose() throws.
struct Option {
  Winner name;
  Choice choice;
  bool only_by_name = false;  // served only when named (Engine::only_by_name)
};
std::vector<Option> all_candidates(const Problem& problem, const DeviceDescription& device,
                                   std::size_t workspace = 0);

}  // namespace kiln
