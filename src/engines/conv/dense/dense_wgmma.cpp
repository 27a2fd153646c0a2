#include "engines/conv/dense/dense_wgmma.hpp"

#include <algorithm>
#include <cstring>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/channel_sums/gradient_finish.hpp"
#include "engines/conv/channel_sums/moments_finish.hpp"
#include "engines/conv/dense/constants.hpp"
#include "engines/conv/dense/epilogue/gradient.hpp"
#include "engines/conv/dense/epilogue/moments.hpp"
#include "engines/conv/dense/launch_maps.hpp"
#include "engines/conv/dense/planar.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/dense/turned_filter.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

constexpr int most_shared_memory = 227 * 1024, most_stages = 8;

// With pixels as operand A, many pixels share each copy of the filter. With filters as operand A,
// the tile's pixels (operand B) come in multiples of 16, so that tiles can fill the multiprocessors
// evenly.
constexpr DenseTile all_tiles[] = {
    {true, 2, 1, 256},       {true, 3, 1, 128},       {true, 2, 1, 128},
    {true, 2, 2, 128},       {true, 3, 1, 64},        {true, 2, 2, 64},
    {true, 2, 1, 64},        {false, 2, 1, 192},      {false, 2, 1, 160},
    {false, 2, 1, 128},      {false, 2, 1, 112},      {false, 2, 1, 96},
    {false, 2, 1, 80},       {false, 2, 1, 64},       {false, 2, 1, 48},
    {false, 2, 1, 32},       {false, 1, 1, 256},      {false, 1, 1, 128},
    {true, 2, 2, 32},        {true, 2, 1, 32},        {true, 2, 2, 16},
    {true, 2, 1, 256, true}, {true, 3, 1, 128, true}, {true, 2, 1, 128, true},
    {true, 2, 2, 128, true}, {true, 3, 1, 64, true},  {true, 2, 1, 64, true},
};

// For channels-first tensors, where a tile ends at the end of an image.
constexpr DenseTile planar_tiles[] = {
    {false, 2, 1, 256}, {false, 2, 1, 224}, {false, 2, 1, 192}, {false, 2, 1, 160},
    {false, 2, 1, 128}, {false, 2, 1, 64},  {false, 2, 2, 128}, {false, 2, 2, 64},
    {false, 3, 1, 128}, {false, 1, 1, 256}, {false, 1, 1, 224}, {false, 1, 1, 160},
    {false, 1, 1, 128}, {true, 2, 1, 256},  {true, 2, 1, 128},  {true, 2, 1, 64},
    {true, 2, 2, 128},  {true, 2, 2, 64},   {true, 2, 1, 32},
};

int whole_swizzles(int bytes) { return (bytes + 1023) / 1024 * 1024; }
int barrier_bytes(const DenseTile& tile, int stages) { return 8 * (2 * stages + tile.consumers); }

// Whether the tiles of the phases can be taken in turn: there are equally many, of equal work.
bool takes_phases_in_turn(const Gather& gather) {
  const Gather::Phase& first = gather.phases.front();
  return gather.phases.size() > 1 &&
         std::ranges::all_of(gather.phases, [&](const Gather::Phase& phase) {
           return phase.out_pixels() == first.out_pixels() &&
                  phase.tap_count() == first.tap_count();
         });
}

// Rows of a line of results, which must not reach from one phase into the next; 0 if none does.
std::int64_t joined_line(const Gather& gather) {
  for (const std::int64_t bytes : {128, 64, 32})
    if (const std::int64_t line = bytes / static_cast<std::int64_t>(size_of(gather.type));
        gather.rows % line == 0)
      return line;
  return 0;
}

// Whether the rows of all phases can be rows of one product: the phases read the same pixels, and
// their filters follow each other.
bool joins_phases(const ConvolutionProblem& problem, const Gather& gather) {
  const Gather::Phase& first = gather.phases.front();
  if (!takes_phases_in_turn(gather) || first.tap_count() != 1 || gather.groups > 1 ||
      problem.epilogue.bias || joined_line(gather) == 0 || dense_store_pixels(problem, gather) > 0)
    return false;
  std::int64_t next = first.w_first;
  return std::ranges::all_of(gather.phases, [&](const Gather::Phase& phase) {
    const bool follows =
        phase.w_first == next && phase.pixels == first.pixels && phase.origin == first.origin;
    next += gather.rows * gather.w_row;
    return follows;
  });
}

