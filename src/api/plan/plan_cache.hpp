// The plans of one handle's immediate calls: bounded, the least recently used goes first.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/process/per_process.hpp"
#include "plan/plan.hpp"

namespace kiln::api {

struct ProblemHash {
  std::size_t operator()(const Problem& problem) const;
};

class PlanCache {
 public:
  static constexpr std::size_t capacity = 256;

  // The finalized plan of `problem`, found or made. Threads that ask for the same new problem at
  // once share one finalization; others neither wait for it nor hold it up. Throws as
  // Plan::finalize; a failure is not kept: the next call tries again. A forked child begins with
  // none.
  std::shared_ptr<const Plan> get(const std::shared_ptr<Device>& device, const Problem& problem);

 private:
  struct Entry {
    Entry(std::shared_ptr<Device> device, const Problem& problem)
        : plan(std::move(device), problem) {}
    std::atomic<bool> ready{false};  // the plan is finalized, and from then on never changed
    std::mutex finalizing;
    Plan plan;
  };
  using Recent = std::list<std::shared_ptr<Entry>>;  // the last used first

  std::shared_ptr<Entry> find_or_add(const std::shared_ptr<Device>& device, const Problem& problem);

  struct Plans {
    Recent recent;
    std::unordered_map<Problem, Recent::iterator, ProblemHash> entries;
  };
  OwnPerProcess<Plans> plans_;  // locked for a lookup, never for a finalization
};

}  // namespace kiln::api
