// Shared by the softmax engines: the problem as rows in memory, and the parts of a proposal that
// follow from it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "engines/common/block_layout.hpp"
#include "engines/engine.hpp"

namespace kiln {

struct SoftmaxRows {
  const SoftmaxProblem& problem;
  std::vector<Operand> operands;
  Combining combining;

  explicit SoftmaxRows(const SoftmaxProblem& problem);

  int inputs() const { return problem.backward ? 2 : 1; }
  DataType compute() const { return compute_type(problem.type); }
  std::int64_t length() const { return combining.combined_vectors(); }
  // Blocks, each of which takes a group of rows.
  std::int64_t blocks(const BlockLayout& layout) const;

  // The kernel of the engine `name`. `steps`: vectors that a thread may count beyond the end of a
  // row.
  KernelSpec kernel(const std::string& name, const BlockLayout& layout, int steps) const;
  // The proposal with `parts` blocks for each row.
  std::variant<Proposal, Refusal> proposal(KernelSpec kernel, const BlockLayout& layout,
                                           int parts) const;
};

}  // namespace kiln
