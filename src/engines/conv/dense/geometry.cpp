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

constexpr std::int64_t element = 2;            // bytes
constexpr std::int64_t vector = 16 / element;  // elements that strides are multiples of
constexpr std::int64_t box_channels = 64;      // 128 bytes, what a swizzle permutes

// {0: W, 1: H} of values that are outermost first.
std::int64_t across(const Spatial& values, std::size_t i) { return values[2 - i]; }

std::int64_t reach(const Gather& gather, const Gather::Phase& phase, std::size_t i) {
  return (across(phase.taps, i) - 1) * across(gather.step, i);
}

std::string filter_refusal(const Gather& gather) {
  const auto whole = [](std::int64_t stride) { return stride % vector == 0; };
  const bool taps = whole(gather.w_tap[1]) && whole(gather.w_tap[2]) &&
                    std::all_of(gather.phases.begin(), gather.phases.end(),
                                [&](const Gather::Phase& phase) { return whole(phase.w_first); });
  if (taps && gather.w_channel == 1 && whole(gather.w_row)) return "";
  if (taps && gather.w_row == 1 && whole(gather.w_channel)) return "";
  return "in w neither channels nor filters are contiguous, in multiples of 16 bytes";
}

TensorMapSpec tiled(const ConvolutionProblem& problem, int rank) {
  TensorMapSpec map;
  map.type = problem.type;
  map.rank = rank;
  return map;
}

// Sizes of 1 have any stride: that of dense tensors, for maps have no stride of 0.
void set_stride(TensorMapSpec& map, std::size_t i, std::int64_t elements) {
  const std::int64_t dense =
      i == 1 ? round_up(map.sizes[0], vector) * element : map.strides[i - 2] * map.sizes[i - 1];
  map.strides[i - 1] = map.sizes[i] == 1 ? dense : elements * element;
}

TensorMapSpec filter_map(const ConvolutionProblem& problem, const Gather& gather,
                         const Gather::Phase& phase, std::int64_t rows) {
  const bool by_channels = filter_by_channels(gather);
  TensorMapSpec map = tiled(problem, 4);
  map.sizes = {gather.channels, phase.taps[2], phase.taps[1], gather.rows};
  if (by_channels) std::swap(map.sizes[0], map.sizes[3]);
  set_stride(map, 1, gather.w_tap[2]);
  set_stride(map, 2, gather.w_tap[1]);
  set_stride(map, 3, by_channels ? gather.w_channel : gather.w_row);
  map.box = {box_channels, 1, 1, by_channels ? box_channels : rows};
  return map;
}

}  // namespace

DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase) {
  DensePhase out;
  for (std::size_t i = 0; i < 2; ++i) {
    out.lower[i] = across(phase.origin, i) + std::min<std::int64_t>(reach(gather, phase, i), 0);
    out.upper[i] = out.lower[i] + (across(phase.pixels, i) - 1) * across(gather.stride, i) -
                   (across(gather.source, i) - 1);
  }
  return out;
}

std::string dense_stride_refusal(const char* tensor, const Dims& strides) {
  return vector_strides_refusal(tensor, strides, vector);
}

std::string dense_phase_refusal(const Gather& gather, const Gather::Phase& phase) {
  if (phase.tap_count() == 0) return "";
  const DensePhase places = dense_phase(gather, phase);
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::int64_t corner : {places.lower[i], places.upper[i]})
      if (corner < -128 || corner > 127)
        return cat("pixels begin or end ", std::abs(corner),
                   " places from an edge of the source; expected at most 127");
    if (std::abs(reach(gather, phase, i)) > 255)
      return cat("the filter reaches over ", std::abs(reach(gather, phase, i)),
                 " places; expected at most 255");
  }
  return "";
}

TensorMapSpec dense_source_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, std::int64_t pixels) {
  const DensePhase places = dense_phase(gather, phase);
  TensorMapSpec map = tiled(problem, 4);
  map.mode = TensorMapSpec::Mode::im2col;
  map.sizes = {gather.channels, gather.source[2], gather.source[1], problem.batch};
  set_stride(map, 1, gather.source_strides[4]);
  set_stride(map, 2, gather.source_strides[3]);
  set_stride(map, 3, gather.source_strides[0]);
  map.box = {box_channels, pixels};
  map.lower = places.lower;
  map.upper = places.upper;
  map.steps = {gather.stride[2], gather.stride[1]};
  return map;
}

