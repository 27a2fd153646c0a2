// The choice among the candidates of all engines and rewrites: the least estimated time.
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
#include "engines/grant.hpp"
#include "engines/method.hpp"
#include "engines/rewrite/rewrite.hpp"

namespace kiln {

// Batch sizes up to `most` use the kernel chosen at `reference`; but of more than 128 images of one
// pixel, which are the rows of a matrix, four reference sizes lie between a power of two and the
// next one.
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

// Every engine and rewrite for the problem's operation, in the order of methods(), with its
// refusal; "" if it takes the problem.
std::vector<EngineRefusal> ask_engines(const Problem& problem, const DeviceDescription& device);

struct Choice {
  Proposal proposal;
  double seconds = 0;  // estimated
  bool tuned = false;  // it is a measured winner, not the cost model's choice
};

// Chooses `winner` if it is not null and among the candidates; else asks the cost model. Adds the
// refusals to `refusals`. Throws NOT_SUPPORTED with all their reasons if there is no candidate.
Choice choose(const Problem& problem, const DeviceDescription& device, const Grant& grant,
              std::vector<EngineRefusal>& refusals, const Winner* winner);

// The cost model's proposal.
Proposal choose(const Problem& problem, const DeviceDescription& device, const Grant& grant,
                std::vector<EngineRefusal>& refusals);

// Chooses for what a rewrite makes of a problem, as choose() does.
class Chooser final : public InnerChoice {
 public:
  using InnerChoice::InnerChoice;
  ChoiceEstimate estimate(const Problem& problem, const Grant& grant) const override;
  Proposal choose(const Problem& problem, const Grant& grant) const override;
  Refusal refusal(const Problem& problem, const Grant& grant) const override;
  std::optional<ContinuedSums> continued(const ConvolutionProblem& first,
                                         const ConvolutionProblem& last,
                                         std::size_t workspace) const override;
};

// All candidates that need at most `workspace` bytes, with their kernels, the least estimate first.
// Throws what choose() throws.
struct Option {
  Winner name;
  Choice choice;
  bool only_by_name = false;  // served only when named (Method::only_by_name)
};
std::vector<Option> all_candidates(const Problem& problem, const DeviceDescription& device,
                                   std::size_t workspace = 0);

}  // namespace kiln
