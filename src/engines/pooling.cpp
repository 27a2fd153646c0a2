#include "engines/pooling.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/text.hpp"
#include "pooling/pooling_params.h"

namespace kiln {
namespace {

constexpr std::int64_t threads = 256;
constexpr std::int64_t limit32 = std::numeric_limits<std::int32_t>::max();

// Channels of one access: all operands have them innermost, and runs of them aligned to their size.
int channel_vector(const PoolingProblem& problem, const std::vector<Operand>& operands) {
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

// What both engines' kernels share, window.cuh.
KernelSpec make_spec(const PoolingProblem& problem, const Operand& result, int vector,
                     bool channels_inner, std::int64_t image) {
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
  }
  const auto add_strides = [&](const char* tensor, const Dims& strides) {
    constexpr const char* names[] = {"N", "C", "D", "H", "W"};
    for (int i = 0; i < KILN_DIM_MAX; ++i) add(cat(tensor, "_STRIDE_", names[i]), strides[i]);
  };
  add_strides("X", problem.x_strides);
  add_strides("Y", problem.y_strides);
  add_strides("OUT", result.strides);

  // Whether every tap of every window lies in x.
  bool inside = true;
  for (int i = 0; i < 3; ++i)
    inside =
        inside && problem.pad[i] == 0 &&
        (problem.out[i] - 1) * problem.stride[i] + (problem.window[i] - 1) * problem.dilation[i] <
            problem.in[i];
  add("INSIDE", inside);
  // Offsets within an image.
  std::int64_t reach = 0;
  for (const Dims* strides : {&problem.x_strides, &problem.y_strides, &result.strides})
    for (int i = 1; i < KILN_DIM_MAX; ++i)
      reach = std::max(reach, (*strides)[i] * (2 * std::max({problem.channels, problem.in[0],
                                                             problem.in[1], problem.in[2]}) +
                                               problem.window[2] * problem.dilation[2]));
  add("offset_t", TypeName{4 * reach > limit32 ? "long long" : "int"});

  const bool wide = image + threads > limit32;
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(image + threads)));
  };
  const Dims& dims = result.dims;
  add("BLOCK_DIV_IMAGE", make_wide_magic(static_cast<std::uint64_t>(image)));
  add_divisor("DIV_IMAGE", image);
  add_divisor("DIV_CHANNELS", problem.channels / (channels_inner ? vector : 1));
  add_divisor("DIV_PIXELS", dims[2] * dims[3] * dims[4]);
  add_divisor("DIV_PLANE", dims[3] * dims[4]);
  add_divisor("DIV_WIDTH", dims[4]);
  return spec;
}

