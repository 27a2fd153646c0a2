#include "engines/conv/implicit_gemm/implicit_gemm.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "conv/geometry/gather_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

// The index of the reduction can run over taps first or channels first; the source decides.
bool channels_inner(const Gather& gather) {
  return gather.channels > 1 && gather.source_strides[1] < gather.source_strides[4];
}

// Beyond this share of products with padding, tiles hold one place of many images, and skip the
// taps that lie outside the source there.
constexpr double least_waste = 0.1;

bool images_inner(const Gather& gather) { return gather.padding_waste() > least_waste; }

// Taps along a row that are walked for all its pixels, so many of them at a time.
std::int64_t walked_in_row(const Gather& gather, std::int64_t together) {
  std::int64_t taps = 0;
  for (std::int64_t q = 0; q < gather.phases.front().pixels[2]; q += together)
    taps += gather.live_taps(2, q, q + together - 1) * together;
  return taps;
}

// Columns of a row that such a tile keeps together, where they lie side by side: at most what lies
// in a sector of memory, and so few that next to no tap is walked for some of them alone. Of fewer
// than four, too many images would be read from at a time; neighbouring taps of one column are
// better then.
int columns_together(const Gather& gather) {
  constexpr std::int64_t sector = 32;
  constexpr double most_waste = 0.05;
  constexpr std::int64_t widest = 1 << 12;  // beyond, next to nothing is padding
  if (!images_inner(gather) || gather.phases.size() > 1 || gather.source_strides[4] != 1 ||
      gather.stride[2] != 1 || gather.phases.front().pixels[2] > widest)
    return 1;
  constexpr std::int64_t fewest = 4;
  const auto most = sector / static_cast<std::int64_t>(size_of(gather.type));
  std::int64_t together = std::gcd(most, gather.phases.front().pixels[2]);
  if (together < fewest) return 1;
  const auto least = static_cast<double>(walked_in_row(gather, 1));
  for (; together >= fewest; together /= 2)
    if (static_cast<double>(walked_in_row(gather, together)) <= (1 + most_waste) * least)
      return static_cast<int>(together);
  return 1;
}

bool fixed_geometry(const Gather& gather) {
  return gather.phases.size() == 1 && gather.most_taps() > 0 && !images_inner(gather);
}

// The filter's offset is k * step if its strides nest in the order of the reduction index; then
// step > 0.
std::int64_t filter_step(const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t sizes[] = {gather.channels, taps[0], taps[1], taps[2]};
  const std::int64_t strides[] = {gather.w_channel, gather.w_tap[0], gather.w_tap[1],
                                  gather.w_tap[2]};
  // Dimensions of the reduction, innermost first.
  const std::array<int, 4> order =
      channels_inner(gather) ? std::array{0, 3, 2, 1} : std::array{3, 2, 1, 0};
  std::int64_t step = 0, extent = 1;
  for (int i : order) {
    if (sizes[i] == 1) continue;
    if (extent == 1) step = strides[i];
    if (strides[i] != step * extent) return 0;
    extent *= sizes[i];
  }
  return extent == 1 ? 1 : step;
}

// Runs of `vector` pixels lie side by side in the output, each aligned to its own size (given an
// aligned output).
bool output_runs_along_pixels(const Gather& gather, int vector) {
  const Dims& s = gather.out_strides;
  const Spatial& out = gather.phases.front().pixels;
  const auto divides = [&](std::int64_t stride) { return stride % vector == 0; };
  if (columns_together(gather) > 1)
    return columns_together(gather) % vector == 0 && s[4] == 1 && divides(s[0]) && divides(s[1]) &&
           divides(s[2]) && divides(s[3]);
  if (!fixed_geometry(gather) || !divides(s[0]) || !divides(s[1])) return false;
  if (out[2] > 1 ? s[4] != 1 : true) return false;
  const bool rows_flat = out[1] == 1 || s[3] == out[2];
  const bool planes_flat = out[0] == 1 || s[2] == out[1] * out[2];
  if (rows_flat && planes_flat) return gather.phases.front().out_pixels() % vector == 0;
  return out[2] % vector == 0 && divides(s[2]) && divides(s[3]);
}

