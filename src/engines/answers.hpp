// Asks engines and rewrites, and remembers their recent answers for convolutions. A choice asks
// more than once: at the batch size at which kernels are chosen, at the smallest one that uses
// them, and for copies of each number of images in a chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engines/engine.hpp"
#include "engines/method.hpp"
#include "engines/rewrite/rewrite.hpp"

namespace kiln {

// The candidates of an engine or rewrite, or its refusal, on the device of `inner`, which chooses
// for the problems that a rewrite makes.
std::variant<std::vector<Candidate>, Refusal> ask(const Method& method, const Problem& problem,
                                                  const InnerChoice& inner);
// Writes kernels and launches for one of these candidates.
Proposal make(const Method& method, const Problem& problem, const InnerChoice& inner,
              Candidate candidate);

// A candidate. Its proposal is made only if it is chosen.
struct Estimate {
  int kernel = 0, parts = 1;
  double seconds = 0;
  std::size_t workspace = 0;
  std::shared_ptr<const Proposal> made{};  // null: the engine has yet to make it
  int groups = 1;
  double finish_seconds = 0;
};
// Whether two candidates of an engine or rewrite, at whatever batch sizes and split counts, launch
// one kernel. Of both: a Candidate, or what has its kernel and groups.
template <class A, class B>
bool same_kernel(const A& a, const B& b) {
  return a.kernel == b.kernel && (a.groups > 1) == (b.groups > 1);
}

// Without a proposal that is made already.
Candidate candidate_of(const Estimate& estimate);

struct Answer {
  std::vector<Estimate> estimates;
  std::string refusal;  // the reason, if there are no estimates
};

// The answer of ask(), remembered for convolutions.
std::shared_ptr<const Answer> ask_once(const Method& method, const Problem& problem,
                                       const InnerChoice& inner);

// The proposal of one of those estimates.
Proposal make_proposal(const Method& method, const Problem& problem, const InnerChoice& inner,
                       const Estimate& estimate);

// For tests: the work that this process's choices have cost so far.
struct Effort {
  int answers = 0;    // worked out, for convolutions
  int proposals = 0;  // made from estimates
};
Effort effort_so_far();

}  // namespace kiln
