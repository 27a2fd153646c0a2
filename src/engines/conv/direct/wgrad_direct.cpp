#include "engines/conv/direct/wgrad_direct.hpp"

#include <cmath>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

using Tile = WgradDirectTile;

constexpr int block_threads = 256;

Refusal refusal(const Seen& /*seen*/) { return {}; }

std::vector<Tile> lay(const Seen& /*seen*/) { return {Tile{}}; }

TileCounts count(const Tile& /*tile*/, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  return {.all = problem.out_channels * problem.group_in() * problem.taps()};
}

std::vector<Offer> offers(const Tile& /*tile*/, const Seen& seen, const TileCounts& tiles) {
  const ConvolutionProblem& problem = seen.problem;
  const auto pixels = static_cast<double>(problem.batch * problem.out_pixels());
  DirectWork work;
  work.threads = static_cast<double>(tiles.all) * block_threads;
  work.products = std::ceil(pixels / block_threads);
  work.bytes = work_of(problem, false).bytes;
  // In NHWC the lanes of a warp read elements that are sectors apart: eight layers on an H100 and
  // an H200, in f16 and f32, took 8 to 17 times as long as counted.
  constexpr double sectors_apart = 11;
  const bool channels_last = problem.x_strides[1] == 1 && problem.x_strides[4] > 1;
  return {{{}, direct_seconds(work, seen.device) * (channels_last ? sectors_apart : 1)}};
}

std::string describe(const Tile& /*tile*/) { return "1 element of dw a block, 256 threads"; }
int threads(const Tile& /*tile*/) { return block_threads; }
std::uint32_t shared_memory(const Tile& /*tile*/, const Seen& seen) {
  return block_threads / 32 *
         static_cast<std::uint32_t>(size_of(compute_type(seen.problem.type())));
}

void write(KernelSpec& spec, const Tile& /*tile*/, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.constants = gather_constants(seen.problem, gather);

  const Gather::Phase& phase = gather.phases.front();
  const bool wide = phase.out_pixels() + block_threads > limit32;
  const ConstantWriter add(spec.constants);
  const auto add_pixels = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(phase.out_pixels() + block_threads)));
  };
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  add_pixels("DIV_OPQ", phase.out_pixels());
  add_pixels("DIV_PQ", phase.pixels[1] * phase.pixels[2]);
  add_pixels("DIV_Q", phase.pixels[2]);
  add.divisor("DIV_COLUMNS", gather.channels * phase.tap_count());
  add.divisor("DIV_TRS", phase.tap_count());
  add.divisor("DIV_RS", phase.taps[1] * phase.taps[2]);
  add.divisor("DIV_S", phase.taps[2]);
  add.divisor("DIV_ROWS", gather.rows);
}

}  // namespace

constinit const Recipe<WgradDirectTile> wgrad_direct = {
    .name = "wgrad_direct",
    .file = "conv/direct/wgrad_direct.cu",
    .filter_gradient = true,
    .mixed_types = true,
    .refusal = refusal,
    .lay = lay,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads,
    .shared_memory = shared_memory,
    .write = write,
};

}  // namespace kiln
