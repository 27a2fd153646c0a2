// A reduction as vectors in memory, and how blocks of threads are laid over them.
#pragma once

#include "engines/common/block_layout.hpp"
#include "problem/problem.hpp"

namespace kiln {

struct Reduction {
  const ReductionProblem& problem;
  Combining combining;
  bool batch_kept;  // images are results of their own; one image is reduced over, as many are
  int sums;         // of squares, for a norm: as they are, scaled up, scaled down

  int fold = 1;  // neighbours of what is combined that are kept apart, to be combined later

  explicit Reduction(const ReductionProblem& problem);

  // With so many neighbours apart that memory is read in long lines, where the results lie side by
  // side in lines that follow each other: channels of pixels.
  Reduction in_long_lines() const;

  DataType compute() const { return compute_type(problem.type); }
  std::int64_t vector_bytes() const {
    return combining.vector * static_cast<std::int64_t>(size_of(problem.type));
  }
  // With a batch of `images`: vectors of results, and vectors that one of them is made of.
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

// For clusters of blocks that share results. `wide`: with lines of memory twice as long as keep
// most of the chip busy, if that is another layout; the same one else.
ReductionLayout clustered_layout(const Reduction& reduction, const DeviceDescription& device,
                                 bool wide);
// For blocks that leave their sums in the workspace.
ReductionLayout partial_layout(const Reduction& reduction);

// Vectors of results need so many blocks, before several share one.
std::int64_t blocks_of(const Reduction& reduction, const BlockLayout& layout);
// Blocks that run at the same time.
std::int64_t places_of(const BlockLayout& layout, const DeviceDescription& device);

// Into how many parts a cluster of blocks shares a block's work.
int cluster_parts(const Reduction& reduction, const BlockLayout& layout,
                  const DeviceDescription& device);
// Into how many parts blocks share it that leave their sums in the workspace; 1: a second step is
// of no use.
int partial_parts(const Reduction& reduction, const ReductionLayout& layout,
                  const DeviceDescription& device);

}  // namespace kiln
