#include "engines/conv/dense/launch_maps.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engines/conv/dense/refusal.hpp"

namespace kiln {

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
                 first * static_cast<std::int64_t>(size_of(spec.type)),
                 static_cast<std::uint16_t>(offset)});
}

const char* DenseMaps::source() const {
  const bool dgrad = operands_.front().name == std::string_view("w");
  return operands_[dgrad ? 1 : 0].name;
}

namespace {

// Of a batch of matrices: source, filter, result and residual.
std::vector<LaunchSpec::Map> matrix_maps(const ConvolutionProblem& problem, const Gather& gather,
                                         const DenseBoxes& boxes) {
  DenseMaps maps(problem);
  const PixelBox source{boxes.lines.channels, boxes.pixels},
      slab{boxes.result_line, boxes.slab_pixels};
  const auto add = [&](const char* name, std::int64_t channels, const Dims& strides,
                       std::int64_t matrix, const PixelBox& box) {
    maps.add(dense_matrix_map(problem, gather.groups, channels, strides[0], matrix, box), name, 0);
  };
  add(maps.source(), gather.channels, gather.source_strides, gather.source_group, source);
  maps.add(dense_filter_map(problem, gather, gather.phases.front(), boxes.lines, boxes.filter_rows),
           "w", 0);
  add(maps.result(), gather.rows, gather.out_strides, gather.out_group, slab);
  if (problem.epilogue.residual) add("z", gather.rows, problem.z_strides, gather.z_group, slab);
  return std::move(maps.all);
}

}  // namespace

std::vector<LaunchSpec::Map> dense_maps(const ConvolutionProblem& problem, const Gather& gather,
                                        const DenseBoxes& boxes) {
  if (problem.group_strides) return matrix_maps(problem, gather, boxes);
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
    return dense_box_map(problem, dense_space(gather), gather.rows * gather.groups, phase.pixels,
                         strides, {boxes.lines.rows, columns, boxes.rows});
  };
  DenseMaps maps(problem);
  maps.add(dense_box_map(problem, dense_space(gather), gather.channels * gather.groups,
                         gather.source, gather.source_strides,
                         {boxes.lines.channels, boxes.halo_columns, boxes.halo_rows}),
           maps.source(), 0);
  maps.add(dense_filter_map(problem, gather, phase, boxes.lines, rows), "w", phase.w_first);
  maps.add(pixels(gather.out_strides), maps.result(), phase.out_first);
  if (problem.epilogue.residual) maps.add(pixels(problem.z_strides), "z", 0);
  return std::move(maps.all);
}

LaunchSpec dense_launch(DenseParams params, std::int64_t tiles, int threads,
                        std::uint32_t shared_memory, std::vector<LaunchSpec::Map> maps,
                        const Seen& seen) {
  const ConvolutionEpilogue& epilogue = seen.problem.epilogue;
  const Activation& activation =
      epilogue.gradient ? epilogue.gradient->activation : epilogue.activation;
  params.coef[0] = activation.coefficient;
  params.coef[1] = activation.coefficient2;
  LaunchSpec launch;
  launch.empty = seen.problem.batch == 0;
  const auto blocks = std::clamp<std::int64_t>(tiles, 1, seen.device.multiprocessors);
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  launch.shape.shared_memory = shared_memory;
  launch.maps = std::move(maps);
  launch.parameters.resize(sizeof params + launch.maps.size() * sizeof(TensorMap));
  std::memcpy(launch.parameters.data(), &params, sizeof params);

  const std::vector<Operand> operands = operands_of(seen.problem);
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
  add(epilogue.residual ? "z" : operands.back().name, offsetof(DenseParams, z));
  return launch;
}

}  // namespace kiln
