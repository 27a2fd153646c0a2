// A reduction seen as vectors in memory, and the layout of thread blocks over them.
#pragma once

#include "engines/common/block_layout.hpp"
#include "problem/problem.hpp"

namespace kiln {

struct Reduction {
  const ReductionProblem& problem;
  Combining combining;
  bool batch_kept;  // each image has its own results; false: the batch is reduced, too
  int sums;         // 1, or for a norm 3 sums of squares: unscaled, scaled up, scaled down

  int fold = 1;  // neighboring terms that have separate sums, which the second step combines

  explicit Reduction(const ReductionProblem& problem);

  // The same reduction with a `fold` that makes a warp read long lines of memory, where short lines
  // of kept elements follow each other, as the channels of pixels do.
  Reduction in_long_lines() const;

  DataType compute() const { return compute_type(problem.type); }
  std::int64_t vector_bytes() const {
    return combining.vector * static_cast<std::int64_t>(size_of(problem.type));
  }
  // At a batch size of `images`: vectors of results, and vectors that are combined to one of them.
  std::int64_t results(std::int64_t images) const {
    return combining.kept_vectors() * (batch_kept ? images : 1);
  }
  std::int64_t terms(std::int64_t images) const {
    return combining.combined_vectors() * (batch_kept ? 1 : images);
  }
};

struct ReductionLayout : BlockLayout {
  int unroll = 1;  // vectors that a thread loads at a time
  std::int64_t bytes_a_turn(const Reduction& reduction) const {
    return std::int64_t{threads()} * unroll * reduction.vector_bytes();
  }
};

// The layout for clusters of blocks that share results. `wide`: with lines twice as long as the
// longest that keep most of the chip busy, if that makes a different layout.
ReductionLayout clustered_layout(const Reduction& reduction, const DeviceDescription& device,
                                 bool wide);
// The layout for blocks that leave their sums in the workspace.
ReductionLayout partial_layout(const Reduction& reduction);

// Blocks that the results need, before several blocks share a result.
std::int64_t blocks_of(const Reduction& reduction, const BlockLayout& layout);
// Blocks that the device runs at the same time.
std::int64_t places_of(const BlockLayout& layout, const DeviceDescription& device);

// The split count with clusters: the blocks that share one block's work.
int cluster_parts(const Reduction& reduction, const BlockLayout& layout,
                  const DeviceDescription& device);
// The split count with workspace; 1 if a second step has no benefit.
int partial_parts(const Reduction& reduction, const ReductionLayout& layout,
                  const DeviceDescription& device);

}  // namespace kiln
