// The pass of a normalization by the statistics of rows: its threads, kernel and launch. A row is
// the elements that share a mean and a deviation.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/common/block_layout.hpp"
#include "problem/problem.hpp"

namespace kiln {

// How threads share rows.
struct RowLayout : BlockLayout {
  int unroll = 1;          // vectors that a thread loads at a time
  bool held = false;       // these are all that it has
  int cluster = 0;         // blocks that share rows; 0: not held, as many as the launch says
  std::int64_t chunk = 0;  // by channel: vectors of channels that a block has
};

struct NormalizationRows {
  const NormalizationProblem& problem;
  const DeviceDescription& device;
  std::vector<Operand> operands;
  // The image's axes are kept where they number rows; by channel they are its channels, of which
  // `join` are a row.
  bool by_channel = false;
  std::int64_t join = 0;
  std::size_t tensors = 0;  // of x's sizes; then come scale and bias, then mean and deviation
  Combining combining;
  RowLayout layout;

  NormalizationRows(const NormalizationProblem& problem, const DeviceDescription& device);

  std::int64_t clusters() const;  // of blocks, over all rows
  int parts() const;              // blocks of a cluster
  // The share of the chip's places that have one of `blocks` blocks, until all are done.
  double busy(std::int64_t blocks) const;
  Step step() const;

 private:
  Combining combining_of(bool by_channel) const;
  RowLayout row_layout() const;
  RowLayout channel_layout() const;
  std::int64_t usual_images() const;
  int held_vectors() const;  // that a thread's registers hold
  void hold(RowLayout& layout) const;
};

}  // namespace kiln
