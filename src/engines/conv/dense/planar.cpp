#include "engines/conv/dense/planar.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/launch_maps.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/maps/map_refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

constexpr std::int64_t line_bytes = 128;

// Whether the pixels of a channel are contiguous.
bool is_line(const Dims& strides, const Spatial& pixels) {
  std::int64_t next = 1;
  for (const int i : {2, 1, 0}) {
    if (pixels[i] == 1) continue;
    if (strides[2 + i] != next) return false;
    next *= pixels[i];
  }
  return true;
}

Refusal tensor_refusal(const char* tensor, const Dims& strides, const Spatial& pixels,
                       DataType type) {
  const std::int64_t whole = dense_vector(type);
  if (!is_line(strides, pixels))
    return cat("the pixels of a channel of ", tensor,
               " are not contiguous (width stride 1, no gaps), as channels-first layout has them");
  const std::int64_t plane = pixels[0] * pixels[1] * pixels[2];
  if (strides[1] < plane)
    return cat("the channel stride of ", tensor, " is ", strides[1], "; expected at least ", plane,
               ", the pixels of a channel");
  for (const auto& [stride, what] : {std::pair(strides[0], "batch"), {strides[1], "channel"}})
    if (stride % whole != 0)
      return cat("the ", what, " stride of ", tensor, " is ", stride, "; expected a multiple of ",
                 whole, ", for copies of 16 bytes");
  return {};
}

Refusal filter_refusal(const Gather& gather) {
  const std::int64_t vector = dense_vector(gather.type);
  const auto whole = [&](std::int64_t stride) { return stride % vector == 0; };
  if (gather.w_channel == 1 && whole(gather.w_row)) return {};
  if (gather.w_row == 1 && whole(gather.w_channel) && size_of(gather.type) == 2) return {};
  return "in w neither channels nor filters are contiguous, in multiples of 16 bytes";
}

// A map with sizes {pixels, channels, N}.
TensorMapSpec plane_map(const ConvolutionProblem& problem, std::int64_t channels,
                        std::int64_t plane, const Dims& strides,
                        const std::array<std::int64_t, 3>& box) {
  TensorMapSpec map;
  map.type = problem.type();
  map.rank = 3;
  map.box = {box[0], box[1], box[2]};
  map.sizes = {plane, channels, problem.batch};
  const auto element = static_cast<std::int64_t>(size_of(problem.type()));
  map.strides = {strides[1] * element, strides[0] * element};
  return map;
}

// Why the convolution is not a matrix product of the filter and each image as stored.
Refusal place_refusal(const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  if (gather.most_taps() != 1)
    return cat("the filter has ", gather.most_taps(), " taps; expected one");
  if (gather.phases.size() > 1 || gather.stride != Spatial{1, 1, 1} || phase.origin != Spatial{} ||
      phase.pixels != gather.source)
    return "padding or a stride, so that output pixels are not the input's pixels";
  return {};
}

// Words of so few channels would be read again while they are multiplied.
Refusal words_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  constexpr std::int64_t least = 16;
  if (size_of(problem.type()) == 2 || gather.groups == 1 || gather.channels % least == 0) return {};
  return cat(gather.channels, " input channels a group, of f32; expected a multiple of ", least);
}

}  // namespace

std::int64_t planar_line(DataType type) {
  return line_bytes / static_cast<std::int64_t>(size_of(type));
}

Refusal planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                       const DeviceDescription& device) {
  if (auto refused = dense_product_refusal(problem, gather, device)) return refused;
  if (auto refused = words_refusal(problem, gather)) return refused;
  if (auto refused = place_refusal(gather)) return refused;
  const Gather::Phase& phase = gather.phases.front();
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  for (const auto& [tensor, strides] :
       {std::pair(dgrad ? "dy" : "x", gather.source_strides),
        {dgrad ? "dx" : "y", gather.out_strides},
        {"z", problem.epilogue.residual ? problem.z_strides : gather.out_strides}})
    if (auto refused = tensor_refusal(tensor, strides, phase.pixels, problem.type()))
      return refused;
  return filter_refusal(gather);
}

DenseLines planar_lines(const ConvolutionProblem& problem, const Gather& gather,
                        std::int64_t rows) {
  DenseLines lines = dense_lines(problem, gather, rows);
  if (gather.groups == 1) lines.channels = planar_line(problem.type());
  return lines;
}