bool output_rows_inner(const Gather& gather) {
  return gather.rows * gather.groups > 1 && gather.out_strides[1] == 1;
}

// The same for rows, where output_rows_inner().
bool output_runs_along_rows(const Gather& gather, int vector) {
  const auto divides = [&](std::int64_t offset) { return offset % vector == 0; };
  const Dims& s = gather.out_strides;
  return divides(s[0]) && divides(s[2]) && divides(s[3]) && divides(s[4]) &&
         std::all_of(gather.phases.begin(), gather.phases.end(),
                     [&](const Gather::Phase& phase) { return divides(phase.out_first); });
}

// Runs of `vector` results lie side by side in the output, of rows or of pixels.
bool output_runs(const Gather& gather, int vector) {
  return output_rows_inner(gather) ? output_runs_along_rows(gather, vector)
                                   : output_runs_along_pixels(gather, vector);
}

// Offsets are taken from the first image of a tile; a tile touches this many.
std::int64_t images_of_tile(const Gather& gather, const GemmTile& tile) {
  std::int64_t least = limit32;
  for (const Gather::Phase& phase : gather.phases) least = std::min(least, phase.out_pixels());
  return tile.n / least + 2;
}

// Whether offsets within the images of a tile, or within the filter, need 64 bits. A tap outside
// the source may lie up to the padding before its first element, so the reach of that counts as
// well.
struct Widths {
  bool source, out;
};
Widths wide_offsets(const Gather& gather, const GemmTile& tile, const Dims& z_strides) {
  const std::int64_t images = images_of_tile(gather, tile);
  std::int64_t margin = 0;
  const Spatial taps = gather.largest_taps();
  for (int i = 0; i < 3; ++i) {
    std::int64_t origin = 0;
    for (const Gather::Phase& phase : gather.phases)
      origin = std::max(origin, std::abs(phase.origin[i]));
    margin += (origin + taps[i] * std::abs(gather.step[i]) + gather.stride[i]) *
              gather.source_strides[2 + i];
  }
  // A tile may reach past the last row and the last element of the reduction.
  const std::int64_t beyond = tile.k * std::max(gather.source_strides[1], gather.w_channel);
  const std::int64_t source =
      images * gather.source_strides[0] + beyond + 2 * margin +
      image_span(gather.source_strides, gather.channels * gather.groups, gather.source);
  const std::int64_t w =
      tile.m * gather.w_row + beyond +
      image_span({0, gather.w_row, gather.w_tap[0], gather.w_tap[1], gather.w_tap[2]}, gather.rows,
                 taps) +
      (gather.channels - 1) * gather.w_channel;
  const auto out = [&](const Dims& strides) {
    return images * strides[0] + tile.m * strides[1] +
           image_span(strides, gather.rows * gather.groups, gather.largest_pixels());
  };
  return {std::max(source, w) > limit32,
          std::max(out(gather.out_strides), out(z_strides)) > limit32};
}

// Images far apart are reached along the reduction, where neighbouring taps are side by side.
bool pixel_lanes_on_k(const Gather& gather) {
  return channels_inner(gather) || (images_inner(gather) && columns_together(gather) == 1);
}
bool row_lanes_on_k(const Gather& gather) { return gather.w_row != 1 || gather.rows == 1; }

GemmStages stages_of(const ConvolutionProblem& problem, const Gather& gather,
                     const GemmTile& tile) {
  return {tile, problem.type, row_lanes_on_k(gather), pixel_lanes_on_k(gather)};
}

// On the FMA units f32 in square tiles is 1 or 2% faster without most of the assembler's
// optimizations, where pixels of an image follow each other. All else is up to 30% slower, or
// varies (tests/bench/NOTES.md, "Compile time").
bool needs_few_optimizations(const Gather& gather, const GemmTile& tile, DataType type) {
  return !tile.mma() && type == KILN_DATA_FLOAT && tile.m == tile.n && !images_inner(gather);
}

