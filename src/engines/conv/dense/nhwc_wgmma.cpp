#include "engines/conv/dense/nhwc_wgmma.hpp"

#include <algorithm>
#include <cstring>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/geometry.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

constexpr int line_bytes = 128;  // 64 channels
constexpr int most_shared_memory = 227 * 1024, most_stages = 8;

// With pixels on the left, many of them share the filter; with filters there, the number of pixels
// can be what the multiprocessors divide evenly.
constexpr DenseTile all_tiles[] = {
    {true, 2, 1, 256},  {true, 3, 1, 128},  {true, 2, 1, 128},  {true, 2, 2, 128},
    {true, 3, 1, 64},   {true, 2, 2, 64},   {true, 2, 1, 64},   {false, 2, 1, 192},
    {false, 2, 1, 160}, {false, 2, 1, 128}, {false, 2, 1, 112}, {false, 2, 1, 96},
    {false, 2, 1, 80},  {false, 2, 1, 64},  {false, 2, 1, 48},  {false, 2, 1, 32},
    {false, 1, 1, 256}, {false, 1, 1, 128},
};

int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
int stage_bytes(const DenseTile& tile) {
  return tile.block_left() * line_bytes + whole_swizzles(tile.right * line_bytes);
}
int slab_bytes(const DenseTile& tile) {
  return tile.consumers * tile.slabs() * whole_swizzles(tile.slab_pixels() * line_bytes);
}
int barrier_bytes(const DenseTile& tile, int stages) { return 8 * (2 * stages + tile.consumers); }

std::int64_t pixel_tiles(const DenseTile& tile, const ConvolutionProblem& problem,
                         const Gather::Phase& phase) {
  return ceil_div(problem.batch * phase.out_pixels(), tile.pixels());
}
std::int64_t row_tiles(const DenseTile& tile, const Gather& gather) {
  return ceil_div(gather.rows, tile.rows());
}

// A tile with more of either side than there is computes what nobody needs.
bool suits(const DenseTile& tile, const Gather& gather) {
  return tile.rows() < 2 * round_up(gather.rows, 64);
}

double seconds(const DenseTile& tile, const ConvolutionProblem& problem, const Gather& gather,
               const DeviceDescription& device) {
  DenseWork work;
  work.pixels = tile.pixels();
  work.rows = tile.rows();
  work.warpgroups = tile.consumers;
  const std::vector<Operand> operands = operands_of(problem);
  for (const Operand& operand : operands)
    if (operand.name == std::string_view("w"))
      work.filter_bytes =
          static_cast<double>(operand.count()) * static_cast<double>(size_of(operand.type));
  work.bytes = work_of(problem, false).bytes;
  for (const Gather::Phase& phase : gather.phases)
    work.phases.push_back({pixel_tiles(tile, problem, phase) * row_tiles(tile, gather),
                           phase.tap_count() * ceil_div(gather.channels, 64)});
  return dense_seconds(work, device);
}

// What the producer and the others have of the block's registers.
struct Registers {
  int producer, consumer;
};
Registers registers_of(const DenseTile& tile) {
  return tile.consumers == 3 ? Registers{32, 160} : Registers{40, 232};
}

}  // namespace

int DenseTile::stages() const {
  const int room = most_shared_memory - slab_bytes(*this) - barrier_bytes(*this, most_stages);
  return std::min(room / stage_bytes(*this), most_stages);
}
int DenseTile::barriers_at() const { return stages() * stage_bytes(*this) + slab_bytes(*this); }
int DenseTile::shared_memory() const { return barriers_at() + barrier_bytes(*this, stages()); }

std::string describe(const DenseTile& tile) {
  return cat(tile.rows(), "x", tile.pixels(),
             tile.pixels_left ? ", pixels left, " : ", filters left, ", tile.threads(),
             " threads, ", tile.stages(), " stages");
}

std::span<const DenseTile> DenseNhwcWgmmaEngine::tiles() { return all_tiles; }

