#include "engines/answers.hpp"

#include <utility>

#include "core/process/per_process.hpp"
#include "engines/recent_problems.hpp"

namespace kiln {
namespace {

struct Answers {
  // Enough for one choice: its own problem at several batch sizes, and copies of chunks of images.
  RecentProblems<Answer, 32> known;
  Effort effort;
};
constinit PerProcess<Answers> remembered("engines' answers");

std::shared_ptr<const Answer> answer_of(std::variant<std::vector<Candidate>, Refusal> asked) {
  auto answer = std::make_shared<Answer>();
  if (auto* refusal = std::get_if<Refusal>(&asked)) {
    answer->refusal = std::move(refusal->reason);
    return answer;
  }
  auto& candidates = std::get<std::vector<Candidate>>(asked);
  answer->estimates.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    Estimate estimate{candidate.kernel,        candidate.parts, candidate.seconds,
                      candidate.workspace,     nullptr,         candidate.groups,
                      candidate.finish_seconds};
    if (candidate.made) estimate.made = std::make_shared<Proposal>(std::move(*candidate.made));
    answer->estimates.push_back(std::move(estimate));
  }
  return answer;
}

}  // namespace

std::variant<std::vector<Candidate>, Refusal> ask(const Method& method, const Problem& problem,
                                                  const InnerChoice& inner) {
  if (const Engine* const engine = method.engine()) return ask(*engine, problem, inner.device());
  if (auto refused = result_refusal(method, problem)) return refused;
  return method.rewrite()->candidates(std::get<ConvolutionProblem>(problem), inner);
}

Proposal make(const Method& method, const Problem& problem, const InnerChoice& inner,
              Candidate candidate) {
  if (const Engine* const engine = method.engine())
    return engine->make(problem, inner.device(), std::move(candidate));
  return method.rewrite()->make(std::get<ConvolutionProblem>(problem), inner, candidate);
}

std::shared_ptr<const Answer> ask_once(const Method& method, const Problem& problem,
                                       const InnerChoice& inner) {
  const auto* const convolution = std::get_if<ConvolutionProblem>(&problem);
  if (convolution == nullptr) return answer_of(ask(method, problem, inner));
  if (auto known = remembered.lock()->known.find(method.name(), *convolution, inner.device()))
    return known;
  // The lock is not held here, because a rewrite has others asked.
  auto answer = answer_of(ask(method, problem, inner));
  const auto answers = remembered.lock();
  answers->known.keep(method.name(), *convolution, inner.device(), answer);
  ++answers->effort.answers;
  return answer;
}

Candidate candidate_of(const Estimate& estimate) {
  return {estimate.kernel,    estimate.parts,  estimate.seconds,       std::nullopt,
          estimate.workspace, estimate.groups, estimate.finish_seconds};
}

Proposal make_proposal(const Method& method, const Problem& problem, const InnerChoice& inner,
                       const Estimate& estimate) {
  ++remembered.lock()->effort.proposals;
  Candidate candidate = candidate_of(estimate);
  if (estimate.made) candidate.made = *estimate.made;
  return make(method, problem, inner, std::move(candidate));
}

bool estimated_alike(const DeviceDescription& a, const DeviceDescription& b) {
  return a.kind == b.kind && a.compute_capability == b.compute_capability && a.arch == b.arch &&
         a.multiprocessors == b.multiprocessors && a.largest_cluster == b.largest_cluster &&
         a.clusters_at_once == b.clusters_at_once && a.l2_bytes == b.l2_bytes &&
         a.shared_memory_per_block == b.shared_memory_per_block &&
         a.shared_memory_per_multiprocessor == b.shared_memory_per_multiprocessor &&
         a.registers_per_multiprocessor == b.registers_per_multiprocessor;
}

Effort effort_so_far() { return remembered.lock()->effort; }

}  // namespace kiln
