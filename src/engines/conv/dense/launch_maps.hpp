// The tensor maps and the holes of a dense kernel's parameters
// (kernel_sources/conv/dense/params.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "conv/dense/params.h"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/recipe/seen.hpp"
#include "problem/problem.hpp"

namespace kiln {

// Collects the maps that follow DenseParams in the kernel's parameters, in the order of add().
class DenseMaps {
 public:
  explicit DenseMaps(const ConvolutionProblem& problem) : operands_(operands_of(problem)) {}

  // A map of the named operand that begins at element `first`.
  void add(const TensorMapSpec& spec, std::string_view name, std::int64_t first);
  const char* source() const;  // name of the operand that a gather reads
  const char* result() const { return operands_.back().name; }

  std::vector<LaunchSpec::Map> all{};

 private:
  std::vector<Operand> operands_;
};

// The boxes that a tile copies of each operand.
struct DenseBoxes {
  DenseLines lines;
  std::int64_t pixels;       // pixels of the source
  std::int64_t filter_rows;  // rows of the filter, where its channels are contiguous
  std::int64_t slab_pixels;  // pixels of a slab of the output
  std::int64_t result_line;  // and rows
  bool joined;               // the first phase's filter is that of all phases
};
// In the order of kernel_sources/conv/dense/params.h.
std::vector<LaunchSpec::Map> dense_maps(const ConvolutionProblem& problem, const Gather& gather,
                                        const DenseBoxes& boxes);
// The boxes of a patch of 8 columns of pixels, and of its halo.
struct PatchBoxes {
  DenseLines lines;
  std::int64_t halo_columns, halo_rows;
  std::int64_t rows;
};
std::vector<LaunchSpec::Map> dense_patch_maps(const ConvolutionProblem& problem,
                                              const Gather& gather, const PatchBoxes& boxes);
std::int64_t dense_map_count(const ConvolutionProblem& problem, const Gather& gather);

// The launch of persistent blocks, one for each multiprocessor at most, that take `tiles` tiles.
// Fills in what all dense kernels take.
LaunchSpec dense_launch(DenseParams params, std::int64_t tiles, int threads,
                        std::uint32_t shared_memory, std::vector<LaunchSpec::Map> maps,
                        const Seen& seen);

}  // namespace kiln
