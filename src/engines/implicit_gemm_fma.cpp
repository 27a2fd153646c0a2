#include "engines/implicit_gemm_fma.hpp"

#include <algorithm>
#include <limits>

#include "core/text.hpp"
#include "engines/fma_tile.hpp"
#include "engines/forward_constants.hpp"

namespace kiln {
namespace {

constexpr int threads = 256;
constexpr std::int64_t limit32 = std::numeric_limits<std::int32_t>::max();

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The index of the reduction can run over taps first or channels first; x decides.
bool channels_inner(const ConvolutionProblem& problem) {
  return problem.group_in() > 1 && problem.x_strides[1] < problem.x_strides[4];
}

// w's offset is k * step if its strides nest in the order of the reduction index; then step > 0.
std::int64_t filter_step(const ConvolutionProblem& problem) {
  const auto& strides = problem.w_strides;
  const std::int64_t sizes[] = {problem.group_in(), problem.filter[0], problem.filter[1],
                                problem.filter[2]};
  // Dimensions of the reduction, innermost first: indices into sizes, strides[1 + i].
  const std::array<int, 4> order =
      channels_inner(problem) ? std::array{0, 3, 2, 1} : std::array{3, 2, 1, 0};
  std::int64_t step = 0, extent = 1;
  for (int i : order) {
    if (sizes[i] == 1) continue;
    if (extent == 1) step = strides[1 + i];
    if (strides[1 + i] != step * extent) return 0;
    extent *= sizes[i];
  }
  return extent == 1 ? 1 : step;
}

// Runs of `vector` pixels lie side by side in y, each aligned to its own size (given an aligned y).
bool output_runs_along_pixels(const ConvolutionProblem& problem, int vector) {
  const auto& s = problem.y_strides;
  const Spatial& out = problem.out;
  const auto divides = [&](std::int64_t stride) { return stride % vector == 0; };
  if (!divides(s[0]) || !divides(s[1])) return false;
  if (out[2] > 1 ? s[4] != 1 : true) return false;
  const bool rows_flat = out[1] == 1 || s[3] == out[2];
  const bool planes_flat = out[0] == 1 || s[2] == out[1] * out[2];
  if (rows_flat && planes_flat) return problem.out_pixels() % vector == 0;
  return out[2] % vector == 0 && divides(s[2]) && divides(s[3]);
}

bool channels_inner_output(const ConvolutionProblem& problem) {
  return problem.out_channels > 1 && problem.y_strides[1] == 1;
}

// The same for filters, where channels_inner_output().
bool output_runs_along_filters(const ConvolutionProblem& problem, int vector) {
  const auto& s = problem.y_strides;
  for (int i : {0, 2, 3, 4})
    if (s[i] % vector != 0) return false;
  return true;
}

// Offsets are taken from the first image of a tile; a tile touches this many.
std::int64_t images_of_tile(const ConvolutionProblem& problem, const FmaTile& tile) {
  return tile.n / problem.out_pixels() + 2;
}

// Whether offsets within the images of a tile, or within w, need 64 bits. A tap outside x may lie
// up to the padding before its first element, so the reach of the padding counts as well.
bool wide_offsets(const ConvolutionProblem& problem, const FmaTile& tile) {
  const std::int64_t images = images_of_tile(problem, tile);
  std::int64_t margin = 0;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t reach =
        std::abs(problem.pad[i]) + problem.filter[i] * problem.dilation[i] + problem.stride[i];
    margin += reach * problem.x_strides[2 + i];
  }
  // A tile may reach past the last filter and the last element of the reduction.
  const std::int64_t beyond = tile.k * (std::max(problem.x_strides[1], problem.w_strides[1]));
  const std::int64_t x = images * problem.x_strides[0] + beyond + 2 * margin +
                         image_span(problem.x_strides, problem.in_channels, problem.in);
  const std::int64_t w = (problem.out_channels + tile.m) * problem.w_strides[0] + beyond +
                         image_span(problem.w_strides, problem.group_in(), problem.filter);
  const std::int64_t y = images * problem.y_strides[0] + tile.m * problem.y_strides[1] +
                         image_span(problem.y_strides, problem.out_channels, problem.out);
  return std::max({x, w, y}) > limit32;
}

struct Layout {
  bool pixel_lanes_on_k, filter_lanes_on_k;
  std::int64_t filter_step;
  int vector;
};

Layout choose_layout(const ConvolutionProblem& problem) {
  Layout layout;
  layout.pixel_lanes_on_k = channels_inner(problem);
  layout.filter_step = filter_step(problem);
  layout.filter_lanes_on_k = problem.w_strides[0] != 1 || problem.group_out() == 1;
  layout.vector = static_cast<int>(16 / size_of(compute_type(problem.type)));
  return layout;
}

// Mirrors PITCH_M, PITCH_N and the stages of implicit_gemm_fma.cu.
std::uint32_t shared_memory(const ConvolutionProblem& problem, const FmaTile& tile,
                            const Layout& layout) {
  const int pitch_m = tile.m + (layout.filter_lanes_on_k ? layout.vector : 0);
  const int pitch_n = tile.n + (layout.pixel_lanes_on_k ? layout.vector : 0);
  return static_cast<std::uint32_t>(tile.stages * tile.k * (pitch_m + pitch_n)) *
         static_cast<std::uint32_t>(size_of(compute_type(problem.type)));
}

KernelSpec make_spec(const ConvolutionProblem& problem, const FmaTile& tile,
                     const DeviceDescription& device) {
  const Layout layout = choose_layout(problem);
  KernelSpec spec;
  spec.engine = "implicit_gemm_fma";
  spec.file = "conv/implicit_gemm_fma.cu";
  spec.entry = "implicit_gemm_fma";
  spec.tile = describe(tile);
  spec.shared_memory = shared_memory(problem, tile, layout);
  spec.alignment = size_of(problem.type);
  spec.alignment = size_of(problem.type);
  spec.constants = forward_constants(problem);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    if constexpr (std::is_same_v<decltype(value), int>)
      spec.constants.push_back({name, std::int64_t{value}, comment});
    else
      spec.constants.push_back({name, value, comment});
  };