// Rows of a group's product.
std::int64_t rows_of(const DenseTile& tile, const Gather& gather) {
  return gather.rows * (tile.joined ? static_cast<std::int64_t>(gather.phases.size()) : 1);
}

// The phases whose tiles are counted.
std::span<const Gather::Phase> phases_of(const DenseTile& tile, const Gather& gather) {
  return std::span(gather.phases).first(tile.joined ? 1 : gather.phases.size());
}

// A tile's layout in shared memory for a problem.
struct Layout {
  DenseLines lines{};
  std::int64_t result_line = 0;  // rows of a pixel in a line of results
  int slabs = 0;                 // slabs of each warpgroup, for results
  int stages = 0;                // as many as fit
  int shared_memory = 0;
};

Layout lay(const DenseTile& tile, const ConvolutionProblem& problem, const Gather& gather,
           bool planar) {
  Layout out;
  const int rows = tile.pixels_left ? tile.rows() : 0;
  out.lines = planar ? planar_lines(problem, gather, rows) : dense_lines(problem, gather, rows);
  out.result_line = tile.joined ? joined_line(gather) : out.lines.rows;
  const int element = static_cast<int>(size_of(problem.type()));
  const int line = static_cast<int>(out.lines.channels) * element;
  const int pixels =
      planar ? tile.pixel_lines(size_of(problem.type())) * (128 / element) : tile.pixels();
  const int left = tile.pixels_left ? pixels : tile.rows(),
            right = tile.pixels_left ? tile.rows() : pixels;
  const int stage = left * line + whole_swizzles(right * line);
  const bool of_pixels = planar || dense_store_pixels(problem, gather) > 0;
  const int slab_rows = of_pixels          ? tile.planar_slab_rows()
                        : tile.pixels_left ? static_cast<int>(out.result_line)
                                           : 64;
  const int slab_pixels = !of_pixels         ? tile.slab_pixels()
                          : tile.pixels_left ? 64
                                             : tile.line_pixels(size_of(problem.type()));
  const int slab = whole_swizzles(slab_pixels * slab_rows * element);
  // Two large slabs would leave too little room for stages.
  constexpr int large = 25 * 1024;
  out.slabs = slab > large && (element == 4 || of_pixels) ? 1 : 2;
  const int slabs = tile.consumers * out.slabs * slab;
  const int room = most_shared_memory - slabs - barrier_bytes(tile, most_stages);
  out.stages = std::min(room / stage, most_stages);
  out.shared_memory = out.stages * stage + slabs + barrier_bytes(tile, out.stages);
  return out;
}

// Images of a tile: channels-first images of at most 128 bytes a channel take a line of shared
// memory each.
std::int64_t images_of(const DenseTile& tile, const Gather& gather, bool planar) {
  const std::int64_t line = planar_line(gather.type);
  const bool small =
      planar && gather.phases.front().out_pixels() <= line && tile.pixels() % line == 0;
  return small ? tile.pixels() / line : 1;
}

std::int64_t pixel_tiles(const DenseTile& tile, const ConvolutionProblem& problem,
                         const Gather& gather, const Gather::Phase& phase, bool planar) {
  const std::int64_t images = images_of(tile, gather, planar);
  if (planar)
    return ceil_div(problem.batch, images) * ceil_div(phase.out_pixels(), tile.pixels() / images);
  return ceil_div(problem.batch * phase.out_pixels(), tile.pixels());
}
std::int64_t row_tiles(const DenseTile& tile, const Gather& gather) {
  return gather.groups * ceil_div(rows_of(tile, gather), tile.rows());
}