// The longest tiles of all come first, phase by phase. But where pixels of several phases share a
// sector of memory, and there are many of them, that is to wait in the L2 cache until all of its
// pixels are stored: then phases take turns at so many tiles; 0: they do not.
std::int64_t phase_tiles(const Gather& gather, const GemmTile& tile,
                         const DeviceDescription& device) {
  constexpr double sector = 32;  // bytes
  // The host device is taken for a chip with a small cache, so that tests meet turns.
  const double in_cache = device.kind == KILN_DEVICE_HOST ? 160 << 10 : 16 << 20;
  const auto element = static_cast<double>(size_of(gather.type));
  if (gather.phases.size() == 1 || static_cast<double>(gather.out_strides[4]) * element >= sector)
    return 0;
  const double bytes = static_cast<double>(gather.rows) * static_cast<double>(gather.groups) *
                       static_cast<double>(gather.phases.size()) * tile.n * element;
  return static_cast<std::int64_t>(std::max(in_cache / bytes, 1.0));
}

KernelSpec make_spec(const ConvolutionProblem& problem, const Gather& gather, const GemmTile& tile,
                     const DeviceDescription& device) {
  const bool inner = images_inner(gather), fixed = fixed_geometry(gather);
  const GemmStages stages = stages_of(problem, gather, tile);
  KernelSpec spec;
  spec.engine = tile.mma() ? "implicit_gemm_mma" : "implicit_gemm_fma";
  spec.file = cat("conv/implicit_gemm/", spec.engine, ".cu");
  spec.entry = "implicit_gemm";
  spec.tile = describe(tile);
  spec.shared_memory = stages.bytes(tile, problem.type);
  spec.alignment = size_of(problem.type);
  spec.quick_assembly = needs_few_optimizations(gather, tile, problem.type);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };

  const std::int64_t reduction = gather.channels * gather.most_taps();
  const Spatial taps = gather.largest_taps();
  add("REDUCTION", reduction, "the longest of any phase");
  add("WHOLE_K_TILES", fixed && reduction % tile.k == 0);
  add("FIXED", fixed, "one phase, pixels image by image, every tap walked");
  add("CHANNELS_INNER", channels_inner(gather));
  add("IMAGES_INNER", inner, "a tile holds few places of many images");
  add("PHASE_TILES", phase_tiles(gather, tile, device), "of pixels, at which phases take turns");
  add("COLUMNS_TOGETHER", std::int64_t{columns_together(gather)}, "of a row, in a place");
  add("TAPS_T", taps[0]);
  add("TAPS_R", taps[1]);
  add("TAPS_S", taps[2]);
  add("TAPS_IN_DEPTH", taps[0] > 1);
  add("TAP_MASK", taps[0] + taps[1] + taps[2] <= 32);
  const bool z_alike = !problem.epilogue.residual || problem.z_strides == gather.out_strides;
  const Widths wide = wide_offsets(gather, tile, z_alike ? gather.out_strides : problem.z_strides);
  add("offset_t", TypeName{wide.source ? "long long" : "int"});
  // Image by image, a tile's offsets are from its first image on; else from image 0 on.
  add("pixel_offset_t", TypeName{wide.source || inner ? "long long" : "unsigned"});
  add("out_offset_t", TypeName{wide.out || inner ? "long long" : "int"});

  add_gemm_constants(spec.constants, tile, stages, problem.type, device);
  add_checked_constant(spec.constants, problem, tile.mma(), true);
  add("PIXEL_LANES_ON_K", pixel_lanes_on_k(gather));
  add("FILTER_LANES_ON_K", row_lanes_on_k(gather));
  const std::int64_t step = fixed ? filter_step(gather) : 0;
  add("FILTER_K_LINEAR", step != 0);
  add("FILTER_K_STEP", step);
  const bool rows_inner = output_rows_inner(gather);
  add("LINES_ALONG_M", rows_inner);
  add("OUTPUT_VECTOR", z_alike && output_runs(gather, stages.vector));
  add("Z_LIKE_OUT", z_alike);

  // Divisors with the largest dividend each will see; the first phase's, which serve if it is
  // alone.
  const auto divisor = [](std::int64_t d, std::int64_t max_dividend) {
    return make_magic(static_cast<std::uint32_t>(std::max<std::int64_t>(d, 1)),
                      static_cast<std::uint32_t>(max_dividend));
  };
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t pixel_bound = phase.out_pixels() + 2 * tile.n;
  const std::int64_t k_bound = reduction + 2 * tile.k;
  const std::int64_t tiles_m = ceil_div(gather.rows, tile.m);
  add("BLOCK_DIV_OPQ", make_wide_magic(static_cast<std::uint64_t>(phase.out_pixels())));
  add("DIV_OPQ", divisor(phase.out_pixels(), pixel_bound));
  add("DIV_PQ", divisor(phase.pixels[1] * phase.pixels[2], pixel_bound));
  add("DIV_Q", divisor(phase.pixels[2], pixel_bound));
  add("DIV_TRS", divisor(phase.tap_count(), k_bound));
  add("DIV_RS", divisor(phase.taps[1] * phase.taps[2], k_bound));
  add("DIV_S", divisor(phase.taps[2], k_bound));
  add("DIV_C", divisor(gather.channels, k_bound));
  add("DIV_TILES", divisor(tiles_m * gather.groups, limit32));
  add("DIV_TILES_M", divisor(tiles_m, tiles_m * gather.groups));
  return spec;
}

