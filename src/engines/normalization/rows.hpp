// The pass of a normalization by the statistics of rows: its threads, kernel and launch. A row is
// the elements that share a mean and a deviation.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/common/block_layout.hpp"
#include "normalization/normalization_params.h"
#include "problem/problem.hpp"

namespace kiln {

// How threads share rows.
struct RowLayout : BlockLayout {
  int unroll = 1;          // vectors that a thread loads at a time
  bool held = false;       // these are all that it has
  int cluster = 0;         // blocks that share rows; 0: not held, as many as the launch says
  std::int64_t chunk = 0;  // by channel: vectors of channels that a block has
};

// How rows are taken: a cluster of blocks owns some. Or, with workspace, in stages: as many blocks
// as fill the chip share rows, leave totals, which a step joins, and then store the results. Or,
// with workspace too, blocks take pixels in turn and sum up dscale and dbias beside dx.
enum class RowRoad { clusters, stages, columns };
enum class RowStage { none, totals, results };

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

  NormalizationRows(const NormalizationProblem& problem, const DeviceDescription& device,
                    RowRoad road = RowRoad::clusters);

  std::int64_t clusters() const;  // of blocks, over all rows
  int parts() const;              // blocks of a cluster, or that share rows in stages
  // The share of the chip's places that have one of `blocks` blocks, until all are done.
  double busy(std::int64_t blocks) const;
  Step step(RowStage stage = RowStage::none) const;  // of clusters and stages
  Step gradient() const;                             // of columns
  // Joins the totals of stages to those of rows; or, `of_channels`, also those of columns, to
  // dscale and dbias.
  Step finish(bool of_channels) const;
  // Whether the totals of stages are those of channels, which give dscale and dbias too.
  bool sums_channels() const { return by_channel; }
  std::size_t workspace() const;  // bytes

 private:
  RowRoad road_;
  bool staged() const { return road_ == RowRoad::stages; }
  Step step_of(const char* entry, const BlockLayout& threads) const;
  NormalizationParams parameters() const;
  Combining combining_of(bool by_channel) const;
  RowLayout row_layout() const;
  RowLayout channel_layout() const;
  RowLayout planar_channel_layout() const;
  std::int64_t usual_images() const;
  int held_vectors() const;  // that a thread's registers hold
  void hold(RowLayout& layout) const;
};

}  // namespace kiln