TensorMapSpec dense_pixel_map(const ConvolutionProblem& problem, const Gather& gather,
                              const Gather::Phase& phase, const Dims& strides, bool line,
                              std::int64_t pixels) {
  TensorMapSpec map = tiled(problem, line ? 2 : 4);
  map.box = {box_channels, pixels};
  if (line) {
    map.sizes = {gather.rows, problem.batch * phase.pixels[1] * phase.pixels[2]};
    const std::int64_t stride = phase.pixels[2] > 1   ? strides[4]
                                : phase.pixels[1] > 1 ? strides[3]
                                                      : strides[0];
    set_stride(map, 1, stride);
    return map;
  }
  map.mode = TensorMapSpec::Mode::im2col;
  map.sizes = {gather.rows, phase.pixels[2], phase.pixels[1], problem.batch};
  set_stride(map, 1, strides[4]);
  set_stride(map, 2, strides[3]);
  set_stride(map, 3, strides[0]);
  return map;
}

bool filter_by_channels(const Gather& gather) { return gather.w_channel != 1; }

// The tensor cores round sums toward zero: of numbers of one sign they lose 3e-3 over 401408
// products, and so 1.2e-4 over a run of these, a quarter of what f16 rounds.
void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps) {
  constexpr std::int64_t run = 256;
  constants.push_back({"PROMOTE", steps > run ? run : 0, "steps"});
  constants.push_back({"PROMOTE_LOCAL", steps > run, ""});
}

bool in_line(const Dims& strides, const Spatial& pixels) {
  std::int64_t next = 0;  // what the next stride must be; 0: any
  for (const auto& [size, stride] : {std::pair(pixels[2], strides[4]), {pixels[1], strides[3]}}) {
    if (size == 1) continue;
    if (next != 0 && stride != next) return false;
    next = stride * size;
  }
  return next == 0 || strides[0] == next;  // whatever the number of images
}

std::string copy_engine_refusal(const DeviceDescription& device) {
  constexpr int least_driver = 12000;
  if (device.driver_version != 0 && device.driver_version < least_driver)
    return "the CUDA driver knows no tensor maps; expected one of CUDA 12.0 or later";
  return "";
}

std::string dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device) {
  const std::int64_t reduction = gather.channels * gather.most_taps();
  if (size_of(problem.type) != 2)
    return cat("the data type is ", name_of(problem.type), "; this engine takes f16 and bf16");
  if (auto refused = mma_refusal(problem, reduction, device)) return std::move(refused->reason);
  if (auto refused = warpgroup_refusal(device)) return std::move(refused->reason);
  if (std::string reason = copy_engine_refusal(device); !reason.empty()) return reason;
  if (gather.groups != 1) return cat(gather.groups, " groups; this engine takes one");
  if (gather.phases.size() > std::size(DenseParams{}.tiles))
    return cat("a data gradient of ", gather.phases.size(),
               " phases, positions modulo the stride; ", "expected at most ",
               std::size(DenseParams{}.tiles));
  if (gather.most_taps() == 0) return "no tap of the filter meets the input";
  for (const Gather::Phase& phase : gather.phases) {
    if (gather.source[0] != 1 || phase.pixels[0] != 1 || phase.taps[0] > 1)
      return "three dimensions of space; this engine takes one and two";
    if (std::string reason = dense_phase_refusal(gather, phase); !reason.empty()) return reason;
    if (problem.batch * phase.out_pixels() > limit32 / 2)
      return cat(problem.batch * phase.out_pixels(), " pixels; expected at most ", limit32 / 2);
  }
  for (const std::size_t i : {1, 2})
    if (constexpr std::int64_t most = 8; gather.stride[i] > most)
      return cat("a stride is ", gather.stride[i], "; expected at most ", most);
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment,
               " bytes; expected 16, as the copy engine has it");
  for (const auto& [count, what] : {std::pair(gather.channels, "input"), {gather.rows, "output"}})
    if (count % vector != 0)
      return cat(count, " ", what, " channels; expected a multiple of ", vector);
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  if (std::string reason = dense_stride_refusal(dgrad ? "dy" : "x", gather.source_strides);
      !reason.empty())
    return reason;
  if (std::string reason = dense_stride_refusal(dgrad ? "dx" : "y", gather.out_strides);
      !reason.empty())
    return reason;
  if (problem.epilogue.residual)
    if (std::string reason = dense_stride_refusal("z", problem.z_strides); !reason.empty())
      return reason;
  return filter_refusal(gather);
}