// Tiles of all phases.
struct Tiles {
  std::int64_t of_phase, all;
};
Tiles tiles_of(const ConvolutionProblem& problem, const Gather& gather, const GemmTile& tile) {
  const std::int64_t of_phase = ceil_div(problem.batch * gather.most_pixels(), tile.n);
  return {of_phase, of_phase * static_cast<std::int64_t>(gather.phases.size()) *
                        ceil_div(gather.rows, tile.m) * gather.groups};
}

// Why a tile in so many parts cannot serve; "" if it can.
std::string tile_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const GemmTile& tile, const DeviceDescription& device, int parts) {
  const std::int64_t reduction = gather.channels * gather.most_taps();
  if (gather.most_pixels() > limit32 - 2 * tile.n)
    return cat(gather.most_pixels(), " pixels in an image of the output; at most ",
               limit32 - 2 * tile.n, " can be counted in 32 bits");
  if (const std::int64_t most = (limit32 - 2 * tile.n) / columns_together(gather);
      problem.batch > most)
    return cat(problem.batch, " images; at most ", most, " can be counted in 32 bits");
  if (reduction > limit32 - 2 * tile.k)
    return cat(reduction, " products a sum; at most ", limit32 - 2 * tile.k,
               " can be counted in 32 bits");
  // RuntimeDivisor's condition.
  constexpr std::int64_t limit_unsigned = std::numeric_limits<std::uint32_t>::max();
  if (!fixed_geometry(gather) && (reduction + 2 * tile.k) * gather.most_taps() > limit_unsigned)
    return cat(reduction, " products a sum of ", gather.most_taps(), " taps; their product may be ",
               limit_unsigned, " at most");
  const std::uint32_t bytes = stages_of(problem, gather, tile).bytes(tile, problem.type);
  if (bytes > static_cast<std::uint32_t>(device.shared_memory_per_block))
    return cat("the tile needs ", bytes, " bytes of shared memory; a block has at most ",
               device.shared_memory_per_block);
  if (const std::int64_t blocks = tiles_of(problem, gather, tile).all * parts; blocks > limit32)
    return cat(blocks, " thread blocks; a launch has at most ", limit32);
  return "";
}

}  // namespace

std::variant<Proposal, Refusal> propose_gemm(const ConvolutionProblem& problem,
                                             const GemmTile& tile, const DeviceDescription& device,
                                             int parts) {
  const Gather gather = make_gather(problem);
  if (std::string reason = tile_refusal(problem, gather, tile, device, parts); !reason.empty())
    return Refusal{std::move(reason)};
  Proposal out{make_spec(problem, gather, tile, device), {}};
  const Tiles tiles = tiles_of(problem, gather, tile);
  out.launch = gather_launch(problem, tiles.of_phase, tiles.all * parts,
                             static_cast<std::uint32_t>(tile.threads()), out.kernel.shared_memory);
  out.set_cluster(parts);
  return out;
}

