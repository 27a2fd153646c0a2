// What both engines of softmax share: the problem as rows in memory, and the parts of a proposal
// that follow from it.
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
  // Groups of rows, each for one block.
  std::int64_t blocks(const BlockLayout& layout) const;

  // `name`: of engine and kernel. `steps`: vectors of a row that a thread may count past its end.
  KernelSpec kernel(const std::string& name, const BlockLayout& layout, int steps) const;
  // `parts`: how many blocks share a row.
  std::variant<Proposal, Refusal> proposal(KernelSpec kernel, const BlockLayout& layout,
                                           int parts) const;
};

}  // namespace kiln
