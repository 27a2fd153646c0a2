#include "engines/normalization/rows.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/normalization/passes.hpp"
#include "normalization/normalization_params.h"

namespace kiln {
namespace {

constexpr int row_threads = 256;
constexpr int blocks_a_multiprocessor = 2;  // so that a thread has up to 128 registers

constexpr std::string_view x_like[] = {"x", "residual", "dy", "dresidual", "out"};

bool is_named(const Operand& operand, std::string_view name) {
  const std::string_view own = operand.name;
  return name == "out" ? own == "y" || own == "dx" : own == name;
}

const Operand* find(const std::vector<Operand>& operands, std::string_view name) {
  const auto found = std::find_if(operands.begin(), operands.end(),
                                  [&](const Operand& each) { return is_named(each, name); });
  return found == operands.end() ? nullptr : &*found;
}

std::uint32_t in_vectors(std::uint32_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

NormalizationRows::NormalizationRows(const NormalizationProblem& p, const DeviceDescription& d,
                                     RowRoad road)
    : problem(p), device(d), operands(operands_of(p)), road_(road) {
  for (const std::string_view name : x_like) tensors += find(operands, name) == nullptr ? 0 : 1;
  combining = combining_of(false);
  if (problem.over == NormalizationOver::group) {
    Combining channels = combining_of(true);
    const std::int64_t of_row = problem.dims[1] / problem.groups;
    const std::int64_t unit = std::lcm<std::int64_t>(of_row, channels.lanes()) / channels.lanes();
    const std::int64_t bytes = of_row * static_cast<std::int64_t>(size_of(problem.type));
    // Channels last: a thread reads neighboring channels, be they of one row or not, where a block
    // has whole rows. Channels first: where the sums of channels are wanted.
    const bool sums_wanted = staged() && is_backward(problem.pass) && problem.affine;
    const bool wanted =
        channels.inner_combined
            ? sums_wanted && of_row <= 64
            : unit <= 32 && (channels.vector > combining.vector || bytes < 128 || sums_wanted);
    if (channels.kept.size() == 1 && wanted) {
      by_channel = true;
      join = of_row;
      combining = std::move(channels);
    }
  }
  if (!by_channel)
    layout = row_layout();
  else
    layout = combining.inner_combined ? planar_channel_layout() : channel_layout();
}

Combining NormalizationRows::combining_of(bool channels) const {
  const bool pixels = problem.over == NormalizationOver::pixel;
  std::vector<const Operand*> all;
  for (const std::string_view name : x_like)
    if (const Operand* const operand = find(operands, name)) all.push_back(operand);
  const Operand& statistics = *find(operands, "deviation");
  std::vector<Axis> axes;
  // size: of the axis. dimension, times: it steps through that many elements of the dimension.
  const auto add = [&](std::int64_t size, int dimension, std::int64_t times, std::int64_t number,
                       std::int64_t statistic, bool in_row) {
    Axis axis{size, {}, in_row};
    for (const Operand* operand : all) axis.strides.push_back(operand->strides[dimension] * times);
    axis.strides.push_back(problem.affine ? number : 0);
    axis.strides.push_back(channels ? 0 : statistic);
    axes.push_back(std::move(axis));
  };
  if (pixels || channels) {
    add(problem.dims[1], 1, 1, 1, 0, pixels);
  } else {
    const std::int64_t of_row = problem.dims[1] / problem.groups;
    add(problem.groups, 1, of_row, of_row, 1, false);
    add(of_row, 1, 1, 1, 0, true);
  }
  for (int i = 2; i < operand_rank; ++i)
    add(problem.dims[i], i, 1, 0, pixels ? statistics.strides[i] : 0, !pixels);
  std::vector<std::int64_t> batch;
  for (const Operand* operand : all) batch.push_back(operand->strides[0]);
  batch.push_back(0);
  batch.push_back(channels ? 0 : problem.statistics());
  return make_combining(joined_axes(std::move(axes), 0), batch, all.size(),
                        static_cast<int>(16 / size_of(problem.type)));
}

// Assumed, as the kernel serves every batch size: diffusion networks have few images, and images
// without space are the rows of a matrix.
std::int64_t NormalizationRows::usual_images() const { return problem.space() > 1 ? 2 : 4096; }

// Registers hold 32 elements of x (128 bytes at most), half as many of x and dy, and half of that
// with a residual; 24 beside the sums of channels where these are few, a vector being of one.
int NormalizationRows::held_vectors() const {
  int elements = is_backward(problem.pass) ? 16 : 32;
  if (road_ == RowRoad::columns && !combining.inner_combined) elements = 24;
  int bytes = is_backward(problem.pass) ? 64 : 128;
  if (problem.residual) elements /= 2, bytes /= 2;
  const int held = std::min(elements, bytes / static_cast<int>(size_of(problem.type)));
  return std::max(held / combining.vector, 1);
}

// Where registers hold a row, in one block or in a cluster, it is read once.
void NormalizationRows::hold(RowLayout& out) const {
  // 64 bytes are under way, of all tensors that are read together.
  const int bytes = combining.vector * static_cast<int>(size_of(problem.type));
  const int together = (is_backward(problem.pass) ? 2 : 1) * (problem.residual ? 2 : 1);
  out.unroll = std::clamp(64 / (bytes * together), 1, 8);
  if (staged()) return;
  const int most = held_vectors();
  const std::int64_t vectors = combining.combined_vectors();
  int cluster = power_at_least(ceil_div(vectors, std::int64_t{out.ty} * most));
  const bool one_block = road_ == RowRoad::columns;
  if (cluster <= (one_block ? 1 : device.largest_cluster)) {
    // Rows that are few take more blocks each.
    const std::int64_t blocks =
        usual_images() *
        ceil_div(combining.kept_vectors(), out.chunk > 0 ? out.chunk : out.results());
    while (!one_block && cluster < device.largest_cluster &&
           blocks * cluster < std::int64_t{device.multiprocessors} * blocks_a_multiprocessor &&
           vectors >= std::int64_t{out.ty} * cluster * 4)
      cluster *= 2;
    out.held = true;
    out.cluster = cluster;
    out.unroll = static_cast<int>(
        std::max<std::int64_t>(ceil_div(vectors, std::int64_t{out.ty} * cluster), 1));
  }
}

RowLayout NormalizationRows::row_layout() const {
  const std::int64_t vectors = combining.combined_vectors(), kept = combining.kept_vectors();
  const std::int64_t enough = ceil_div(vectors, held_vectors());
  RowLayout out;
  if (combining.inner_combined || kept == 1) {
    // A quarter of the places is enough: a thread with few elements has as many other instructions.
    const std::int64_t busy =
        std::int64_t{row_threads} * blocks_a_multiprocessor * device.multiprocessors / 4;
    out.ty = std::clamp(power_at_least(enough), std::min(power_at_most(vectors), 4), row_threads);
    while (out.ty < row_threads && out.ty < vectors && usual_images() * kept * out.ty < busy)
      out.ty *= 2;
  } else {
    // Neighboring vectors: 128 bytes of 16 each, or 64, for rows twice as long.
    const int least_tx = road_ == RowRoad::columns ? 4 : 8;
    out.ty = std::min(power_at_least(enough), row_threads / least_tx);
    out.tx = std::min({32, power_at_least(kept), row_threads / out.ty});
  }
  out.groups = row_threads / (out.tx * out.ty);
  hold(out);
  return out;
}

double NormalizationRows::busy(std::int64_t blocks) const {
  const std::int64_t places = std::int64_t{device.multiprocessors} * blocks_a_multiprocessor;
  return static_cast<double>(blocks) / static_cast<double>(round_up(blocks, places));
}

// Lines of at least 64 bytes, where the channels have them, and longer ones where as many blocks
// are at work. Of a block's threads some 60% with channels are enough for memory's rate.
RowLayout NormalizationRows::channel_layout() const {
  const std::int64_t kept = combining.kept_vectors();
  const std::int64_t unit = std::lcm<std::int64_t>(join, combining.vector) / combining.vector;
  const std::int64_t bytes = combining.vector * static_cast<std::int64_t>(size_of(problem.type));
  RowLayout best;
  double best_share = 0;
  for (int tx = 32; tx >= 1; tx /= 2)
    for (std::int64_t units = tx / unit; units >= 1; --units) {
      const std::int64_t chunks = ceil_div(kept, units * unit);
      // The fewest units that make as many chunks: chunks of like sizes.
      const std::int64_t chunk = ceil_div(ceil_div(kept, unit), chunks) * unit;
      if (chunk * bytes < 64 && chunk < kept && best_share > 0) continue;
      double most_busy = staged() ? 1 : 0;
      for (int parts = 1; !staged() && parts <= device.largest_cluster; parts *= 2)
        most_busy = std::max(most_busy, busy(usual_images() * chunks * parts));
      const double used = static_cast<double>(kept) / static_cast<double>(chunks * tx);
      const double share = most_busy * std::min(1.0, used / 0.6);
      if (share <= best_share * 1.02) continue;
      best_share = share;
      best.tx = tx;
      best.ty = row_threads / tx;
      best.chunk = chunk;
    }
  hold(best);
  return best;
}

// A block has the channels of rows; the threads of a channel walk its plane.
RowLayout NormalizationRows::planar_channel_layout() const {
  RowLayout out;
  out.groups = power_at_least(join);
  out.ty = row_threads / out.groups;
  out.chunk = out.groups / join * join;
  hold(out);
  return out;
}

std::int64_t NormalizationRows::clusters() const {
  if (by_channel) return ceil_div(combining.kept_vectors(), layout.chunk) * problem.dims[0];
  return ceil_div(combining.kept_vectors() * problem.dims[0], layout.results());
}

int NormalizationRows::parts() const {
  if (road_ == RowRoad::columns)
    return static_cast<int>(std::min<std::int64_t>(
        clusters(), std::int64_t{device.multiprocessors} * blocks_a_multiprocessor));
  if (layout.held) return layout.cluster;
  const std::int64_t turns =
      std::max<std::int64_t>(combining.combined_vectors() / (layout.ty * layout.unroll), 1);
  int parts = 1;
  if (staged()) {
    const std::int64_t places = std::int64_t{device.multiprocessors} * blocks_a_multiprocessor;
    parts = static_cast<int>(
        std::clamp<std::int64_t>(places / std::max<std::int64_t>(clusters(), 1), 1, turns));
  }
  const std::int64_t most = std::min<std::int64_t>(
      turns, staged() ? std::int64_t{parts} * 4 : std::int64_t{device.largest_cluster});
  for (int next = staged() ? parts + 1 : 2; next <= most; staged() ? ++next : next *= 2)
    if (busy(clusters() * next) > 1.05 * busy(clusters() * parts)) parts = next;
  return parts;
}

std::size_t NormalizationRows::workspace() const {
  if (road_ == RowRoad::columns)
    return static_cast<std::size_t>(problem.dims[1] * parts() * 2) *
           size_of(problem.parameter_type());
  const std::int64_t slots = problem.dims[0] * combining.kept_vectors() * combining.lanes();
  return static_cast<std::size_t>((slots * parts() + problem.dims[0] * problem.statistics()) * 2) *
         size_of(problem.parameter_type());
}

Step NormalizationRows::step_of(const char* entry, const BlockLayout& threads) const {
  Step out;
  KernelSpec& spec = out.kernel;
  spec.engine = "normalization_rows";
  spec.file = cat("normalization/", entry, ".cu");
  spec.entry = entry;
  spec.tile = cat(layout.tx, "x", layout.ty, "x", layout.groups, " threads, ", layout.unroll, " x ",
                  combining.vector, layout.held ? " elements each" : " elements a turn",
                  by_channel ? ", by channel" : "",
                  layout.cluster > 1 ? cat(", clusters of ", layout.cluster) : "",
                  staged()                    ? ", in stages"
                  : road_ == RowRoad::columns ? ", with sums of channels"
                                              : "");
  const auto add = [&](std::string constant, auto value) {
    spec.constants.push_back({std::move(constant), value, ""});
  };
  const bool backward = is_backward(problem.pass);
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(problem.parameter_type()));
  add("BACKWARD", backward);
  add("CENTERED", problem.centered);
  add("HAS_RESIDUAL", problem.residual);
  add("HAS_SCALE", problem.affine);
  add("HAS_BIAS", problem.bias);
  add("ACTIVATION", static_cast<std::int64_t>(problem.activation.mode));
  add("FROM_OUTPUT", gradient_from_output(problem.activation));
  add("JOIN", join);
  add("CHUNK", std::max<std::int64_t>(layout.chunk, 1));
  add("CHUNKS", by_channel ? ceil_div(combining.kept_vectors(), layout.chunk) : std::int64_t{1});
  add("HELD", layout.held);
  add("UNROLL", std::int64_t{layout.unroll});
  add("MIN_BLOCKS", std::int64_t{blocks_a_multiprocessor});
  add("PART_THREADS", std::int64_t{layout.ty});
  add("LARGEST_CLUSTER", std::int64_t{device.largest_cluster});
  add_combining_constants(spec.constants, combining, threads,
                          device.largest_cluster * layout.unroll);
  add("ROWS_DIV_KEPT", make_wide_magic(static_cast<std::uint64_t>(combining.kept_vectors())));
  constexpr const char* prefixes[] = {"X", "RESIDUAL", "DY", "DRESIDUAL", "OUT"};
  std::size_t tensor = 0;
  for (std::size_t i = 0; i < std::size(x_like); ++i) {
    // A tensor that the problem lacks has x's constants, which the kernel does not use.
    const Operand* const operand = find(operands, x_like[i]);
    add_combining_strides(spec.constants, combining, prefixes[i], operand == nullptr ? 0 : tensor++,
                          operand == nullptr ? 0 : operand->strides[0]);
  }
  const std::vector<Axis>& innermost =
      combining.inner_combined ? combining.combined : combining.kept;
  for (const char* const prefix : {"P", "S"}) {
    const bool is_s = prefix[0] == 'S';
    add_combining_strides(spec.constants, combining, prefix, tensor,
                          is_s && !by_channel ? problem.statistics() : 0);
    add(cat(prefix, "_LANE"), innermost.empty() ? 0 : innermost.back().strides[tensor]);
    ++tensor;
  }
  out.launch.set_parameters(parameters());
  set_normalization_operands(out.launch, operands);
  if (road_ != RowRoad::clusters)
    out.launch.patches.push_back(
        {LaunchSpec::Hole::workspace, 0, offsetof(NormalizationParams, partials)});
  return out;
}

NormalizationParams NormalizationRows::parameters() const {
  NormalizationParams params{};
  params.epsilon = problem.epsilon;
  params.coef[0] = problem.activation.coefficient;
  params.coef[1] = problem.activation.coefficient2;
  params.share = 1 / static_cast<double>(problem.count());
  params.images = problem.dims[0];
  const std::int64_t sharing =
      road_ == RowRoad::columns ? layout.ty : std::int64_t{parts()} * layout.ty;
  params.steps = combining.combined_vectors() / sharing;
  params.rest = static_cast<unsigned>(combining.combined_vectors() % sharing);
  params.parts = static_cast<unsigned>(parts());
  params.rows = clusters();
  return params;
}

Step NormalizationRows::step(RowStage stage) const {
  Step out = step_of("rows", layout);
  KernelSpec& spec = out.kernel;
  const std::uint32_t totals =
      static_cast<std::uint32_t>(layout.results() * combining.lanes() * 2) *
      static_cast<std::uint32_t>(size_of(problem.parameter_type()));
  spec.shared_memory = layout.combine_bytes(combining.lanes(), problem.parameter_type()) +
                       2 * in_vectors(totals) +
                       in_vectors(static_cast<std::uint32_t>(device.largest_cluster) * totals);
  spec.constants.push_back({"SHARED_BYTES", std::int64_t{spec.shared_memory}, ""});
  spec.constants.push_back({"STAGE", static_cast<std::int64_t>(stage), ""});
  // One kernel serves all batch sizes, and some of them need clusters.
  spec.clustered = !staged() && device.largest_cluster > 1 && (!layout.held || layout.cluster > 1);

  LaunchSpec& launch = out.launch;
  launch.empty = problem.dims[0] == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(clusters() * parts()), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(layout.threads()), 1, 1};
  if (!staged()) launch.shape.cluster = static_cast<std::uint32_t>(parts());
  launch.shape.shared_memory = spec.shared_memory;
  return out;
}

Step NormalizationRows::gradient() const {
  Step out = step_of("rows_gradient", layout);
  const int numbers = combining.inner_combined ? combining.vector : 1;
  const std::uint32_t sums = static_cast<std::uint32_t>(layout.unroll * numbers * row_threads) *
                             static_cast<std::uint32_t>(size_of(problem.parameter_type()));
  out.kernel.shared_memory =
      in_vectors(layout.combine_bytes(combining.lanes(), problem.parameter_type())) + sums;
  LaunchSpec& launch = out.launch;
  launch.shape.grid = {static_cast<std::uint32_t>(parts()), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(layout.threads()), 1, 1};
  launch.shape.shared_memory = out.kernel.shared_memory;
  return out;
}

Step NormalizationRows::finish(bool of_channels) const {
  BlockLayout threads;
  threads.ty = 128;
  Step out = step_of("rows_finish", threads);
  out.kernel.constants.push_back({"OF_CHANNELS", of_channels, ""});
  out.kernel.constants.push_back({"WEIGHED", staged(), ""});
  out.kernel.shared_memory =
      static_cast<std::uint32_t>((threads.ty / 32 + 1) * size_of(problem.parameter_type()));
  out.launch.shape.shared_memory = out.kernel.shared_memory;
  const std::int64_t blocks =
      of_channels ? problem.dims[1] : problem.dims[0] * problem.statistics();
  out.launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  out.launch.shape.block = {static_cast<std::uint32_t>(threads.threads()), 1, 1};
  return out;
}

}  // namespace kiln
