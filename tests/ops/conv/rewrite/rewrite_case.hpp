// Convolutions that are computed on channels-last copies, with so little workspace that a chunk has
// few images, or part of one.
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <variant>

#include "engines/choice.hpp"
#include "engines/rewrite/channels_last_copies.hpp"
#include "ops/conv/tensor_core_case.hpp"

namespace test {

inline const ChannelsLastCopies gathers;
inline const WgradChannelsLastCopies gradients;

inline constexpr ConvolutionPass all_passes[] = {ConvolutionPass::fprop, ConvolutionPass::dgrad,
                                                 ConvolutionPass::wgrad};

// Chooses for the problems that rewrites make.
inline Chooser chooser() { return Chooser(device()->description()); }

inline const RelayoutRewrite& engine_for(const ConvolutionProblem& problem) {
  if (problem.pass == ConvolutionPass::wgrad) return gradients;
  return gathers;
}

struct Layer {
  const char* line;
  std::size_t budget;
};

// Checks a problem with a budget of workspace, in bytes, that has room for a few images: with
// copied results and, if possible, with results that are stored directly.
inline void check_copies(const OperationCase& item, std::size_t budget, bool exact = true) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  int taken = 0;
  std::string reasons;
  for (const auto& [copy_results, copy_dy] :
       {std::pair(true, true), {false, true}, {true, false}, {false, false}}) {
    if (problem.pass != ConvolutionPass::wgrad && !copy_dy) continue;
    const auto answer = engine_for(problem).propose(
        problem, chooser(), {.budget = budget, .copy_results = copy_results, .copy_dy = copy_dy});
    if (const auto* refusal = std::get_if<Refusal>(&answer)) {
      reasons += refusal->reason + "; ";
      continue;
    }
    ++taken;
    const auto& [proposal, seconds] = std::get<RelayoutRewrite::Result>(answer);
    BOOST_TEST(proposal.workspace <= budget);
    const HostTensor got = run_proposal(item, proposal);
    const std::string fault = exact ? item.exact_fault(got) : item.fault(got);
    BOOST_TEST(fault.empty(), text_of(item.problem)
                                  << ", " << proposal.first().kernel.tile << ", "
                                  << proposal.steps.size() << " steps: " << fault);
  }
  BOOST_TEST(taken > 0, text_of(item.problem) << ": " << reasons);
}

// Checks a problem with the least workspace, to an eighth, that the copies take, and `more` eighths
// of it, so that images are cut. Returns the names of the tiles of the proposals that cut them, a
// line each.
inline std::string check_parts(const OperationCase& item, std::size_t more = 0, bool exact = true) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  std::string tiles;
  for (const auto& [copy_results, copy_dy] :
       {std::pair(true, true), {false, true}, {true, false}, {false, false}}) {
    if (problem.pass != ConvolutionPass::wgrad && !copy_dy) continue;
    std::size_t budget = 2048;
    const auto propose = [&] {
      return engine_for(problem).propose(
          problem, chooser(), {.budget = budget, .copy_results = copy_results, .copy_dy = copy_dy});
    };
    while (budget < most_workspace && std::holds_alternative<Refusal>(propose()))
      budget += budget / 8;
    budget += more * (budget / 8);
    const auto answer = propose();
    if (std::holds_alternative<Refusal>(answer)) continue;
    const Proposal& proposal = std::get<RelayoutRewrite::Result>(answer).proposal;
    if (proposal.first().kernel.tile.find("at a time") == std::string::npos) continue;
    tiles += proposal.first().kernel.tile + "\n";
    BOOST_TEST(proposal.workspace <= budget);
    const HostTensor got = run_proposal(item, proposal);
    const std::string fault = exact ? item.exact_fault(got) : item.fault(got);
    BOOST_TEST(fault.empty(), text_of(item.problem)
                                  << ", " << proposal.first().kernel.tile << ", "
                                  << proposal.steps.size() << " steps: " << fault);
    if (!exact) BOOST_TEST(run_proposal(item, proposal).values == got.values);
  }
  return tiles;
}

}  // namespace test
