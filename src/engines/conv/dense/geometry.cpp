#include "engines/conv/dense/geometry.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_line_bytes = 128, least_line_bytes = 32;  // of TMA's swizzle modes

std::int64_t element_of(DataType type) { return static_cast<std::int64_t>(size_of(type)); }
// Element i (0: W, 1: H, 2: D) of values that are stored outermost first.
std::int64_t across(const Spatial& values, std::size_t i) { return values[2 - i]; }

std::int64_t reach(const Gather& gather, const Gather::Phase& phase, std::size_t i) {
  return (across(phase.taps, i) - 1) * across(gather.step, i);
}

std::string filter_refusal(const Gather& gather) {
  const std::int64_t vector = dense_vector(gather.type);
  const auto whole = [&](std::int64_t stride) { return stride % vector == 0; };
  const bool taps = std::all_of(gather.w_tap.begin(), gather.w_tap.end(), whole) &&
                    std::all_of(gather.phases.begin(), gather.phases.end(),
                                [&](const Gather::Phase& phase) { return whole(phase.w_first); });
  if (taps && gather.w_channel == 1 && whole(gather.w_row)) return "";
  if (taps && gather.w_row == 1 && whole(gather.w_channel)) {
    if (element_of(gather.type) == 2) return "";
    return "the channels of w are not contiguous; wgmma cannot transpose f32 operands";
  }
  return "in w neither channels nor filters are contiguous, in multiples of 16 bytes";
}

TensorMapSpec tiled(const ConvolutionProblem& problem, int rank) {
  TensorMapSpec map;
  map.type = problem.type();
  map.rank = rank;
  return map;
}

// Sets the stride of dimension i. A dimension of size 1 gets the stride of a dense tensor, because
// maps must not have a stride of 0.
void set_stride(TensorMapSpec& map, std::size_t i, std::int64_t elements) {
  const std::int64_t element = element_of(map.type);
  const std::int64_t dense =
      i == 1 ? round_up(map.sizes[0] * element, 16) : map.strides[i - 2] * map.sizes[i - 1];
  map.strides[i - 1] = map.sizes[i] == 1 ? dense : elements * element;
}

// Sets the strides of space and images. The map's sizes have to be set before.
void set_strides(TensorMapSpec& map, const Dims& strides) {
  for (int i = 0; i < map.space(); ++i) set_stride(map, 1 + i, strides[4 - i]);
  set_stride(map, map.rank - 1, strides[0]);
}

// Sets the sizes {channels, W, H (, D), N}.
void set_sizes(TensorMapSpec& map, std::int64_t channels, const Spatial& places,
               std::int64_t batch) {
  map.sizes[0] = channels;
  for (int i = 0; i < map.space(); ++i) map.sizes[1 + i] = across(places, i);
  map.sizes[map.rank - 1] = batch;
}

}  // namespace

TensorMapSpec dense_filter_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const DenseLines& lines,
                               std::int64_t rows) {
  const bool by_channels = filter_by_channels(gather);
  TensorMapSpec map = tiled(problem, 2 + dense_space(gather));
  const int last = map.rank - 1;
  // The groups follow each other along the rows of w in the forward pass, else along its channels.
  const bool in_rows = problem.pass == ConvolutionPass::fprop;
  set_sizes(map, gather.channels * (in_rows ? 1 : gather.groups), phase.taps,
            gather.rows * (in_rows ? gather.groups : 1));
  if (by_channels) std::swap(map.sizes[0], map.sizes[last]);
  for (int i = 0; i < map.space(); ++i) set_stride(map, 1 + i, across(gather.w_tap, i));
  set_stride(map, last, by_channels ? gather.w_channel : gather.w_row);
  map.box = {by_channels ? lines.rows : lines.channels, 1, 1, 1, 1};
  map.box[last] = by_channels ? lines.channels : rows;
  return map;
}

std::int64_t dense_vector(DataType type) { return 16 / element_of(type); }

int dense_space(const Gather& gather) {
  return gather.source[0] != 1 || gather.largest_pixels()[0] != 1 || gather.largest_taps()[0] > 1
             ? 3
             : 2;
}

DenseLines dense_lines(const ConvolutionProblem& problem, const Gather& gather, std::int64_t rows) {
  const std::int64_t most = most_line_bytes / element_of(problem.type()),
                     least = least_line_bytes / element_of(problem.type());
  DenseLines lines{most, rows > 0 ? std::min(rows, most) : most};
  // Few channels waste most of a 128-byte line. In two dimensions the whole line stays, because the
  // kernels were measured with it.
  const auto too_wide = [&] {
    return gather.groups > 1 ? gather.channels % lines.channels != 0
                             : dense_space(gather) == 3 && gather.channels <= lines.channels / 2;
  };
  while (lines.channels > least && too_wide()) lines.channels /= 2;
  return lines;
}

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

DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase) {
  DensePhase out;
  for (std::size_t i = 0; i < 3; ++i) {
    out.lower[i] = across(phase.origin, i) + std::min<std::int64_t>(reach(gather, phase, i), 0);
    out.upper[i] = out.lower[i] + (across(phase.pixels, i) - 1) * across(gather.stride, i) -
                   (across(gather.source, i) - 1);
  }
  return out;
}

std::string dense_stride_refusal(const char* tensor, DataType type, const Dims& strides) {
  return vector_strides_refusal(tensor, strides, dense_vector(type));
}

std::string dense_phase_refusal(const Gather& gather, const Gather::Phase& phase) {
  if (phase.tap_count() == 0) return "";
  const DensePhase places = dense_phase(gather, phase);
  const int space = dense_space(gather);
  const std::int64_t corners = TensorMapSpec::most_corner(space),
                     offsets = TensorMapSpec::most_offset(space);
  for (int i = 0; i < space; ++i) {
    for (const std::int64_t corner : {places.lower[i], places.upper[i]})
      if (corner < -corners - 1 || corner > corners)
        return cat("pixels begin or end ", std::abs(corner),
                   " positions from an edge of the source; expected at most ", corners);
    if (std::abs(reach(gather, phase, i)) > offsets)
      return cat("the filter reaches over ", std::abs(reach(gather, phase, i)),
                 " positions; expected at most ", offsets);
  }
  return "";
}

std::string dense_step_refusal(const Gather& gather) {
  constexpr std::int64_t most = 8;
  for (const std::int64_t stride : gather.stride)
    if (stride > most) return cat("a stride is ", stride, "; expected at most ", most);
  return "";
}

TensorMapSpec dense_source_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const PixelBox& box) {
  const DensePhase places = dense_phase(gather, phase);
  TensorMapSpec map = tiled(problem, 2 + dense_space(gather));
  map.mode = TensorMapSpec::Mode::im2col;
  set_sizes(map, gather.channels * gather.groups, gather.source, problem.batch);
  set_strides(map, gather.source_strides);
  map.box = {box.channels, box.pixels};
  for (int i = 0; i < map.space(); ++i) {
    map.lower[i] = places.lower[i];
    map.upper[i] = places.upper[i];
    map.steps[i] = across(gather.stride, i);
  }
  return map;
}

TensorMapSpec dense_pixel_map(const ConvolutionProblem& problem, const Gather& gather,
                              const Gather::Phase& phase, const Dims& strides, bool line,
                              const PixelBox& box) {
  TensorMapSpec map = tiled(problem, line ? 2 : 2 + dense_space(gather));
  map.box = {box.channels, box.pixels};
  if (line) {
    map.sizes = {gather.rows * gather.groups, problem.batch * phase.out_pixels()};
    const std::int64_t stride = phase.pixels[2] > 1   ? strides[4]
                                : phase.pixels[1] > 1 ? strides[3]
                                : phase.pixels[0] > 1 ? strides[2]
                                                      : strides[0];
    set_stride(map, 1, stride);
    return map;
  }
  map.mode = TensorMapSpec::Mode::im2col;
  set_sizes(map, gather.rows * gather.groups, phase.pixels, problem.batch);
  set_strides(map, strides);
  return map;
}

bool filter_by_channels(const Gather& gather) { return gather.w_channel != 1; }

// Products between two promotions. The tensor cores round sums toward zero: sums of numbers of one
// sign lose 3e-3 over 401408 products, so 1.2e-4 over this many, a quarter of the rounding of f16
// and TF32.
constexpr std::int64_t dense_run = 16384;

std::int64_t dense_promotion(std::int64_t channels) { return dense_run / channels; }

void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps,
                         std::int64_t channels) {
  const std::int64_t run = dense_promotion(channels);
  constants.push_back(
      {"PROMOTE", steps > run ? run : 0, "steps of the reduction between promotions"});
  constants.push_back({"PROMOTE_LOCAL", steps > run, ""});
}