// Whether blocks leave something of their rows, and how many bytes of each.
bool leaves_parts(const ConvolutionProblem& problem) {
  return problem.epilogue.moments || problem.epilogue.gradient;
}
std::size_t bytes_of_row(const ConvolutionProblem& problem) {
  return problem.epilogue.moments ? partial_moments_bytes : partial_sums_bytes;
}

RowParts parts_of(const DenseTile& tile, const ConvolutionProblem& problem, const Gather& gather,
                  const DeviceDescription& device) {
  return {row_tiles(tile, gather),
          pixel_tiles(tile, problem, gather, gather.phases.front(), false),
          tile.rows(),
          tile.pixels(),
          problem.batch * gather.phases.front().out_pixels(),
          device.multiprocessors};
}

// Whether a line of the tile's results has 128 bytes.
bool has_whole_lines(const DenseTile& tile, const ConvolutionProblem& problem,
                     const Gather& gather) {
  const DenseLines lines = dense_lines(problem, gather, tile.pixels_left ? tile.rows() : 0);
  return lines.rows * static_cast<std::int64_t>(size_of(problem.type())) == 128;
}

// Whether the tile fits the problem's rows: with groups, no tile may reach into the next group (the
// tiles of less than 64 rows are only for them); without, less than half of the rows may be idle.
// Channels-first pixels of f32 must be operand A, which can go through registers.
bool suits(const DenseTile& tile, const ConvolutionProblem& problem, const Gather& gather,
           bool planar) {
  if (tile.joined && !joins_phases(problem, gather)) return false;
  if (leaves_parts(problem) && (tile.joined || !has_whole_lines(tile, problem, gather)))
    return false;
  if (problem.epilogue.gradient && (!tile.pixels_left || tile.left > 1)) return false;
  if (planar && size_of(gather.type) == 4 && !tile.pixels_left) return false;
  if (gather.groups > 1) return gather.rows % tile.rows() == 0;
  return tile.rows() >= 64 && tile.rows() < 2 * round_up(rows_of(tile, gather), 64);
}

double seconds(const DenseTile& tile, const ConvolutionProblem& problem, const Gather& gather,
               const DeviceDescription& device, bool planar) {
  const Layout layout = lay(tile, problem, gather, planar);
  const DenseLines& lines = layout.lines;
  DenseWork work;
  work.line_bytes =
      static_cast<int>(lines.channels * static_cast<std::int64_t>(size_of(problem.type())));
  work.pixels = tile.pixels();
  work.rows = tile.rows();
  work.warpgroups = tile.consumers;
  work.pixels_in_words = planar && size_of(problem.type()) == 4;
  work.half_lines = planar ? tile.line_pixels(size_of(problem.type())) < planar_line(problem.type())
                           : tile.joined && layout.result_line < lines.rows;
  work.store_bytes = static_cast<int>(planar ? 0 : dense_store_pixels(problem, gather)) *
                     static_cast<int>(size_of(problem.type()));
  const std::vector<Operand> operands = operands_of(problem);
  for (const Operand& operand : operands)
    if (operand.name == std::string_view("w"))
      work.filter_bytes =
          static_cast<double>(operand.count()) * static_cast<double>(size_of(operand.type));
  work.bytes = work_of(problem, false).bytes;
  for (const Gather::Phase& phase : phases_of(tile, gather))
    work.phases.push_back(
        {pixel_tiles(tile, problem, gather, phase, planar) * row_tiles(tile, gather),
         phase.tap_count() * ceil_div(gather.channels, lines.channels)});
  work.moments = leaves_parts(problem);
  if (work.moments) work.blocks = parts_of(tile, problem, gather, device).blocks();
  return dense_seconds(work, device);
}

// Registers of a thread of the producer warpgroup, and of the consumers.
struct Registers {
  int producer, consumer;
};
Registers registers_of(const DenseTile& tile) {
  return tile.consumers == 3 ? Registers{32, 160} : Registers{40, 232};
}

}  // namespace

std::string describe(const DenseTile& tile) {
  return cat(tile.rows(), "x", tile.pixels(),
             tile.pixels_left ? ", pixels left, " : ", filters left, ",
             tile.joined ? "phases joined, " : "", tile.threads(), " threads");
}

