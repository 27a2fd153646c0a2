// What engines answered lately, of convolutions. A choice asks one more than once: at the batch
// size at which kernels are chosen and at the least one that uses them, and for copies of some of
// the images in every number of chunks, with whatever workspace is left.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engines/engine.hpp"

namespace kiln {

// A candidate.
struct Estimate {
  int kernel = 0, parts = 1;
  double seconds = 0;
  std::size_t workspace = 0;
  std::shared_ptr<const Proposal> made{};  // null: the engine has yet to make it
};

struct Answer {
  std::vector<Estimate> estimates;
  std::string refusal;  // where there are none
};

// As ask().
std::shared_ptr<const Answer> ask_once(const Engine& engine, const Problem& problem,
                                       const DeviceDescription& device);

// The proposal of one of those estimates.
Proposal make_proposal(const Engine& engine, const Problem& problem,
                       const DeviceDescription& device, const Estimate& estimate);

// For tests: what the process's choices have taken so far.
struct Effort {
  int answers = 0;    // that engines worked out
  int proposals = 0;  // that they made of their estimates
};
Effort effort_so_far();

}  // namespace kiln
