// The choice among all engines' candidates: the least estimated time.
//
// One kernel serves every batch size, yet which one is best depends on it: few images leave most of
// a chip without a tile unless tiles are small, and a few more than fill it make another round. So
// a convolution's kernel is chosen at one of a few reference batches, and a layer has at most so
// many kernels, however many batch sizes it meets. Into how many parts the reduction is divided, a
// launch argument, is chosen for the batch at hand, unless one is best for all of a range: that
// kernel is written for one.
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

// Every engine for the problem's operation, in the order of engines(), with its refusal; "" of
// those that take it.
std::vector<EngineRefusal> ask_engines(const Problem& problem, const DeviceDescription& device);

// What restricts the choice.
struct Terms {
  std::string only_engine{};  // name of the only engine to ask; "": all
  std::size_t workspace = 0;  // bytes of workspace that the caller grants
  friend bool operator==(const Terms&, const Terms&) = default;
};
// The most workspace that any plan uses, in bytes.
inline constexpr std::size_t most_workspace = std::size_t{16} << 20;

// As flags of the program, each followed by a space: "--engine direct --workspace 4096 ".
std::string flags_of(const Terms& terms);

// The fastest candidate that a measurement found, by names.
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
  bool tuned = false;  // the winner's, not the model's
};

// `winner`, if not null and among the candidates; else by the cost model. The refusals of those
// asked are added to `refusals`. Throws NOT_SUPPORTED with every reason if there is no candidate.
Choice choose(const Problem& problem, const DeviceDescription& device, const Terms& terms,
              std::vector<EngineRefusal>& refusals, const Winner* winner);

// The cost model's proposal.
Proposal choose(const Problem& problem, const DeviceDescription& device, const Terms& terms,
                std::vector<EngineRefusal>& refusals);

// All candidates that need no more workspace, with their kernels, the least estimate first. Throws
// as choose().
struct Option {
  Winner name;
  Choice choice;
  bool only_by_name = false;  // served only when named (Engine::only_by_name)
};
std::vector<Option> all_candidates(const Problem& problem, const DeviceDescription& device,
                                   std::size_t workspace = 0);

}  // namespace kiln
