#include "engines/conv/dense/measured.hpp"

#include "core/text.hpp"
#include "engines/conv/dense/geometry.hpp"

namespace kiln {

std::string dense_only_by_name(const Problem& any) {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const auto unmeasured = [](const auto&... what) {
    return cat(what..., ", not measured yet: served only when the engine is named");
  };
  if (problem.type() == KILN_DATA_FLOAT) return unmeasured("TF32");
  if (problem.groups > 1) return unmeasured(problem.groups, " groups");
  if (dense_space(make_gather(problem)) == 3) return unmeasured("three dimensions of space");
  return "";
}

}  // namespace kiln