  const std::int64_t reduction = problem.group_in() * problem.taps();
  const std::int64_t tiles_m = ceil_div(problem.group_out(), tile.m);
  add("REDUCTION", reduction);
  add("CHANNELS_INNER", channels_inner(problem));
  add("PADDED_D", leaves_input(problem, 0));
  add("PADDED_H", leaves_input(problem, 1));
  add("PADDED_W", leaves_input(problem, 2));
  add("TAP_MASK", problem.filter[0] + problem.filter[1] + problem.filter[2] <= 32);
  const bool wide = wide_offsets(problem, tile);
  add("offset_t", TypeName{wide ? "long long" : "int"});
  add("pixel_offset_t", TypeName{wide ? "long long" : "unsigned"});

  add("TILE_M", tile.m, "filters");
  add("TILE_N", tile.n, "pixels");
  add("TILE_K", tile.k);
  add("THREAD_M", tile.thread_m);
  add("THREAD_N", tile.thread_n);
  add("STAGES", tile.stages);
  const bool packs =
      device.kind == KILN_DEVICE_HOST || device.compute_capability >= tile.packs_from;
  add("MIN_BLOCKS", packs ? tile.min_blocks : 1);
  add("VECTOR", layout.vector, "compute_t in 16 bytes");
  add("ASYNC", problem.type == compute_type(problem.type));
  add("PIXEL_LANES_ON_K", layout.pixel_lanes_on_k);
  add("FILTER_LANES_ON_K", layout.filter_lanes_on_k);
  add("FILTER_K_LINEAR", layout.filter_step != 0);
  add("FILTER_K_STEP", layout.filter_step);
  const bool output_inner = channels_inner_output(problem);
  add("OUTPUT_CHANNELS_INNER", output_inner);
  add("OUTPUT_VECTOR", output_inner ? output_runs_along_filters(problem, layout.vector)
                                    : output_runs_along_pixels(problem, layout.vector));

