#include "engines/conv/wgrad/few_channels_operands.hpp"

#include "core/text.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/conv/tile/whole_rows.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_of_x = 8, most_of_dy = 8;  // channels of the operand with few

Refusal planar_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (auto refused = whole_rows_refusal("x", gather.source[2], 1, gather.source_strides))
    return refused;
  const std::int64_t width = gather.phases.front().pixels[2];
  if (auto refused = whole_rows_refusal("dy", width, 1, gather.out_strides)) return refused;
  constexpr std::int64_t least = 4;
  if (planar_copy(problem, gather) < least)
    return cat("rows of dy have ", width, " elements; expected a multiple of ", least, " bytes");
  return whole_row_sizes_refusal(gather, gather.channels);
}

}  // namespace

Few few_of(const Gather& gather, bool of_x) {
  if (of_x) return {"x", gather.source_strides, gather.channels, gather.source[2]};
  return {"dy", gather.out_strides, gather.rows, gather.phases.front().pixels[2]};
}

bool few_of_x(const Gather& gather) { return gather.channels <= gather.rows; }

bool is_planar(const Gather& gather) {
  return few_of_x(gather) && gather.rows > 1 && gather.out_strides[1] != 1;
}

std::int64_t planar_copy(const ConvolutionProblem& problem, const Gather& gather) {
  return whole_row_copy(problem, gather.phases.front().pixels[2], 1, gather.out_strides, true);
}

Refusal few_channels_refusal(const ConvolutionProblem& problem, const Gather& gather,
                             const DeviceDescription& device) {
  if (auto refused = warp_products_refusal(problem, device)) return refused;
  if (problem.groups > 1) return cat(problem.groups, " groups; expected 1");
  const bool of_x = few_of_x(gather);
  const Few few = few_of(gather, of_x);
  if (few.channels > (of_x ? most_of_x : most_of_dy))
    return cat(gather.channels, " input and ", gather.rows, " output channels; expected at most ",
               most_of_x, " of one");
  if (is_planar(gather)) return planar_refusal(problem, gather);
  const std::int64_t many = of_x ? gather.rows : gather.channels,
                     vector = channel_vector(problem.type());
  if (many % vector != 0)
    return cat(many, " channels of ", of_x ? "dy" : "x", "; expected a multiple of ", vector);
  if (auto refused = whole_rows_refusal(few.tensor, few.width, few.channels, few.strides))
    return refused;
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment, " bytes; expected 16");
  if (auto refused = vector_strides_refusal(
          of_x ? "dy" : "x", of_x ? gather.out_strides : gather.source_strides, vector))
    return refused;
  return whole_row_sizes_refusal(gather, few.channels);
}

}  // namespace kiln