LaunchSpec make_launch(const PoolingProblem& problem, const std::vector<Operand>& operands,
                       std::int64_t blocks, std::uint32_t shared_memory) {
  LaunchSpec launch;
  launch.empty = problem.batch == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
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

// Why the tiled kernel does not take a gradient; "" if it does.
std::string tiled_refusal(const PoolingProblem& problem) {
  if (problem.in[0] != 1 || problem.window[0] != 1 || problem.pad[0] != 0)
    return "three dimensions";
  constexpr std::int64_t most_window = 8;
  for (int i = 1; i < 3; ++i) {
    if (problem.dilation[i] != 1) return cat("dilation ", problem.dilation[i]);
    if (problem.window[i] > most_window)
      return cat("a window of ", problem.window[i], "; at most ", most_window,
                 " has a tile large against it");
  }
  if (problem.in[1] * problem.in[2] > limit32 / 2) return "more than 2^30 places in a plane";
  return "";
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

bool PoolingBackwardTiledEngine::is_for(const Problem& problem) const {
  const auto* pooling = std::get_if<PoolingProblem>(&problem);
  return pooling != nullptr && pooling->backward;
}

std::variant<Proposal, Refusal> PoolingBackwardTiledEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<PoolingProblem>(any);
  if (std::string reason = tiled_refusal(problem); !reason.empty())
    return Refusal{std::move(reason)};
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const int vector = channel_vector(problem, operands);
  const bool channels_inner = result.strides[1] == 1 && vector > 1;
  // Channels innermost: 64 bytes of them in a square of pixels. Else one channel's rows.
  const std::int64_t lanes =
      channels_inner ? std::min<std::int64_t>(4, ceil_div(problem.channels, vector)) : 1;
  const std::int64_t tile_h = 16, tile_w = channels_inner ? 16 : 128;

  KernelSpec spec = make_spec(problem, result, vector, channels_inner, 1);
  spec.engine = "pooling_backward_tiled";
  spec.file = "pooling/pooling_backward_tiled.cu";
  spec.entry = "pooling_backward_tiled";
  spec.tile = cat(tile_h, "x", tile_w, " pixels, ", vector * lanes,
                  vector * lanes > 1 ? " channels" : " channel", ", 256 threads");
  const auto add = [&](std::string name, auto value) {
    spec.constants.push_back({std::move(name), value, ""});
  };
  add("CHANNELS", problem.channels);
  add("TILE_H", tile_h);
  add("TILE_W", tile_w);
  add("LANES", lanes);
  // Outputs whose window reaches into so many places in a row, and those that hold one place.
  const auto windows = [&](int i, std::int64_t places) {
    return std::min(problem.out[i], (places + problem.window[i] - 2) / problem.stride[i] + 1);
  };
  const std::int64_t windows_h = windows(1, tile_h), windows_w = windows(2, tile_w);
  add("TILE_WINDOWS_H", windows_h);
  add("TILE_WINDOWS_W", windows_w);
  add("HOLDERS_H", ceil_div(problem.window[1], problem.stride[1]));
  add("HOLDERS_W", ceil_div(problem.window[2], problem.stride[2]));
  const std::size_t of_window =
      size_of(compute_type(problem.type)) + (problem.mode == KILN_POOLING_MAX ? sizeof(int) : 0);
  const std::int64_t bytes =
      windows_h * windows_w * lanes * vector * static_cast<std::int64_t>(of_window) + 16 + 4;
  if (bytes > device.shared_memory_per_block)
    return Refusal{cat("the windows of a tile need ", bytes, " bytes of shared memory")};
  spec.shared_memory = static_cast<std::uint32_t>(bytes);
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(limit32)));
  };
  const std::int64_t tiles_h = ceil_div(problem.in[1], tile_h);
  const std::int64_t tiles_w = ceil_div(problem.in[2], tile_w);
  const std::int64_t runs = ceil_div(problem.channels, vector * lanes);
  divisor("DIV_TILES_H", tiles_h);
  divisor("DIV_TILES_W", tiles_w);
  divisor("DIV_RUNS", runs);
  const std::int64_t blocks = problem.batch * runs * tiles_h * tiles_w;
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  const std::uint32_t shared = spec.shared_memory;
  return Proposal{std::move(spec), make_launch(problem, operands, blocks, shared)};
}

bool PoolingEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<PoolingProblem>(problem);
}

std::variant<Proposal, Refusal> PoolingEngine::propose(const Problem& any,
                                                       const DeviceDescription&) const {
  const auto& problem = std::get<PoolingProblem>(any);
  // Places are counted in 32 bits, padding and the window's reach included.
  for (int i = 0; i < 3; ++i) {
    const std::int64_t reach =
        problem.in[i] + problem.window[i] * problem.dilation[i] + 2 * problem.stride[i];
    if (reach > limit32 / 2)
      return Refusal{cat("a window reaches over ", reach, " places; at most ", limit32 / 2,
                         " can be counted in 32 bits")};
  }
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const int vector = channel_vector(problem, operands);
  const bool channels_inner = result.strides[1] == 1 && vector > 1;
  const std::int64_t image = problem.channels / (channels_inner ? vector : 1) * result.dims[2] *
                             result.dims[3] * result.dims[4];
  const std::int64_t blocks = (problem.batch * image + threads - 1) / threads;
  if (blocks > limit32)
    return Refusal{cat(problem.batch * image, " elements need ", blocks,
                       " thread blocks; a launch has at most ", limit32)};
  KernelSpec spec = make_spec(problem, result, vector, channels_inner, image);
  spec.engine = "pooling";
  spec.file = problem.backward ? "pooling/pooling_backward.cu" : "pooling/pooling_forward.cu";
  spec.entry = problem.backward ? "pooling_backward" : "pooling_forward";
  spec.tile = cat(vector, vector > 1 ? " channels" : " element", " a thread, 256 threads");
  return Proposal{std::move(spec), make_launch(problem, operands, blocks, 0)};
}

}  // namespace kiln