  // Divisors with the largest dividend each will see.
  const auto divisor = [](std::int64_t d, std::int64_t max_dividend) {
    return make_magic(static_cast<std::uint32_t>(d), static_cast<std::uint32_t>(max_dividend));
  };
  const std::int64_t pixel_bound = problem.out_pixels() + 2 * tile.n;
  const std::int64_t k_bound = reduction + 2 * tile.k;
  add("BLOCK_DIV_OPQ", make_wide_magic(static_cast<std::uint64_t>(problem.out_pixels())));
  add("DIV_OPQ", divisor(problem.out_pixels(), pixel_bound));
  add("DIV_PQ", divisor(problem.out[1] * problem.out[2], pixel_bound));
  add("DIV_Q", divisor(problem.out[2], pixel_bound));
  add("DIV_TRS", divisor(problem.taps(), k_bound));
  add("DIV_RS", divisor(problem.filter[1] * problem.filter[2], k_bound));
  add("DIV_S", divisor(problem.filter[2], k_bound));
  add("DIV_C", divisor(problem.group_in(), k_bound));
  add("DIV_TILES", divisor(tiles_m * problem.groups, limit32));
  add("DIV_TILES_M", divisor(tiles_m, tiles_m * problem.groups));
  return spec;
}

}  // namespace

std::variant<Proposal, Refusal> propose_fma(const ConvolutionProblem& problem, const FmaTile& tile,
                                            const DeviceDescription& device, int parts) {
  const std::int64_t reduction = problem.group_in() * problem.taps();
  if (problem.out_pixels() > limit32 - 2 * tile.n)
    return Refusal{cat(problem.out_pixels(), " pixels in an image of y; at most ",
                       limit32 - 2 * tile.n, " can be counted in 32 bits")};
  if (reduction > limit32 - 2 * tile.k)
    return Refusal{cat(reduction, " products a sum; at most ", limit32 - 2 * tile.k,
                       " can be counted in 32 bits")};
  Proposal out{make_spec(problem, tile, device), {}};
  if (out.kernel.shared_memory > static_cast<std::uint32_t>(device.shared_memory_per_block))
    return Refusal{cat("the tile needs ", out.kernel.shared_memory,
                       " bytes of shared memory; a block has at most ",
                       device.shared_memory_per_block)};
  const std::int64_t group_tiles = ceil_div(problem.group_out(), tile.m) * problem.groups;
  const std::int64_t tiles = ceil_div(problem.batch * problem.out_pixels(), tile.n) * group_tiles;
  if (parts == 0) parts = choose_reduction_parts(problem, tile, tiles, device);
  if (tiles * parts > limit32)
    return Refusal{cat(tiles * parts, " thread blocks; a launch has at most ", limit32)};
  out.launch = forward_launch(problem, tiles * parts, threads, out.kernel.shared_memory);
  out.launch.shape.cluster = static_cast<std::uint32_t>(parts);
  return out;
}

std::variant<Proposal, Refusal> ImplicitGemmFmaEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto* problem = std::get_if<ConvolutionProblem>(&any);
  if (!problem) return Refusal{"not a forward convolution"};
  // A group's filters are the rows of a tile: with few of them, most of every tile is idle.
  constexpr std::int64_t least_filters = 4;
  if (problem->group_out() < least_filters)
    return Refusal{cat(problem->group_out(), " filters a group; below ", least_filters,
                       " nearly all of a tile would be idle")};

  return propose_fma(*problem, choose_fma_tile(*problem), device);
}

}  // namespace kiln