std::int64_t dense_map_count(const ConvolutionProblem& problem, const Gather& gather) {
  return static_cast<std::int64_t>(gather.phases.size()) * 3 + (problem.epilogue.residual ? 1 : 0);
}

namespace {

class Maps {
 public:
  explicit Maps(const ConvolutionProblem& problem) : operands_(operands_of(problem)) {}

  // Of the named operand, from an element on.
  void add(const TensorMapSpec& spec, std::string_view name, std::int64_t first) {
    const auto found = std::find_if(operands_.begin(), operands_.end(),
                                    [&](const Operand& operand) { return operand.name == name; });
    const std::size_t offset = sizeof(DenseParams) + all.size() * sizeof(TensorMap);
    all.push_back({spec, static_cast<std::uint8_t>(found - operands_.begin()), first * element,
                   static_cast<std::uint16_t>(offset)});
  }
  const char* result() const { return operands_.back().name; }

  std::vector<LaunchSpec::Map> all{};

 private:
  std::vector<Operand> operands_;
};

// {C, W, H, N}, as boxes of so many columns and rows of an image.
TensorMapSpec box_map(const ConvolutionProblem& problem, std::int64_t channels,
                      const Spatial& pixels, const Dims& strides, std::int64_t columns,
                      std::int64_t rows) {
  TensorMapSpec map = tiled(problem, 4);
  map.sizes = {channels, pixels[2], pixels[1], problem.batch};
  set_stride(map, 1, strides[4]);
  set_stride(map, 2, strides[3]);
  set_stride(map, 3, strides[0]);
  map.box = {box_channels, columns, rows, 1};
  return map;
}

}  // namespace

std::vector<LaunchSpec::Map> dense_maps(const ConvolutionProblem& problem, const Gather& gather,
                                        const DenseBoxes& boxes) {
  Maps maps(problem);
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  const bool line = std::all_of(
      gather.phases.begin(), gather.phases.end(),
      [&](const Gather::Phase& phase) { return in_line(gather.out_strides, phase.pixels); });
  for (const Gather::Phase& phase : gather.phases) {
    // Of a phase without taps no copy asks for these.
    const Gather::Phase& read = phase.tap_count() == 0 ? gather.phases.front() : phase;
    maps.add(dense_source_map(problem, gather, read, boxes.pixels), dgrad ? "dy" : "x", 0);
    maps.add(filter_map(problem, gather, read, boxes.filter_rows), "w", read.w_first);
    maps.add(dense_pixel_map(problem, gather, phase, gather.out_strides, line, boxes.slab_pixels),
             maps.result(), phase.out_first);
  }
  if (problem.epilogue.residual) {
    const Gather::Phase& phase = gather.phases.front();
    maps.add(dense_pixel_map(problem, gather, phase, problem.z_strides,
                             in_line(problem.z_strides, phase.pixels), boxes.slab_pixels),
             "z", 0);
  }
  return std::move(maps.all);
}

std::vector<LaunchSpec::Map> dense_patch_maps(const ConvolutionProblem& problem,
                                              const Gather& gather, const PatchBoxes& boxes) {
  constexpr std::int64_t rows = 64, columns = 8;  // of a tile, of a patch
  const Gather::Phase& phase = gather.phases.front();
  const auto pixels = [&](const Dims& strides) {
    return box_map(problem, gather.rows, phase.pixels, strides, columns, boxes.rows);
  };
  Maps maps(problem);
  maps.add(box_map(problem, gather.channels, gather.source, gather.source_strides,
                   boxes.halo_columns, boxes.halo_rows),
           problem.pass == ConvolutionPass::dgrad ? "dy" : "x", 0);
  maps.add(filter_map(problem, gather, phase, rows), "w", phase.w_first);
  maps.add(pixels(gather.out_strides), maps.result(), phase.out_first);
  if (problem.epilogue.residual) maps.add(pixels(problem.z_strides), "z", 0);
  return std::move(maps.all);
}

void add_dense_patches(LaunchSpec& launch, const ConvolutionProblem& problem) {
  const std::vector<Operand> operands = operands_of(problem);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].name == std::string_view("bias"))
      launch.patches.push_back(
          {LaunchSpec::Hole::operand, static_cast<std::uint8_t>(i), offsetof(DenseParams, bias)});
  launch.patches.push_back({LaunchSpec::Hole::alpha, 0, offsetof(DenseParams, alpha)});
  launch.patches.push_back({LaunchSpec::Hole::beta, 0, offsetof(DenseParams, beta)});
}

}  // namespace kiln