bool in_line(const Dims& strides, const Spatial& pixels) {
  std::int64_t next = 0;  // the stride that the next dimension must have; 0: any
  for (const auto& [size, stride] :
       {std::pair(pixels[2], strides[4]), {pixels[1], strides[3]}, {pixels[0], strides[2]}}) {
    if (size == 1) continue;
    if (next != 0 && stride != next) return false;
    next = stride * size;
  }
  return next == 0 || strides[0] == next;  // required at every batch size, 1 included
}

std::string dense_type_refusal(const ConvolutionProblem& problem) {
  const bool in_tf32 = problem.type() == KILN_DATA_FLOAT && problem.math == KILN_MATH_TF32;
  if (size_of(problem.type()) == 2 || in_tf32) return "";
  return cat("the data type is ", name_of(problem.type()),
             "; this engine takes f16, bf16 and, in TF32, f32");
}

std::string copy_engine_refusal(const DeviceDescription& device) {
  constexpr int least_driver = 12000;
  if (device.driver_version != 0 && device.driver_version < least_driver)
    return cat("the CUDA driver's version is ", device.driver_version, "; tensor maps need ",
               least_driver, " (CUDA 12.0) or later");
  return "";
}

std::string dense_product_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                  const DeviceDescription& device) {
  const std::int64_t reduction = gather.channels * gather.most_taps();
  if (std::string reason = dense_type_refusal(problem); !reason.empty()) return reason;
  if (auto refused = mma_refusal(problem, reduction, device)) return std::move(refused->reason);
  if (auto refused = warpgroup_refusal(device)) return std::move(refused->reason);
  if (std::string reason = copy_engine_refusal(device); !reason.empty()) return reason;
  if (const DenseLines lines = dense_lines(problem, gather, 0);
      gather.groups > 1 && gather.channels % lines.channels != 0)
    return cat(gather.channels, " input channels a group; expected a multiple of ", lines.channels,
               ", which are multiplied at once");
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment,
               " bytes; expected 16, as the copy engine has it");
  for (const Gather::Phase& phase : gather.phases)
    if (problem.batch * phase.out_pixels() > limit32 / 2)
      return cat(problem.batch * phase.out_pixels(), " pixels; expected at most ", limit32 / 2);
  return "";
}

std::string dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device) {
  if (std::string reason = dense_product_refusal(problem, gather, device); !reason.empty())
    return reason;
  if (gather.phases.size() > std::size(DenseParams{}.tiles))
    return cat("a data gradient of ", gather.phases.size(),
               " phases, positions modulo the stride; ", "expected at most ",
               std::size(DenseParams{}.tiles));
  if (gather.most_taps() == 0) return "no tap of the filter meets the input";
  for (const Gather::Phase& phase : gather.phases)
    if (std::string reason = dense_phase_refusal(gather, phase); !reason.empty()) return reason;
  if (std::string reason = dense_step_refusal(gather); !reason.empty()) return reason;
  const std::int64_t vector = dense_vector(problem.type());
  for (const auto& [count, what] : {std::pair(gather.channels, "input"), {gather.rows, "output"}})
    if (count % vector != 0)
      return cat(count, " ", what, " channels; expected a multiple of ", vector);
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  if (std::string reason =
          dense_stride_refusal(dgrad ? "dy" : "x", problem.type(), gather.source_strides);
      !reason.empty())
    return reason;
  return filter_refusal(gather);
}

std::int64_t dense_map_count(const ConvolutionProblem& problem, const Gather& gather) {
  const auto phases = static_cast<std::int64_t>(gather.phases.size());
  if (dense_store_pixels(problem, gather) > 0) return phases * 2;
  const auto& gradient = problem.epilogue.gradient;
  return phases * 3 + (problem.epilogue.residual ? 1 : 0) +
         (gradient ? 1 + (gradient->residual ? 1 : 0) : 0);
}

void DenseMaps::add(const TensorMapSpec& spec, std::string_view name, std::int64_t first) {
  const auto found = std::find_if(operands_.begin(), operands_.end(),
                                  [&](const Operand& operand) { return operand.name == name; });
  const std::size_t offset = sizeof(DenseParams) + all.size() * sizeof(TensorMap);
  all.push_back({spec, static_cast<std::uint8_t>(found - operands_.begin()),
                 first * element_of(spec.type), static_cast<std::uint16_t>(offset)});
}

const char* DenseMaps::source() const {
  const bool dgrad = operands_.front().name == std::string_view("w");
  return operands_[dgrad ? 1 : 0].name;
}