std::variant<std::vector<Candidate>, Refusal> DenseNhwcWgmmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (std::string reason = dense_refusal(problem, gather, device); !reason.empty())
    return Refusal{std::move(reason)};
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < std::size(all_tiles); ++i)
    if (suits(all_tiles[i], gather))
      candidates.push_back(
          {static_cast<int>(i), 1, seconds(all_tiles[i], problem, gather, device)});
  return candidates;
}

Proposal DenseNhwcWgmmaEngine::make(const Problem& any, const DeviceDescription& device,
                                    Candidate candidate) const {
  return propose(all_tiles[candidate.kernel], std::get<ConvolutionProblem>(any), device);
}

Proposal DenseNhwcWgmmaEngine::propose(const DenseTile& tile, const ConvolutionProblem& problem,
                                       const DeviceDescription& device) const {
  const Gather gather = make_gather(problem);
  Proposal out;
  KernelSpec& spec = out.kernel;
  spec.engine = name();
  spec.file = cat("conv/dense/", name(), ".cu");
  spec.entry = name();
  spec.tile = describe(tile);
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared_memory());
  spec.alignment = 16;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const auto add_phases = [&](const char* name, std::size_t i) {
    std::vector<std::int64_t> values;
    for (const Gather::Phase& phase : gather.phases)
      values.push_back(phase.tap_count() == 0 ? 0 : dense_phase(gather, phase).lower[i]);
    add(name, std::move(values));
  };
  add_phases("LOWER_W", 0);
  add_phases("LOWER_H", 1);
  const bool lacks_taps = gather.phases.back().tap_count() == 0;
  add("MAY_LACK_TAPS", lacks_taps, "some pixels meet no tap");
  add("PIXELS_LEFT", tile.pixels_left);
  add("CONSUMERS", std::int64_t{tile.consumers}, "warpgroups that multiply");
  add("LEFT", std::int64_t{tile.left}, "operands of 64 rows of each");
  add("BLOCK_RIGHT", std::int64_t{tile.right});
  add("STAGES", std::int64_t{tile.stages()});
  add("SLABS", std::int64_t{tile.slabs()}, "of results on their way out, of each warpgroup");
  add("SHARED_BYTES", std::int64_t{tile.shared_memory()});
  add("PRODUCER_REGISTERS", std::int64_t{registers_of(tile).producer});
  add("CONSUMER_REGISTERS", std::int64_t{registers_of(tile).consumer});
  add("FILTER_BY_CHANNELS", filter_by_channels(gather), "rows of w lie side by side");
  const Spatial& pixels = gather.phases.front().pixels;
  const bool line = std::all_of(
      gather.phases.begin(), gather.phases.end(),
      [&](const Gather::Phase& phase) { return in_line(gather.out_strides, phase.pixels); });
  add("OUT_IN_LINE", line, "all pixels of the output are equally far apart");
  add("Z_IN_LINE", problem.epilogue.residual && in_line(problem.z_strides, pixels));
  add("MAPS", dense_map_count(problem, gather));
  add_dense_promotion(spec.constants, gather.most_taps() * ceil_div(gather.channels, 64));
  add_sum_registers(spec.constants, tile.left, tile.right / 8, false, "f32");
  add_warpgroup_instruction(spec.constants, tile.right);

  LaunchSpec& launch = out.launch;
  launch.empty = problem.batch == 0;
  DenseParams params{};
  params.coef[0] = problem.epilogue.activation.coefficient;
  params.coef[1] = problem.epilogue.activation.coefficient2;
  std::int64_t tiles = 0;
  for (std::size_t i = 0; i < gather.phases.size(); ++i) {
    tiles += pixel_tiles(tile, problem, gather.phases[i]) * row_tiles(tile, gather);
    params.tiles[i] = static_cast<unsigned>(tiles);
  }
  launch.shape.grid = {
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(tiles, 1, device.multiprocessors)), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(tile.threads()), 1, 1};
  launch.shape.shared_memory = spec.shared_memory;
  launch.maps = dense_maps(problem, gather, {tile.pixels(), tile.rows(), tile.slab_pixels()});
  launch.parameters.resize(sizeof params + launch.maps.size() * sizeof(TensorMap));
  std::memcpy(launch.parameters.data(), &params, sizeof params);
  add_dense_patches(launch, problem);
  return out;
}

}  // namespace kiln
