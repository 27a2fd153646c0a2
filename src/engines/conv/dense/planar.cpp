#include "engines/conv/dense/planar.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/wgrad/product.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector = 8;  // elements of 16 bytes
constexpr std::int64_t line_pixels = 64, line_channels = 64;

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
  const std::int64_t plane = pixels[0] * pixels[1] * pixels[2];
  if (strides[1] < plane)
    return cat("in ", tensor, " a channel begins ", strides[1],
               " elements after the one before; expected at least its ", plane, " pixels");
  if (strides[0] % vector != 0)
    return cat("in ", tensor, " an image begins ", strides[0],
               " elements after the one before; expected a multiple of ", vector);
  return "";
}

std::int64_t classes_of(std::int64_t channel_stride) {
  return vector / std::gcd(vector, channel_stride);
}

std::string filter_refusal(const Gather& gather) {
  const auto whole = [](std::int64_t stride) { return stride % vector == 0; };
  if ((gather.w_channel == 1 && whole(gather.w_row)) ||
      (gather.w_row == 1 && whole(gather.w_channel)))
    return "";
  return "in w neither channels nor filters are contiguous, in multiples of 16 bytes";
}

constexpr std::int64_t element = 2;  // bytes

TensorMapSpec tiled_map(const ConvolutionProblem& problem, const std::array<std::int64_t, 3>& box) {
  TensorMapSpec map;
  map.type = problem.type();
  map.rank = 3;
  map.box = {box[0], box[1], box[2]};
  return map;
}

// {pixels, channels, N} of every `classes`-th channel from `first` on, whose pixels begin behind
// those of the channels before it.
TensorMapSpec plane_map(const ConvolutionProblem& problem, std::int64_t channels,
                        std::int64_t plane, const Dims& strides, std::int64_t first,
                        std::int64_t classes, const std::array<std::int64_t, 3>& box) {
  TensorMapSpec map = tiled_map(problem, box);
  // Of few channels some classes have none: no box of theirs meets the map's one place.
  map.sizes = {first < channels ? first * strides[1] + plane : 1,
               std::max<std::int64_t>(ceil_div(channels - first, classes), 1), problem.batch};
  map.strides = {classes * strides[1] * element, strides[0] * element};
  return map;
}

// Rows that lie side by side, of the channels of each class in turn.
TensorMapSpec class_filter_map(const ConvolutionProblem& problem, const Gather& gather,
                               std::int64_t classes, const DenseLines& lines) {
  TensorMapSpec map = tiled_map(problem, {lines.rows, lines.channels / classes, classes});
  map.sizes = {gather.rows, gather.channels * gather.groups / classes, classes};
  map.strides = {classes * gather.w_channel * element, gather.w_channel * element};
  return map;
}

// Of images as they lie.
std::string place_refusal(const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  if (gather.most_taps() != 1)
    return cat("the filter has ", gather.most_taps(), " taps; expected one");
  if (gather.phases.size() > 1 || gather.stride != Spatial{1, 1, 1} || phase.origin != Spatial{} ||
      phase.pixels != gather.source)
    return "padding or, of a data gradient, a stride, so that pixels of the output are not those "
           "of "
           "the input";
  return "";
}

std::string type_refusal(const ConvolutionProblem& problem) {
  if (size_of(problem.type()) == 2) return "";
  return cat("the data type is ", name_of(problem.type()), "; this engine takes f16 and bf16");
}

}  // namespace

std::string planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                           const DeviceDescription& device) {
  if (std::string reason = type_refusal(problem); !reason.empty()) return reason;
  if (std::string reason = dense_product_refusal(problem, gather, device); !reason.empty())
    return reason;
  if (std::string reason = place_refusal(gather); !reason.empty()) return reason;
  const Gather::Phase& phase = gather.phases.front();
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  for (const auto& [tensor, strides] :
       {std::pair(dgrad ? "dy" : "x", gather.source_strides),
        {dgrad ? "dx" : "y", gather.out_strides},
        {"z", problem.epilogue.residual ? problem.z_strides : gather.out_strides}})
    if (std::string reason = tensor_refusal(tensor, strides, phase.pixels); !reason.empty())
      return reason;
  if (std::string reason = filter_refusal(gather); !reason.empty()) return reason;
  const std::int64_t classes = planar_classes(problem, gather);
  if (classes == 1) return "";
  if (gather.channels % classes != 0)
    return cat(gather.channels, " input channels, of planes that begin at multiples of 16 bytes ",
               "every ", classes, " of them; expected a multiple of that");
  if (const DenseLines lines = planar_lines(problem, gather, 0); lines.channels != line_channels)
    return cat(gather.channels, " input channels a group, of planes that begin at no multiples of ",
               "16 bytes; expected a multiple of ", line_channels);
  return "";
}

std::string planar_only_by_name(const Problem& any) {
  const auto& problem = std::get<ConvolutionProblem>(any);
  std::int64_t classes =
      std::max(classes_of(problem.x_strides[1]), classes_of(problem.y_strides[1]));
  if (problem.epilogue.residual) classes = std::max(classes, classes_of(problem.z_strides[1]));
  if (classes == 1) return "";
  return "planes that begin at no multiples of 16 bytes, whose copies an H200 stopped with an "
         "illegal instruction: served only when the engine is named";
}