namespace {

// A tiled map with sizes {channels, W, H (, D), N} and a box of {channels, columns, rows}.
TensorMapSpec box_map(const ConvolutionProblem& problem, int space, std::int64_t channels,
                      const Spatial& pixels, const Dims& strides,
                      const std::array<std::int64_t, 3>& box) {
  TensorMapSpec map = tiled(problem, 2 + space);
  set_sizes(map, channels, pixels, problem.batch);
  set_strides(map, strides);
  map.box = {box[0], box[1], box[2], 1, 1};
  return map;
}

}  // namespace

std::vector<LaunchSpec::Map> dense_maps(const ConvolutionProblem& problem, const Gather& gather,
                                        const DenseBoxes& boxes) {
  DenseMaps maps(problem);
  const bool by_threads = dense_store_pixels(problem, gather) > 0;
  const PixelBox slab{boxes.result_line, boxes.slab_pixels};
  Gather filters = gather;
  if (boxes.joined) filters.rows *= static_cast<std::int64_t>(gather.phases.size());
  const bool line = std::all_of(
      gather.phases.begin(), gather.phases.end(),
      [&](const Gather::Phase& phase) { return in_line(gather.out_strides, phase.pixels); });
  for (const Gather::Phase& phase : gather.phases) {
    // A phase without taps copies no source and no filter, but the maps have to be valid.
    const Gather::Phase& read = phase.tap_count() == 0 ? gather.phases.front() : phase;
    maps.add(dense_source_map(problem, gather, read, {boxes.lines.channels, boxes.pixels}),
             maps.source(), 0);
    maps.add(dense_filter_map(problem, filters, read, boxes.lines, boxes.filter_rows), "w",
             read.w_first);
    if (!by_threads)
      maps.add(dense_pixel_map(problem, gather, phase, gather.out_strides, line, slab),
               maps.result(), phase.out_first);
  }
  if (problem.epilogue.residual && !by_threads) {
    const Gather::Phase& phase = gather.phases.front();
    maps.add(dense_pixel_map(problem, gather, phase, problem.z_strides,
                             in_line(problem.z_strides, phase.pixels), slab),
             "z", 0);
  }
  if (const auto& gradient = problem.epilogue.gradient) {
    const auto add = [&](const Dims& strides, const char* name) {
      maps.add(dense_pixel_map(problem, gather, gather.phases.front(), strides, line, slab), name,
               0);
    };
    add(problem.norm_x_strides, "norm_x");
    if (gradient->residual) add(problem.norm_residual_strides, "norm_residual");
  }
  return std::move(maps.all);
}

std::vector<LaunchSpec::Map> dense_patch_maps(const ConvolutionProblem& problem,
                                              const Gather& gather, const PatchBoxes& boxes) {
  constexpr std::int64_t rows = 64, columns = 8;  // rows of a tile, columns of a patch
  const Gather::Phase& phase = gather.phases.front();
  const auto pixels = [&](const Dims& strides) {
    return box_map(problem, dense_space(gather), gather.rows * gather.groups, phase.pixels, strides,
                   {boxes.lines.rows, columns, boxes.rows});
  };
  DenseMaps maps(problem);
  maps.add(
      box_map(problem, dense_space(gather), gather.channels * gather.groups, gather.source,
              gather.source_strides, {boxes.lines.channels, boxes.halo_columns, boxes.halo_rows}),
      maps.source(), 0);
  maps.add(dense_filter_map(problem, gather, phase, boxes.lines, rows), "w", phase.w_first);
  maps.add(pixels(gather.out_strides), maps.result(), phase.out_first);
  if (problem.epilogue.residual) maps.add(pixels(problem.z_strides), "z", 0);
  return std::move(maps.all);
}

void add_dense_patches(LaunchSpec& launch, const ConvolutionProblem& problem) {
  const std::vector<Operand> operands = operands_of(problem);
  const auto add = [&](std::string_view name, std::size_t offset) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].name == name)
        launch.patches.push_back({LaunchSpec::Hole::operand, static_cast<std::uint8_t>(i),
                                  static_cast<std::uint16_t>(offset)});
  };
  add("bias", offsetof(DenseParams, bias));
  launch.patches.push_back({LaunchSpec::Hole::alpha, 0, offsetof(DenseParams, alpha)});
  launch.patches.push_back({LaunchSpec::Hole::beta, 0, offsetof(DenseParams, beta)});
  add(operands.back().name, offsetof(DenseParams, out));
  add(problem.epilogue.residual ? "z" : operands.back().name, offsetof(DenseParams, z));
}

}  // namespace kiln