namespace {

GemmWork work_of_tile(const ConvolutionProblem& problem, const Gather& gather, const GemmTile& tile,
                      double bytes) {
  GemmWork work;
  work.type = problem.type;
  work.tiles = tiles_of(problem, gather, tile).all;
  work.results = static_cast<double>(operands_of(problem).back().count());
  const auto most = static_cast<double>(gather.most_taps());
  // A tile of one place of many images walks what is inside there; of several places, what is
  // inside for any of them; else all taps of its phase.
  double taps = gather.mean_taps();
  if (images_inner(gather)) {
    const std::int64_t together = columns_together(gather);
    const std::int64_t of_place = std::max<std::int64_t>(problem.batch, 1) * together;
    taps = gather.walked_taps(ceil_div(tile.n, of_place) * together);
  }
  const double least = 1 / std::max(static_cast<double>(gather.channels), 1.0);  // rather than none
  work.largest = most / std::max(taps, least);
  work.steps = static_cast<double>(gather.channels) * std::max(taps, least) / tile.k;
  work.bounds = gather.leaves_source(0) || gather.leaves_source(1) || gather.leaves_source(2);
  work.stores = output_runs(gather, stages_of(problem, gather, tile).vector) ? ResultStores::vectors
                : output_rows_inner(gather) ? ResultStores::scattered
                                            : ResultStores::neighbours;
  work.bytes = bytes;
  return work;
}

std::variant<std::vector<Candidate>, Refusal> candidates_of(const ConvolutionProblem& problem,
                                                            std::span<const GemmTile> tiles,
                                                            const DeviceDescription& device) {
  constexpr int most_parts = 8;  // larger clusters are not portable, and were never worth it here
  const Gather gather = make_gather(problem);
  const double bytes = work_of(problem, false).bytes;
  std::vector<Candidate> candidates;
  std::string refusal;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const GemmWork work = work_of_tile(problem, gather, tiles[i], bytes);
    for (const int parts : parts_of(device, work.steps, most_parts)) {
      std::string reason = tile_refusal(problem, gather, tiles[i], device, parts);
      if (reason.empty())
        candidates.push_back(
            {static_cast<int>(i), parts, gemm_seconds(tiles[i], work, parts, device), {}});
      else if (refusal.empty())
        refusal = std::move(reason);
    }
  }
  if (candidates.empty()) return Refusal{std::move(refusal)};
  return candidates;
}

std::int64_t rows_of(const ConvolutionProblem& problem) {
  return problem.pass == ConvolutionPass::dgrad ? problem.group_in() : problem.group_out();
}

std::int64_t reduction_of(const ConvolutionProblem& problem) {
  const Gather gather = make_gather(problem);
  return gather.channels * gather.most_taps();
}

Proposal proposal_of(const ConvolutionProblem& problem, std::span<const GemmTile> tiles,
                     const DeviceDescription& device, const Candidate& candidate) {
  const GemmTile& tile = tiles[static_cast<std::size_t>(candidate.kernel)];
  return std::get<Proposal>(propose_gemm(problem, tile, device, candidate.parts));
}

}  // namespace

bool ImplicitGemmMmaEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<std::vector<Candidate>, Refusal> ImplicitGemmMmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const std::int64_t reduction = reduction_of(problem);
  if (std::string reason = mma_refusal(problem, reduction, device); !reason.empty())
    return Refusal{std::move(reason)};
  constexpr std::int64_t least_rows = 16;
  if (std::string reason = rows_refusal(rows_of(problem), least_rows); !reason.empty())
    return Refusal{std::move(reason)};
  return candidates_of(problem, mma_tiles(problem, reduction), device);
}

Proposal ImplicitGemmMmaEngine::make(const Problem& any, const DeviceDescription& device,
                                     Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  return proposal_of(problem, mma_tiles(problem, reduction_of(problem)), device, candidate);
}

bool ImplicitGemmFmaEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<std::vector<Candidate>, Refusal> ImplicitGemmFmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  constexpr std::int64_t least_rows = 4;
  if (std::string reason = rows_refusal(rows_of(problem), least_rows); !reason.empty())
    return Refusal{std::move(reason)};
  return candidates_of(problem, fma_tiles(problem.type), device);
}

Proposal ImplicitGemmFmaEngine::make(const Problem& any, const DeviceDescription& device,
                                     Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  return proposal_of(problem, fma_tiles(problem.type), device, candidate);
}

}  // namespace kiln
