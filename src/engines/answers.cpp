#include "engines/answers.hpp"

#include <algorithm>
#include <list>
#include <utility>

#include "core/process/per_process.hpp"

namespace kiln {
namespace {

// Of one problem.
struct Answered {
  ConvolutionProblem problem;
  DeviceDescription device;
  std::vector<std::pair<const Engine*, std::shared_ptr<const Answer>>> answers;
};

class Answers {
 public:
  std::shared_ptr<const Answer> find(const Engine& engine, const ConvolutionProblem& problem,
                                     const DeviceDescription& device) {
    const Answered* const answered = find(problem, device);
    if (answered == nullptr) return nullptr;
    const auto found = std::ranges::find(answered->answers, &engine,
                                         &decltype(answered->answers)::value_type::first);
    return found == answered->answers.end() ? nullptr : found->second;
  }

  void keep(const Engine& engine, const ConvolutionProblem& problem,
            const DeviceDescription& device, std::shared_ptr<const Answer> answer) {
    // What one choice asks of: itself, and copies of its images in some numbers of chunks.
    constexpr std::size_t most = 32;
    if (find(problem, device) == nullptr) {
      problems_.push_front({problem, device, {}});
      if (problems_.size() > most) problems_.pop_back();
    }
    problems_.front().answers.emplace_back(&engine, std::move(answer));
  }

  Effort effort;

 private:
  // Which is the front one thereafter.
  const Answered* find(const ConvolutionProblem& problem, const DeviceDescription& device) {
    for (auto each = problems_.begin(); each != problems_.end(); ++each) {
      if (each->problem.batch != problem.batch || each->problem != problem ||
          !estimated_alike(each->device, device))
        continue;
      problems_.splice(problems_.begin(), problems_, each);
      return &problems_.front();
    }
    return nullptr;
  }

  std::list<Answered> problems_;  // most recent first
};
constinit PerProcess<Answers> all("engines' answers");

std::shared_ptr<const Answer> answer_of(std::variant<std::vector<Candidate>, Refusal> asked) {
  auto answer = std::make_shared<Answer>();
  if (auto* refusal = std::get_if<Refusal>(&asked)) {
    answer->refusal = std::move(refusal->reason);
    return answer;
  }
  auto& candidates = std::get<std::vector<Candidate>>(asked);
  answer->estimates.reserve(candidates.size());
  for (Candidate& candidate : candidates) {
    Estimate estimate{candidate.kernel, candidate.parts, candidate.seconds, candidate.workspace,
                      nullptr};
    if (candidate.made) estimate.made = std::make_shared<Proposal>(std::move(*candidate.made));
    answer->estimates.push_back(std::move(estimate));
  }
  return answer;
}

}  // namespace

std::shared_ptr<const Answer> ask_once(const Engine& engine, const Problem& problem,
                                       const DeviceDescription& device) {
  const auto* const convolution = std::get_if<ConvolutionProblem>(&problem);
  if (convolution == nullptr) return answer_of(ask(engine, problem, device));
  if (auto known = all.lock()->find(engine, *convolution, device)) return known;
  // Not under the lock: engines ask others.
  auto answer = answer_of(ask(engine, problem, device));
  const auto answers = all.lock();
  answers->keep(engine, *convolution, device, answer);
  ++answers->effort.answers;
  return answer;
}

Proposal make_proposal(const Engine& engine, const Problem& problem,
                       const DeviceDescription& device, const Estimate& estimate) {
  ++all.lock()->effort.proposals;
  Candidate candidate{estimate.kernel, estimate.parts, estimate.seconds, std::nullopt,
                      estimate.workspace};
  if (estimate.made) candidate.made = *estimate.made;
  return engine.make(problem, device, std::move(candidate));
}

bool estimated_alike(const DeviceDescription& a, const DeviceDescription& b) {
  return a.kind == b.kind && a.compute_capability == b.compute_capability && a.arch == b.arch &&
         a.multiprocessors == b.multiprocessors && a.largest_cluster == b.largest_cluster &&
         a.shared_memory_per_block == b.shared_memory_per_block &&
         a.shared_memory_per_multiprocessor == b.shared_memory_per_multiprocessor &&
         a.registers_per_multiprocessor == b.registers_per_multiprocessor;
}

Effort effort_so_far() { return all.lock()->effort; }

}  // namespace kiln
