#include "engines/halo_wgmma.hpp"

#include <limits>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost_model.hpp"
#include "engines/gemm_tile.hpp"
#include "engines/halo_refusal.hpp"
#include "engines/line_store.hpp"
#include "engines/vector_copies.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

constexpr std::int64_t limit32 = std::numeric_limits<std::int32_t>::max();

// The more places, the more products for each element of the filter; a number of them between suits
// the multiprocessors, or images, better. The wider a step, the more products for each of its
// barriers and copies; the narrower, the longer the lines whose halo has room, and the fewer
// channels that are none.
constexpr LineShape line_shapes[] = {
    {128, 256, 4, 4, 1},       {128, 224, 4, 4, 1},       {128, 208, 4, 6, 1},
    {128, 192, 4, 6, 1},       {128, 176, 4, 6, 1},       {128, 168, 4, 6, 1},
    {128, 160, 4, 6, 1},       {128, 128, 4, 6, 1},       {64, 256, 4, 4, 1},
    {64, 128, 4, 4, 2},        {128, 256, 2, 6, 1},       {128, 192, 2, 6, 1},
    {64, 256, 2, 4, 2},        {128, 256, 4, 4, 1, true}, {128, 224, 4, 4, 1, true},
    {128, 192, 4, 4, 1, true}, {128, 256, 2, 6, 1, true}, {128, 224, 2, 6, 1, true},
    {128, 192, 2, 6, 1, true}, {64, 192, 4, 4, 1, true},
};

std::string refusal(const ConvolutionProblem& problem, const Gather& gather,
                    const DeviceDescription& device) {
  if (device.kind != KILN_DEVICE_HOST && device.arch != "sm_90a")
    return cat(device.arch, " has no products of warpgroups");
  if (std::string reason = halo_refusal(problem, gather, device); !reason.empty()) return reason;
  if (is_split(problem))
    return "f32 in three products, whose parts the tensor cores cannot read where elements lie";
  if (std::string reason = channels_last_refusal(problem, gather); !reason.empty()) return reason;
  for (const int i : {1, 2})
    if (gather.stride[i] != 1)
      return cat("a stride of ", gather.stride[i], "; pixels of a line have neighbours' taps");
  return "";
}

std::int64_t pixel_tiles(const ConvolutionProblem& problem, const LineTile& tile) {
  if (tile.shape.strips) return problem.batch * (tile.places() / tile.shape.n);
  return ceil_div(problem.batch * tile.places(), tile.shape.n);
}
std::int64_t all_tiles(const ConvolutionProblem& problem, const Gather& gather,
                       const LineTile& tile) {
  return pixel_tiles(problem, tile) * gather.groups * ceil_div(gather.rows, tile.shape.m);
}

WarpgroupWork work_of_tile(const ConvolutionProblem& problem, const Gather& gather,
                           const LineTile& tile) {
  WarpgroupWork work;
  work.type = problem.type;
  work.m = tile.shape.m;
  work.n = tile.shape.n;
  work.shared_memory = tile.shared_memory(gather.out_strides[1] == 1);
  work.tiles = all_tiles(problem, gather, tile);
  work.results = static_cast<double>(operands_of(problem).back().count());
  const auto chunks = static_cast<double>(ceil_div(gather.channels, tile.chunk_channels()));
  work.steps = chunks * tile.live_taps;
  work.step_fragments = tile.shape.chunk_steps;
  const double copied = chunks * static_cast<double>(tile.chunk_bytes());
  work.halo_bytes = copied * static_cast<double>(tile.halo_pixels);
  work.filter_bytes = copied * tile.live_taps * tile.shape.m;
  work.bytes = work_of(problem, false).bytes;
  return work;
}

// The parts of the instruction's text that follow from the number of columns
// (kernel_sources/cuda/wgmma.cuh).
void add_instruction(std::vector<Constant>& constants, int columns) {
  const int products = columns / 8, sums = 4 * products;
  std::string places, operands;
  for (int i = 0; i < sums; ++i) {
    const char* const comma = i == 0 ? "" : ", ";
    places += cat(comma, "%", i);
    operands += cat(comma, "\"+f\"((c)[", i / 4, "][", i % 4, "])");
  }
  const auto add = [&](const char* name, std::string text) {
    constants.push_back({name, MacroText{std::move(text)}, ""});
  };
  add("WGMMA_COLUMNS", cat("\"", columns, "\""));
  add("WGMMA_SUMS", cat("\"", places, "\""));
  add("WGMMA_OPERANDS(c)", operands);
  add("WGMMA_LEFT_RIGHT",
      cat("\"{%", sums, ", %", sums + 1, ", %", sums + 2, ", %", sums + 3, "}, %", sums + 4, "\""));
}

}  // namespace

