#include "engines/conv/dense/constants.hpp"

#include <cstdlib>

namespace kiln {

void add_dense_lines(std::vector<Constant>& constants, const DenseLines& lines,
                     const ConvolutionProblem& problem) {
  constants.push_back({"STEP_CHANNELS", lines.channels,
                       "channels in a line of shared memory, a step of the reduction"});
  constants.push_back({"ROW_LINE", lines.rows, "rows of the output in a line of shared memory"});
  constants.push_back({"GROUPS", problem.groups, "groups of channels"});
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