std::span<const DenseTile> DenseWgmmaEngine::tiles() const {
  if (planar_) return planar_tiles;
  return all_tiles;
}

std::variant<std::vector<Candidate>, Refusal> DenseWgmmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& asked = std::get<ConvolutionProblem>(any);
  const ConvolutionProblem problem = with_turned_filter(asked);
  const Gather gather = make_gather(problem);
  if (auto refused = planar_ ? planar_refusal(problem, gather, device)
                             : dense_refusal(problem, gather, device))
    return refused;
  if (auto refused = dense_moments_refusal(problem, gather)) return refused;
  if (auto refused = dense_gradient_refusal(problem, gather)) return refused;
  constexpr int least_stages = 3;
  if (turns_filter(asked))
    if (auto refused = turned_filter_refusal(asked)) return refused;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < tiles().size(); ++i)
    if (const DenseTile& tile = tiles()[i];
        suits(tile, problem, gather, planar_) &&
        lay(tile, problem, gather, planar_).stages >= least_stages)
      candidates.push_back(
          {static_cast<int>(i), 1, seconds(tile, problem, gather, device, planar_)});
  for (Candidate& candidate : candidates) {
    candidate.seconds += turned_filter_seconds(asked, device);
    candidate.workspace = turned_filter_bytes(asked);
    if (leaves_parts(problem))
      candidate.workspace =
          parts_of(tiles()[static_cast<std::size_t>(candidate.kernel)], problem, gather, device)
              .workspace(bytes_of_row(problem));
  }
  if (candidates.empty())
    return Refusal{cat(gather.rows, " output channels a group; expected a multiple of ",
                       leaves_parts(problem) ? dense_lines(problem, gather, 0).rows : 16,
                       leaves_parts(problem) ? ", which are summed together" : "",
                       ", so that a tile ends with a group")};
  return candidates;
}

Proposal DenseWgmmaEngine::make(const Problem& any, const DeviceDescription& device,
                                Candidate candidate) const {
  return propose(tiles()[static_cast<std::size_t>(candidate.kernel)],
                 std::get<ConvolutionProblem>(any), device);
}

