#include "engines/conv/filter_gradient/product.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {
bool is_wgrad(const Problem& problem) {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->pass == ConvolutionPass::wgrad;
}

std::int64_t least_reduction(const ConvolutionProblem& problem) { return problem.out_pixels(); }
std::int64_t usual_reduction(const ConvolutionProblem& problem) {
  return 32 * least_reduction(problem);
}

std::int64_t wgrad_tile_count(const ConvolutionProblem& problem, int m, int n) {
  const std::int64_t columns = problem.group_in() * problem.taps();
  return ceil_div(problem.group_out(), m) * ceil_div(columns, n) * problem.groups;
}

Refusal filters_refusal(const ConvolutionProblem& problem, std::int64_t least) {
  if (problem.group_out() >= least) return {};
  return Refusal{cat(problem.group_out(), " filters a group; with fewer than ", least,
                     " most of this engine's work would be idle")};
}

Refusal wgrad_count_refusal(const ConvolutionProblem& problem, int m, int n, int parts) {
  const std::int64_t pixels = problem.batch * problem.out_pixels();
  constexpr std::int64_t most_pixels = std::numeric_limits<std::uint32_t>::max() - (1 << 20);
  if (pixels > most_pixels)
    return Refusal{cat(pixels, " pixels of dy to sum over; at most ", most_pixels,
                       " can be counted in 32 bits")};
  const std::int64_t columns = problem.group_in() * problem.taps(), most = limit32 - 2 * n;
  if (columns > most)
    return Refusal{cat(columns, " elements in a filter; expected at most ", most)};
  if (const std::int64_t blocks = wgrad_tile_count(problem, m, n) * parts; blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  return {};
}

std::int64_t wgrad_largest_offset(const Gather& gather, int m, int n) {
  const Gather::Phase& phase = gather.phases.front();
  std::int64_t margin = 0;
  for (int i = 0; i < 3; ++i)
    margin += (std::abs(phase.origin[i]) + phase.taps[i] * std::abs(gather.step[i])) *
              gather.source_strides[2 + i];
  const std::int64_t x = 2 * margin + image_span(gather.source_strides,
                                                 gather.channels * gather.groups, gather.source);
  const std::int64_t dy = m * gather.out_strides[1] +
                          image_span(gather.out_strides, gather.rows * gather.groups, phase.pixels);
  const std::int64_t dw =
      image_span({0, gather.w_channel, gather.w_tap[0], gather.w_tap[1], gather.w_tap[2]},
                 gather.channels, phase.taps) +
      n * gather.w_channel;
  return std::max({x, dy, dw});
}

void add_wgrad_constants(std::vector<Constant>& constants, const Gather& gather, int m, int n,
                         bool channels_inner) {
  const ConstantWriter add(constants);
  const Gather::Phase& phase = gather.phases.front();
  const Spatial& taps = phase.taps;
  const std::int64_t columns = gather.channels * phase.tap_count();
  add("REDUCTION", columns, "columns of dw: the products of a forward sum");
  add("FIXED", true);
  add("CHANNELS_INNER", channels_inner);
  add("IMAGES_INNER", false);
  add("COLUMNS_TOGETHER", std::int64_t{1});
  add("TAPS_T", taps[0]);
  add("TAPS_R", taps[1]);
  add("TAPS_S", taps[2]);
  add("TAPS_IN_DEPTH", taps[0] > 1);
  const bool wide = wgrad_largest_offset(gather, m, n) > limit32;
  for (const char* name : {"offset_t", "out_offset_t"})
    add(name, TypeName{wide ? "long long" : "int"});
  add("pixel_offset_t", TypeName{wide ? "long long" : "unsigned"});
  add("index_t", TypeName{"unsigned"});
  const auto divisor = [&](const char* name, std::int64_t value, std::int64_t most) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(most)));
  };
  const std::int64_t column_bound = columns + 2 * n;
  divisor("DIV_OPQ", phase.out_pixels(), std::numeric_limits<std::uint32_t>::max());
  divisor("DIV_PQ", phase.pixels[1] * phase.pixels[2], phase.out_pixels());
  divisor("DIV_Q", phase.pixels[2], phase.out_pixels());
  divisor("DIV_TRS", phase.tap_count(), column_bound);
  divisor("DIV_RS", taps[1] * taps[2], column_bound);
  divisor("DIV_S", taps[2], column_bound);
  divisor("DIV_C", gather.channels, column_bound);
  const std::int64_t tiles_m = ceil_div(gather.rows, m);
  divisor("DIV_TILES_N", ceil_div(columns, n), limit32);
  divisor("DIV_TILES_M", tiles_m, tiles_m * gather.groups);
}

}  // namespace kiln