bool HaloWgmmaEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::vector<LineTile> HaloWgmmaEngine::tiles(const ConvolutionProblem& problem,
                                             const Gather& gather,
                                             const DeviceDescription& device) const {
  std::vector<LineTile> tiles;
  for (const LineShape& shape : line_shapes) {
    const std::optional<LineTile> tile = lay_line_tile(shape, gather, device);
    if (!tile || tile->places() > limit32 / 2) continue;
    const std::int64_t images = (shape.n + tile->halo_pixels) / tile->places() + 2;
    if (narrow_offsets(problem, gather, shape.m, tile->chunk_channels(), images))
      tiles.push_back(*tile);
  }
  return tiles;
}

std::variant<std::vector<Candidate>, Refusal> HaloWgmmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (std::string reason = refusal(problem, gather, device); !reason.empty())
    return Refusal{std::move(reason)};
  const std::vector<LineTile> fitting = tiles(problem, gather, device);
  if (fitting.empty())
    return Refusal{"the halo of no tile fits into shared memory, or offsets into 32 bits"};
  constexpr int most_parts = 8;  // larger clusters are not portable
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const WarpgroupWork work = work_of_tile(problem, gather, fitting[i]);
    for (const int parts : parts_of(device, work.steps, most_parts))
      if (work.tiles * parts <= limit32)
        candidates.push_back({static_cast<int>(i), parts, warpgroup_seconds(work, parts, device)});
  }
  if (candidates.empty()) return Refusal{cat("more than ", limit32, " thread blocks in a launch")};
  return candidates;
}

Proposal HaloWgmmaEngine::make(const Problem& any, const DeviceDescription& device,
                               Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  return propose(tiles(problem, gather, device).at(static_cast<std::size_t>(candidate.kernel)),
                 problem, gather, candidate.parts);
}

Proposal HaloWgmmaEngine::propose(const LineTile& tile, const ConvolutionProblem& problem,
                                  const Gather& gather, int parts) const {
  Proposal out{make_spec(tile, problem, gather), {}};
  out.launch =
      gather_launch(problem, pixel_tiles(problem, tile), all_tiles(problem, gather, tile) * parts,
                    static_cast<std::uint32_t>(tile.shape.threads()), out.kernel.shared_memory);
  out.launch.shape.cluster = static_cast<std::uint32_t>(parts);
  return out;
}

KernelSpec HaloWgmmaEngine::make_spec(const LineTile& tile, const ConvolutionProblem& problem,
                                      const Gather& gather) const {
  const LineShape& shape = tile.shape;
  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/", name(), ".cu");
  spec.entry = name();
  spec.tile = describe(tile);
  spec.shared_memory = tile.shared_memory(gather.out_strides[1] == 1);
  spec.alignment = copied_bytes;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("offset_t", TypeName{"int"});
  add("out_offset_t", TypeName{"int"});

  // A warp's 16 rows of all columns.
  const int run_m = tile.filter_rows_inner && tile.element == 4 ? 2 : 1;
  const FragmentShape fragments{shape.m, shape.n, 2, shape.n / 4, shape.min_blocks};
  add_fragment_constants(spec.constants, fragments, run_m);
  add("STAGES", std::int64_t{shape.stages}, "of the filter");
  add("CHUNK_STEPS", std::int64_t{shape.chunk_steps}, "of 32 bytes");
  add("FILTER_ROWS_INNER", tile.filter_rows_inner);
  add("FILTER_PAD", transposed_pad(tile.element), "bytes");
  constexpr int store_vector = 4, single = 1;
  add_line_store_constants(spec.constants, problem, gather, single, store_vector, 2);
  add("STORE_VECTOR", std::int64_t{store_vector}, "rows that are stored at a time");

  const std::int64_t reduction = gather.channels * gather.most_taps();
  add_split_constants(spec.constants, is_split(problem), reduction);
  add_promotion_constants(spec.constants, problem, reduction, reduction, shape.chunk_steps);

  add("STRIPS", shape.strips);
  add("LINE_ROWS", tile.rows, "of an image, with what lies between images or beyond the output");
  add("LINE_COLUMNS", tile.columns);
  add("HALO_PLANE", tile.plane_pixels(), "pixels from one 16 bytes of channels to the next");
  add("HALO_STAGES", std::int64_t{tile.halo_stages});
  add("LEAST_TAPS", std::int64_t{tile.least_taps});
  add("SHARED_BYTES", std::int64_t{spec.shared_memory});
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(limit32)));
  };
  divisor("DIV_TILES_M", ceil_div(gather.rows, shape.m));
  divisor("DIV_GROUPS", gather.groups);
  divisor("DIV_STRIPS", shape.strips ? tile.strips() : 1);
  divisor("DIV_IMAGE_TILES", shape.strips ? tile.places() / shape.n : 1);
  add("BLOCK_DIV_IMAGE_PLACES", make_wide_magic(static_cast<std::uint64_t>(tile.places())));
  add_instruction(spec.constants, shape.n);
  return spec;
}

}  // namespace kiln
