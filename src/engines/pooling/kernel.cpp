#include "engines/pooling/kernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "pooling/pooling_params.h"

namespace kiln {
int pooling_channel_vector(const PoolingProblem& problem, const std::vector<Operand>& operands) {
  int count = static_cast<int>(16 / size_of(problem.type));
  const auto fits = [&](const Operand& operand) {
    const Dims& s = operand.strides;
    return s[1] == 1 && s[0] % count == 0 && s[2] % count == 0 && s[3] % count == 0 &&
           s[4] % count == 0;
  };
  while (count > 1 &&
         (problem.channels % count != 0 || !std::all_of(operands.begin(), operands.end(), fits)))
    count /= 2;
  return count;
}

bool every_tap_inside(const PoolingProblem& problem) {
  bool inside = true;
  for (int i = 0; i < 3; ++i)
    inside = inside && problem.pad[i] <= 0 && problem.end(i) <= problem.in[i];
  return inside;
}

bool divisors_differ(const PoolingProblem& problem) {
  return problem.overhang != Spatial{} ||
         (problem.mode == KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING && !every_tap_inside(problem));
}

std::int64_t places_counted(const PoolingProblem& problem, int i) {
  if (problem.in[i] > limit32 || problem.extent(i) > limit32) return 2 * limit32;
  return problem.in[i] + std::abs(problem.pad[i]) + problem.out[i] * problem.stride[i] +
         problem.window[i] * problem.dilation[i] + problem.stride[i];
}

KernelSpec pooling_kernel(const PoolingProblem& problem, const Operand& result, int vector,
                          bool channels_inner, std::int64_t image, std::int64_t places_h,
                          std::int64_t places_w) {
  KernelSpec spec;
  const auto add = [&](std::string name, auto value) {
    spec.constants.push_back({std::move(name), value, ""});
  };
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(compute_type(problem.type)));
  add("MODE", static_cast<std::int64_t>(problem.mode));
  add("PROPAGATE_NAN", problem.nan == KILN_PROPAGATE_NAN);
  add("VECTOR", std::int64_t{vector});
  add("CHANNELS_INNER", channels_inner);
  constexpr const char* axes[] = {"D", "H", "W"};
  for (int i = 0; i < 3; ++i) {
    add(cat("IN_", axes[i]), problem.in[i]);
    add(cat("OUT_", axes[i]), problem.out[i]);
    add(cat("WINDOW_", axes[i]), problem.window[i]);
    add(cat("STRIDE_", axes[i]), problem.stride[i]);
    add(cat("PAD_", axes[i]), problem.pad[i]);
    add(cat("DILATION_", axes[i]), problem.dilation[i]);
    // The end of the padded input, up to which AVERAGE_COUNT_INCLUDE_PADDING counts taps.
    add(cat("COUNTED_", axes[i]), problem.end(i) - problem.overhang[i]);
  }
  const auto add_strides = [&](const char* tensor, const Dims& strides) {
    constexpr const char* names[] = {"N", "C", "D", "H", "W"};
    for (int i = 0; i < operand_rank; ++i) add(cat(tensor, "_STRIDE_", names[i]), strides[i]);
  };
  add_strides("X", problem.x_strides);
  add_strides("Y", problem.y_strides);
  add_strides("OUT", result.strides);

  add("INSIDE", every_tap_inside(problem));
  add("SHARES", divisors_differ(problem));
  // The largest offset within an image decides the offsets' type.
  std::int64_t reach = 0;
  for (const Dims* strides : {&problem.x_strides, &problem.y_strides, &result.strides})
    for (int i = 1; i < operand_rank; ++i) {
      const std::int64_t most = std::max({2 * problem.channels, places_counted(problem, 0),
                                          places_counted(problem, 1), places_counted(problem, 2)});
      std::int64_t offset;
      if (__builtin_mul_overflow((*strides)[i], most, &offset)) offset = limit32;
      reach = std::max(reach, std::min(offset, limit32));
    }
  add("offset_t", TypeName{4 * reach > limit32 ? "long long" : "int"});

  const bool wide = image + pooling_threads > limit32;
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(image + pooling_threads)));
  };
  const Dims& dims = result.dims;
  add("BLOCK_DIV_IMAGE", make_wide_magic(static_cast<std::uint64_t>(image)));
  add_divisor("DIV_IMAGE", image);
  add_divisor("DIV_CHANNELS", problem.channels / (channels_inner ? vector : 1));
  add_divisor("DIV_PIXELS", dims[2] * places_h * places_w);
  add_divisor("DIV_PLANE", places_h * places_w);
  add_divisor("DIV_WIDTH", places_w);
  return spec;
}

LaunchSpec pooling_launch(const PoolingProblem& problem, const std::vector<Operand>& operands,
                          std::int64_t blocks, std::uint32_t shared_memory) {
  LaunchSpec launch;
  launch.empty = problem.batch == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(pooling_threads), 1, 1};
  launch.shape.shared_memory = shared_memory;
  PoolingParams params{};
  params.images = problem.batch;
  launch.set_parameters(params);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string_view name = operands[i].name;
    const std::size_t offset = operands[i].written ? offsetof(PoolingParams, out)
                               : name == "x"       ? offsetof(PoolingParams, x)
                                                   : offsetof(PoolingParams, dy);
    launch.patches.push_back({LaunchSpec::Hole::operand, static_cast<std::uint8_t>(i),
                              static_cast<std::uint16_t>(offset)});
  }
  launch.patches.push_back({LaunchSpec::Hole::alpha, 0, offsetof(PoolingParams, alpha)});
  launch.patches.push_back({LaunchSpec::Hole::beta, 0, offsetof(PoolingParams, beta)});
  return launch;
}

}  // namespace kiln