Proposal DenseWgmmaEngine::propose(const DenseTile& tile, const ConvolutionProblem& asked,
                                   const DeviceDescription& device) const {
  const ConvolutionProblem problem = with_turned_filter(asked);
  const Gather gather = make_gather(problem);
  const Layout layout = lay(tile, problem, gather, planar_);
  const std::int64_t images = images_of(tile, gather, planar_);
  Proposal out;
  KernelSpec& spec = out.first().kernel;
  spec.engine = name();
  spec.file = "conv/dense/dense_wgmma.cu";
  spec.entry = "dense_wgmma";
  spec.tile = cat(describe(tile), ", ", layout.stages, " stages");
  spec.shared_memory = static_cast<std::uint32_t>(layout.shared_memory);
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
  add_phases("LOWER_D", 2);
  add_dense_space(spec.constants, gather);
  add_dense_lines(spec.constants, layout.lines, problem);
  const bool lacks_taps = gather.phases.back().tap_count() == 0;
  add("MAY_LACK_TAPS", lacks_taps, "some phase has no tap: the sums of its pixels are 0");
  add("CHANNEL_STEPS", ceil_div(gather.channels, layout.lines.channels),
      "steps of the reduction in a tap");
  add("ROW_TILES", row_tiles(tile, gather));
  add("PHASES_TOGETHER", !tile.joined && takes_phases_in_turn(gather),
      "the tiles of the phases are taken in turn");
  add("PHASES_JOINED", tile.joined, "the rows of all phases are rows of one product");
  add("RESULT_LINE", layout.result_line, "rows of a pixel in a line of results");
  add("PLANE_TILES",
      planar_ ? ceil_div(gather.phases.front().out_pixels(), tile.pixels() / images) : 1,
      "PLANAR: tiles of pixels in an image, or in IMAGES of them");
  add("PIXELS_LEFT", tile.pixels_left);
  add("PLANAR", planar_, "channels first: the pixels of a channel are contiguous");
  add("IMAGES", images, "PLANAR: images in a tile");
  add("STORE_PIXELS", planar_ ? 0 : dense_store_pixels(problem, gather),
      "contiguous pixels in one store of a thread; 0: TMA stores");
  add("SLAB_PIXEL_LINE", std::int64_t{tile.line_pixels(size_of(problem.type()))},
      "pixels in a line of results, where these are contiguous");
  add("CONSUMERS", std::int64_t{tile.consumers}, "warpgroups of a block that multiply");
  add("LEFT", std::int64_t{tile.left}, "operands A, of 64 rows each, of a warpgroup");
  add("BLOCK_RIGHT", std::int64_t{tile.right});
  add("STAGES", std::int64_t{layout.stages});
  add("SLABS", std::int64_t{layout.slabs}, "buffers of results that TMA stores, of a warpgroup");
  add("SHARED_BYTES", std::int64_t{layout.shared_memory});
  add("PRODUCER_REGISTERS", std::int64_t{registers_of(tile).producer});
  add("CONSUMER_REGISTERS", std::int64_t{registers_of(tile).consumer});
  add("FILTER_BY_CHANNELS", filter_by_channels(gather),
      "the rows of w are contiguous, not its channels");
  const Spatial& pixels = gather.phases.front().pixels;
  const bool line = std::all_of(
      gather.phases.begin(), gather.phases.end(),
      [&](const Gather::Phase& phase) { return in_line(gather.out_strides, phase.pixels); });
  add("OUT_IN_LINE", line, "one stride leads from each pixel of the output to the next");
  add("Z_IN_LINE", problem.epilogue.residual && in_line(problem.z_strides, pixels));
  add("MAPS", planar_ ? (problem.epilogue.residual ? 4 : 3) : dense_map_count(problem, gather));
  add_dense_promotion(spec.constants,
                      gather.most_taps() * ceil_div(gather.channels, layout.lines.channels),
                      layout.lines.channels);
  add_sum_registers(spec.constants, tile.left, tile.right / 8, false, "f32");
  add_warpgroup_instruction(spec.constants, tile.right);

  LaunchSpec& launch = out.first().launch;
  launch.empty = problem.batch == 0;
  DenseParams params{};
  params.images = static_cast<unsigned>(problem.batch);
  const Activation& activation = problem.epilogue.gradient ? problem.epilogue.gradient->activation
                                                           : problem.epilogue.activation;
  params.coef[0] = activation.coefficient;
  params.coef[1] = activation.coefficient2;
  std::int64_t tiles = 0;
  const std::span<const Gather::Phase> phases = phases_of(tile, gather);
  for (std::size_t i = 0; i < gather.phases.size(); ++i) {
    if (i < phases.size())
      tiles += pixel_tiles(tile, problem, gather, phases[i], planar_) * row_tiles(tile, gather);
    params.tiles[i] = static_cast<unsigned>(tiles);
  }
  launch.shape.grid = {
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(tiles, 1, device.multiprocessors)), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(tile.threads()), 1, 1};
  launch.shape.shared_memory = spec.shared_memory;
  launch.maps =
      planar_ ? planar_maps(problem, gather,
                            {layout.lines, images, tile.rows(),
                             tile.line_pixels(size_of(problem.type())), tile.planar_slab_rows()})
              : dense_maps(problem, gather,
                           {layout.lines, tile.pixels(), tile.rows(), tile.slab_pixels(),
                            layout.result_line, tile.joined});
  launch.parameters.resize(sizeof params + launch.maps.size() * sizeof(TensorMap));
  std::memcpy(launch.parameters.data(), &params, sizeof params);
  add_dense_patches(launch, problem);
  if (problem.epilogue.moments)
    return with_moments(std::move(out), parts_of(tile, problem, gather, device), problem, device);
  if (problem.epilogue.gradient)
    return with_gradient(std::move(out), parts_of(tile, problem, gather, device), problem, device);
  return behind_turned_filter(std::move(out), asked);
}

}  // namespace kiln
