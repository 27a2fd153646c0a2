#include "engines/conv/dense/planar.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/text.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector = 8;  // elements of 16 bytes
constexpr std::int64_t line_pixels = 64;

// Whether pixels of a channel lie side by side.
bool is_line(const Dims& strides, const Spatial& pixels) {
  std::int64_t next = 1;
  for (const int i : {2, 1, 0}) {
    if (pixels[i] == 1) continue;
    if (strides[2 + i] != next) return false;
    next *= pixels[i];
  }
  return true;
}

std::string tensor_refusal(const char* tensor, const Dims& strides, const Spatial& pixels) {
  if (!is_line(strides, pixels))
    return cat("the pixels of a channel of ", tensor,
               " do not lie side by side, as channels-first layout has them");
  for (const auto& [stride, what] : {std::pair(strides[1], "channel"), {strides[0], "image"}})
    if (stride % vector != 0)
      return cat("in ", tensor, " a ", what, " begins ", stride,
                 " elements after the one before; expected a multiple of ", vector);
  return "";
}

std::string filter_refusal(const Gather& gather) {
  const auto whole = [](std::int64_t stride) { return stride % vector == 0; };
  if ((gather.w_channel == 1 && whole(gather.w_row)) ||
      (gather.w_row == 1 && whole(gather.w_channel)))
    return "";
  return "in w neither channels nor filters are contiguous, in multiples of 16 bytes";
}

// {pixels, channels, N}.
TensorMapSpec plane_map(const ConvolutionProblem& problem, const Gather& gather,
                        std::int64_t channels, const Dims& strides,
                        const std::array<std::int64_t, 3>& box) {
  constexpr std::int64_t element = 2;  // bytes
  TensorMapSpec map;
  map.type = problem.type();
  map.rank = 3;
  map.sizes = {gather.phases.front().out_pixels(), channels, problem.batch};
  map.strides = {strides[1] * element, strides[0] * element};
  map.box = {box[0], box[1], box[2]};
  return map;
}

}  // namespace

std::string planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                           const DeviceDescription& device) {
  if (size_of(problem.type()) != 2)
    return cat("the data type is ", name_of(problem.type()), "; this engine takes f16 and bf16");
  if (std::string reason = dense_product_refusal(problem, gather, device); !reason.empty())
    return reason;
  const Gather::Phase& phase = gather.phases.front();
  if (gather.most_taps() != 1)
    return cat("the filter has ", gather.most_taps(), " taps; expected one");
  if (gather.phases.size() > 1 || gather.stride != Spatial{1, 1, 1} || phase.origin != Spatial{} ||
      phase.pixels != gather.source)
    return "a stride or padding, so that pixels of the output are not those of the input";
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  for (const auto& [tensor, strides] :
       {std::pair(dgrad ? "dy" : "x", gather.source_strides),
        {dgrad ? "dx" : "y", gather.out_strides},
        {"z", problem.epilogue.residual ? problem.z_strides : gather.out_strides}})
    if (std::string reason = tensor_refusal(tensor, strides, phase.pixels); !reason.empty())
      return reason;
  return filter_refusal(gather);
}

std::vector<LaunchSpec::Map> planar_maps(const ConvolutionProblem& problem, const Gather& gather,
                                         const PlanarBoxes& boxes) {
  DenseMaps maps(problem);
  const Gather::Phase& phase = gather.phases.front();
  const auto rows = [&](const Dims& strides) {
    return plane_map(problem, gather, gather.rows * gather.groups, strides,
                     {boxes.slab_pixels, boxes.slab_rows, 1});
  };
  maps.add(plane_map(problem, gather, gather.channels * gather.groups, gather.source_strides,
                     {line_pixels, boxes.lines.channels, boxes.images}),
           maps.source(), 0);
  maps.add(dense_filter_map(problem, gather, phase, boxes.lines, boxes.filter_rows), "w",
           phase.w_first);
  maps.add(rows(gather.out_strides), maps.result(), 0);
  if (problem.epilogue.residual) maps.add(rows(problem.z_strides), "z", 0);
  return std::move(maps.all);
}

}  // namespace kiln
