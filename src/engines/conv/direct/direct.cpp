#include "engines/conv/direct/direct.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "conv/geometry/gather_params.h"
#include "core/integer.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr int threads = 256;

// Outputs of one image, counting every phase as large as the largest. Kernels count them, and a
// block's worth of the next image's.
std::int64_t image_outputs(const Gather& gather) {
  const Spatial most = gather.largest_pixels();
  return gather.rows * gather.groups * most[0] * most[1] * most[2];
}

std::vector<DirectTile> lay(const Seen& seen) { return {{image_outputs(seen.gather)}}; }

TileCounts count(const DirectTile& tile, const Seen& seen) {
  const std::int64_t phase_blocks = ceil_div(seen.problem.batch * tile.image_outputs, threads);
  return {phase_blocks, phase_blocks * static_cast<std::int64_t>(seen.gather.phases.size())};
}

std::vector<Offer> offers(const DirectTile& tile, const Seen& seen, const TileCounts& tiles) {
  const auto outputs = static_cast<double>(seen.problem.batch * tile.image_outputs);
  DirectWork work;
  work.threads = static_cast<double>(tiles.all * threads);
  work.products = seen.problem.flops() / 2 / std::max(outputs, 1.0);
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, direct_seconds(work, seen.device)}};
}

void write(KernelSpec& spec, const DirectTile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.constants = gather_constants(seen.problem, gather);

  const std::int64_t outputs = tile.image_outputs, channels = gather.rows * gather.groups;
  const bool wide = outputs + threads > limit32;
  const ConstantWriter add(spec.constants);
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    if (wide)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor),
                           static_cast<std::uint32_t>(outputs + threads)));
  };
  const Spatial most = gather.largest_pixels();
  add("OUTPUT_ROWS_INNER", gather.out_strides[1] == 1 && channels > 1);
  add("index_t", TypeName{wide ? "unsigned long long" : "unsigned"});
  add.wide_divisor("BLOCK_DIV_OUTPUTS", outputs);
  add_divisor("DIV_OUTPUTS", outputs);
  add_divisor("DIV_ALL_ROWS", channels);
  add_divisor("DIV_OPQ", most[0] * most[1] * most[2]);
  add_divisor("DIV_PQ", most[1] * most[2]);
  add_divisor("DIV_Q", most[2]);
  add_divisor("DIV_ROWS", gather.rows);
}

}  // namespace

const Recipe<DirectTile> direct_gather = {
    .name = "direct",
    .file = "conv/direct/direct.cu",
    .entry = "direct_gather",
    .mixed_types = true,
    .group_strides = true,
    .refusal = [](const Seen& /*seen*/) -> Refusal { return {}; },
    .lay = lay,
    .count = count,
    .offers = offers,
    .describe = [](const DirectTile& /*tile*/) -> std::string {
      return "1 output a thread, 256 threads";
    },
    .threads = [](const DirectTile& /*tile*/) { return threads; },
    .write = write,
};

}  // namespace kiln