DenseLines planar_lines(const ConvolutionProblem& problem, const Gather& gather,
                        std::int64_t rows) {
  DenseLines lines = dense_lines(problem, gather, rows);
  if (gather.groups == 1) lines.channels = line_channels;
  return lines;
}

std::int64_t planar_classes(const ConvolutionProblem& problem, const Gather& gather) {
  return std::max({classes_of(gather.source_strides[1]), classes_of(gather.out_strides[1]),
                   classes_of(problem.epilogue.residual ? problem.z_strides[1] : vector)});
}

std::vector<LaunchSpec::Map> planar_maps(const ConvolutionProblem& problem, const Gather& gather,
                                         const PlanarBoxes& boxes) {
  DenseMaps maps(problem);
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t classes = planar_classes(problem, gather);
  const auto add = [&](const char* name, std::int64_t channels, const Dims& strides,
                       const std::array<std::int64_t, 3>& box) {
    for (std::int64_t i = 0; i < classes; ++i)
      maps.add(plane_map(problem, channels * gather.groups, phase.out_pixels(), strides, i, classes,
                         {box[0], box[1] / classes, box[2]}),
               name, 0);
  };
  add(maps.source(), gather.channels, gather.source_strides,
      {line_pixels, boxes.lines.channels, boxes.images});
  maps.add(classes > 1 && filter_by_channels(gather)
               ? class_filter_map(problem, gather, classes, boxes.lines)
               : dense_filter_map(problem, gather, phase, boxes.lines, boxes.filter_rows),
           "w", phase.w_first);
  const std::array<std::int64_t, 3> slab{boxes.slab_pixels, boxes.slab_rows, 1};
  add(maps.result(), gather.rows, gather.out_strides, slab);
  if (problem.epilogue.residual) add("z", gather.rows, problem.z_strides, slab);
  return std::move(maps.all);
}

std::string planar_wgrad_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                 const DeviceDescription& device) {
  if (std::string reason = type_refusal(problem); !reason.empty()) return reason;
  if (auto refused = mma_refusal(problem, usual_reduction(problem), device))
    return std::move(refused->reason);
  if (auto refused = warpgroup_refusal(device)) return std::move(refused->reason);
  if (std::string reason = copy_engine_refusal(device); !reason.empty()) return reason;
  if (std::string reason = place_refusal(gather); !reason.empty()) return reason;
  const Gather::Phase& phase = gather.phases.front();
  if (problem.batch * phase.out_pixels() > limit32 / 2)
    return cat(problem.batch * phase.out_pixels(), " pixels of dy; expected at most ", limit32 / 2);
  if (problem.alignment < vector * element)
    return cat("the alignment is ", problem.alignment,
               " bytes; expected 16, as the copy engine has it");
  for (const auto& [tensor, strides] :
       {std::pair("x", gather.source_strides), {"dy", gather.out_strides}})
    if (std::string reason = tensor_refusal(tensor, strides, phase.pixels); !reason.empty())
      return reason;
  if (gather.w_channel != 1 || gather.w_row % 2 != 0 || gather.channels % 2 != 0)
    return "the channels of dw are not contiguous, in pairs";
  const std::int64_t classes = planar_classes(problem, gather);
  for (const auto& [count, what] : {std::pair(gather.channels, "input"), {gather.rows, "output"}})
    if (gather.groups > 1 && count % classes != 0)
      return cat(count, " ", what, " channels a group, of planes that begin at multiples of 16 ",
                 "bytes every ", classes, " of them; expected a multiple of that");
  return "";
}

std::string planar_dy_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (std::string reason = type_refusal(problem); !reason.empty()) return reason;
  const Gather::Phase& phase = gather.phases.front();
  if (std::string reason = tensor_refusal("dy", gather.out_strides, phase.pixels); !reason.empty())
    return reason;
  if (classes_of(gather.out_strides[1]) > 1 || phase.out_pixels() % line_pixels != 0)
    return cat("dy has its channels first, in planes of ", phase.out_pixels(),
               " pixels; expected a multiple of ", line_pixels, ", or channels last");
  return "";
}

TensorMapSpec planar_dy_map(const ConvolutionProblem& problem, const Gather& gather) {
  return plane_map(problem, gather.rows * gather.groups, gather.phases.front().out_pixels(),
                   gather.out_strides, 0, 1, {line_pixels, line_channels, 1});
}

std::vector<TensorMapSpec> planar_wgrad_maps(const ConvolutionProblem& problem,
                                             const Gather& gather, std::int64_t channels,
                                             std::int64_t filters) {
  std::vector<TensorMapSpec> maps;
  const std::int64_t classes = planar_classes(problem, gather),
                     plane = gather.phases.front().out_pixels();
  for (std::int64_t i = 0; i < classes; ++i)
    maps.push_back(plane_map(problem, gather.channels * gather.groups, plane, gather.source_strides,
                             i, classes, {line_pixels, channels / classes, 1}));
  for (std::int64_t i = 0; i < classes; ++i)
    maps.push_back(plane_map(problem, gather.rows * gather.groups, plane, gather.out_strides, i,
                             classes, {line_pixels, filters / classes, 1}));
  return maps;
}

}  // namespace kiln