std::vector<LaunchSpec::Map> planar_maps(const ConvolutionProblem& problem, const Gather& gather,
                                         const PlanarBoxes& boxes) {
  DenseMaps maps(problem);
  const Gather::Phase& phase = gather.phases.front();
  const auto add = [&](const char* name, std::int64_t channels, const Dims& strides,
                       const std::array<std::int64_t, 3>& box) {
    maps.add(plane_map(problem, channels * gather.groups, phase.out_pixels(), strides, box), name,
             0);
  };
  add(maps.source(), gather.channels, gather.source_strides,
      {planar_line(problem.type()), boxes.lines.channels, boxes.images});
  maps.add(dense_filter_map(problem, gather, phase, boxes.lines, boxes.filter_rows), "w",
           phase.w_first);
  const std::array<std::int64_t, 3> slab{boxes.slab_pixels, boxes.slab_rows, 1};
  add(maps.result(), gather.rows, gather.out_strides, slab);
  if (problem.epilogue.residual) add("z", gather.rows, problem.z_strides, slab);
  return std::move(maps.all);
}

Refusal planar_wgrad_refusal(const ConvolutionProblem& problem, const Gather& gather,
                             const DeviceDescription& device) {
  const bool tf32 = problem.type() == KILN_DATA_FLOAT && problem.math == KILN_MATH_TF32;
  if (size_of(problem.type()) != 2 && !tf32)
    return cat("the data type is ", name_of(problem.type()),
               "; this engine takes f16, bf16, and f32 in TF32");
  if (auto refused = mma_refusal(problem, usual_reduction(problem), device)) return refused;
  if (auto refused = warpgroup_refusal(device)) return refused;
  if (auto refused = copy_engine_refusal(device)) return refused;
  if (auto refused = place_refusal(gather)) return refused;
  const Gather::Phase& phase = gather.phases.front();
  if (problem.batch * phase.out_pixels() > limit32 / 2)
    return cat(problem.batch * phase.out_pixels(), " pixels of dy; expected at most ", limit32 / 2);
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment,
               " bytes; expected 16, as the copy engine has it");
  for (const auto& [tensor, strides] :
       {std::pair("x", gather.source_strides), {"dy", gather.out_strides}})
    if (auto refused = tensor_refusal(tensor, strides, phase.pixels, problem.type()))
      return refused;
  if (gather.w_channel != 1 || gather.w_row % 2 != 0 || gather.channels % 2 != 0)
    return "the channels of dw are not contiguous, in pairs";
  return {};
}

Refusal planar_dy_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (size_of(problem.type()) != 2)
    return cat("dy has its channels first and x its channels last, and the data type is ",
               name_of(problem.type()), "; expected f16 or bf16");
  constexpr std::int64_t product_pixels = 16;  // of a wgmma
  const Gather::Phase& phase = gather.phases.front();
  if (auto refused = tensor_refusal("dy", gather.out_strides, phase.pixels, problem.type()))
    return refused;
  if (phase.out_pixels() % product_pixels != 0)
    return cat("dy has its channels first, in planes of ", phase.out_pixels(),
               " pixels; expected a multiple of ", product_pixels, ", or channels last");
  return {};
}

TensorMapSpec planar_dy_map(const ConvolutionProblem& problem, const Gather& gather) {
  return plane_map(problem, gather.rows * gather.groups, gather.phases.front().out_pixels(),
                   gather.out_strides,
                   {planar_line(problem.type()), planar_line(problem.type()), 1});
}

std::vector<TensorMapSpec> planar_wgrad_maps(const ConvolutionProblem& problem,
                                             const Gather& gather, std::int64_t channels,
                                             std::int64_t filters) {
  const std::int64_t plane = gather.phases.front().out_pixels(),
                     pixels = 128 / static_cast<std::int64_t>(size_of(problem.type()));
  return {plane_map(problem, gather.channels * gather.groups, plane, gather.source_strides,
                    {pixels, channels, 1}),
          plane_map(problem, gather.rows * gather.groups, plane, gather.out_strides,
                    {pixels, filters, 1})};
}

}  // namespace kiln
