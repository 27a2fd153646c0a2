#include "engines/conv/dense/constants.hpp"

#include <cstdlib>

namespace kiln {

void add_dense_lines(std::vector<Constant>& constants, const DenseLines& lines,
                     const ConvolutionProblem& problem) {
  constants.push_back({"STEP_CHANNELS", lines.channels,
                       "channels in a line of shared memory, a step of the reduction"});
  constants.push_back({"ROW_LINE", lines.rows, "rows of the output in a line of shared memory"});
  // A batch's matrices are groups to the convolution, not to the kernel.
  const auto& matrices = problem.group_strides;
  constants.push_back(
      {"GROUPS", matrices ? std::int64_t{1} : problem.groups, "groups of channels"});
  constants.push_back(
      {"MATRICES", matrices ? problem.groups : std::int64_t{1}, "products of a batch"});
  const bool forward = problem.pass == ConvolutionPass::fprop;
  constants.push_back({"SHARED_SOURCE", matrices && (forward ? matrices->x : matrices->y) == 0,
                       "all of the batch have one source"});
  constants.push_back({"SHARED_FILTER", matrices && matrices->w == 0, "and one filter"});
  constants.push_back({"GROUPS_IN_ROWS", problem.pass == ConvolutionPass::fprop, ""});
}

void add_dense_space(std::vector<Constant>& constants, const Gather& gather) {
  constants.push_back({"SPACE", std::int64_t{dense_space(gather)}, "spatial dimensions"});
  constants.push_back(
      {"APART_D", std::abs(gather.step[0]), "planes of the source from tap to tap, without sign"});
  constants.push_back({"APART_H", std::abs(gather.step[1]), ""});
  constants.push_back({"APART_W", std::abs(gather.step[2]), ""});
}

}  // namespace kiln
