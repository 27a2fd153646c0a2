#include "engines/normalization/passes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "normalization/normalization_params.h"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size
// Of a multiprocessor, so that a thread has up to 128 registers.
constexpr int threads_at_once = 512;
constexpr int usual_threads = 256;

// The tensors of x's sizes, x first; those that a problem lacks are left out.
constexpr std::string_view tensor_names[] = {"x", "residual", "dy", "dresidual", "out"};

bool is_named(const Operand& operand, std::string_view name) {
  const std::string_view own = operand.name;
  return name == "out" ? own == "y" || own == "dx" : own == name;
}

// The statistics of pixels are one tensor more.
Combining combining_of(const NormalizationProblem& problem, const std::vector<Operand>& operands) {
  std::vector<Dims> strides;
  for (const std::string_view name : tensor_names)
    for (const Operand& operand : operands)
      if (is_named(operand, name)) strides.push_back(operand.strides);
  const std::size_t tensors = strides.size();
  strides.push_back({});
  if (problem.over == NormalizationOver::pixel)
    for (const Operand& operand : operands)
      if (operand.name == std::string_view("deviation")) strides.back() = operand.strides;
  const std::array<bool, operand_rank> reduced{false, false, true, true, true};
  return make_combining(problem.dims, strides, reduced, 0, tensors,
                        static_cast<int>(16 / size_of(problem.type)));
}

// Vectors that a thread loads at a time from each tensor: 64 bytes from one, 32 from each of
// several.
int unroll_of(const NormalizationProblem& problem, const Combining& combining, bool statistics) {
  const bool several = is_backward(problem.pass) || (problem.residual && !statistics);
  const int vector = combining.vector * static_cast<int>(size_of(problem.type));
  return std::clamp((several ? 32 : 64) / vector, 2, 16);
}

std::uint32_t in_vectors(std::uint32_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

NormalizationPasses::NormalizationPasses(const NormalizationProblem& p, const DeviceDescription& d)
    : problem(p), device(d), operands(operands_of(p)), combining(combining_of(p, operands)) {}

Refusal NormalizationPasses::refusal() const {
  const std::int64_t most = limit32 / (2 * device.largest_cluster);
  if (combining.kept_vectors() <= most) return {};
  return cat(problem.dims[1], " channels; expected at most ", most * combining.lanes());
}

std::int64_t NormalizationPasses::vectors() const {
  return combining.combined_vectors() * problem.dims[0];
}

std::int64_t NormalizationPasses::blocks(const BlockLayout& layout) const {
  return ceil_div(combining.kept_vectors(), layout.results());
}

BlockLayout NormalizationPasses::layout(bool wide) const {
  BlockLayout out;
  const int threads = wide ? usual_threads : threads_at_once;
  const std::int64_t terms = combining.combined_vectors() * usual_images;
  const int enough = power_at_least(ceil_div(terms, unroll_of(problem, combining, false)));
  if (combining.inner_combined) {
    out.ty = std::clamp(enough, std::min(power_at_most(terms), 8), threads);
  } else {
    const std::int64_t kept = combining.kept_vectors();
    const std::int64_t bytes = combining.vector * static_cast<std::int64_t>(size_of(problem.type));
    out.tx = std::min(32, power_at_least(kept));
    const auto longer_than_a_sector = [&] { return out.tx > 1 && out.tx * bytes > 32; };
    const auto many_idle = [&] { return (ceil_div(kept, out.tx) * out.tx - kept) * 8 > kept; };
    const auto few_blocks = [&] {
      return 3 * ceil_div(kept, out.tx) * device.largest_cluster < 2 * device.multiprocessors;
    };
    while (longer_than_a_sector() && (many_idle() || (!wide && few_blocks()))) out.tx /= 2;
    out.ty = std::min(enough, threads / out.tx);
  }
  out.groups = threads / (out.tx * out.ty);
  return out;
}

std::int64_t NormalizationPasses::places(const BlockLayout& layout) const {
  return std::int64_t{threads_at_once} / layout.threads() * device.multiprocessors;
}

double NormalizationPasses::busy(const BlockLayout& layout, int parts) const {
  const std::int64_t all = std::max<std::int64_t>(blocks(layout) * parts, 1);
  return static_cast<double>(all) /
         static_cast<double>(round_up(all, std::max<std::int64_t>(places(layout), 1)));
}

// Twice as many as fill the chip's places at once, and so on, are taken only where the last ones
// leave fewer places idle.
int NormalizationPasses::parts(const BlockLayout& layout, bool clustered) const {
  const std::int64_t most =
      clustered
          ? device.largest_cluster
          : std::max<std::int64_t>(
                vectors() / (std::int64_t{layout.ty} * unroll_of(problem, combining, false)), 1);
  const std::int64_t fill =
      std::clamp<std::int64_t>(places(layout) / std::max<std::int64_t>(blocks(layout), 1), 1, most);
  int best = static_cast<int>(clustered ? power_at_most(fill) : fill);
  const auto enough = [&](std::int64_t parts) {
    return parts <= most && vectors() / layout.ty >= parts * 2;
  };
  while (clustered && best > 1 && !enough(best)) best /= 2;
  for (std::int64_t next = best; enough(next) && next <= std::int64_t{best} * 8;
       clustered ? next *= 2 : ++next)
    if (busy(layout, static_cast<int>(next)) > 1.05 * busy(layout, best))
      best = static_cast<int>(next);
  return best;
}

std::size_t NormalizationPasses::workspace(const BlockLayout&, int parts) const {
  return static_cast<std::size_t>(combining.kept_vectors() * combining.lanes() * parts * 2) *
         size_of(problem.parameter_type());
}

Step NormalizationPasses::step(const char* name, const BlockLayout& layout, int parts,
                               bool partial) const {
  Step out;
  KernelSpec& spec = out.kernel;
  spec.engine = "normalization";
  spec.file = cat("normalization/", name, ".cu");
  spec.entry = name;
  const bool statistics = std::string_view(name) == "statistics";
  const int unroll = unroll_of(problem, combining, statistics);
  spec.tile = cat(layout.tx, "x", layout.ty, "x", layout.groups, " threads, ", unroll, " x ",
                  combining.vector, " elements a turn");
  const auto add = [&](std::string constant, auto value) {
    spec.constants.push_back({std::move(constant), value, ""});
  };
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(problem.parameter_type()));
  add("BACKWARD", backward());
  add("MOMENTS", problem.pass == NormalizationPass::moments);
  add("STORES_GRADIENT", problem.pass == NormalizationPass::gradient);
  add("FROZEN", problem.frozen);
  add("RUNNING", problem.running);
  add("HAS_RESIDUAL", problem.residual);
  add("GIVEN", !has_statistics());
  add("OF_VARIANCE", problem.pass == NormalizationPass::inference);
  add("ACTIVATION", static_cast<std::int64_t>(problem.activation.mode));
  add("FROM_OUTPUT", gradient_from_output(problem.activation));
  const bool own = problem.over != NormalizationOver::batch;
  const bool of_groups = problem.over == NormalizationOver::group;
  add("CENTERED", true);  // these passes' sums have both parts
  add("OWN_STATISTICS", own);
  add("OF_GROUPS", of_groups);
  add("CHANNELS_OF_GROUP", of_groups ? problem.dims[1] / problem.groups : 1);
  add("UNROLL", std::int64_t{unroll});
  add("MIN_BLOCKS", std::int64_t{threads_at_once / layout.threads()});
  add_combining_constants(spec.constants, combining, layout, device.largest_cluster);
  std::size_t tensor = 0;
  constexpr const char* prefixes[] = {"X", "RESIDUAL", "DY", "DRESIDUAL", "OUT"};
  for (std::size_t i = 0; i < std::size(tensor_names); ++i) {
    const auto found = std::find_if(operands.begin(), operands.end(), [&](const Operand& operand) {
      return is_named(operand, tensor_names[i]);
    });
    // A tensor that the problem lacks has x's constants, which the kernel does not use.
    const bool present = found != operands.end();
    add_combining_strides(spec.constants, combining, prefixes[i], present ? tensor++ : 0,
                          present ? found->strides[0] : 0);
  }
  add_combining_strides(spec.constants, combining, "S", tensor, own ? problem.statistics() : 0);
  const bool runs = combining.inner_combined && !combining.combined.empty();
  add("S_LANE", runs ? combining.combined.back().strides[tensor] : 0);

  LaunchSpec& launch = out.launch;
  launch.empty = problem.dims[0] == 0 && !has_statistics();  // those of nothing are 0
  launch.shape.grid = {static_cast<std::uint32_t>(blocks(layout) * parts), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(layout.threads()), 1, 1};
  NormalizationParams params{};
  params.epsilon = problem.epsilon;
  params.coef[0] = problem.activation.coefficient;
  params.coef[1] = problem.activation.coefficient2;
  const auto count = static_cast<double>(problem.count());
  params.share = 1 / std::max(count, 1.0);
  params.unbiased = 1 / std::max(count - 1, 1.0);
  params.images = problem.dims[0];
  const std::int64_t sharing = std::int64_t{parts} * layout.ty;
  params.steps = vectors() / sharing;
  params.rest = static_cast<unsigned>(vectors() % sharing);
  params.parts = static_cast<unsigned>(parts);
  launch.set_parameters(params);
  set_operands(launch);
  if (partial)
    launch.patches.push_back(
        {LaunchSpec::Hole::workspace, 0, offsetof(NormalizationParams, partials)});
  return out;
}

void NormalizationPasses::set_operands(LaunchSpec& launch) const {
  set_normalization_operands(launch, operands);
}

void set_normalization_operands(LaunchSpec& launch, const std::vector<Operand>& operands) {
  using Hole = LaunchSpec::Hole;
  const auto patch = [&](Hole hole, std::size_t operand, std::size_t offset) {
    launch.patches.push_back(
        {hole, static_cast<std::uint8_t>(operand), static_cast<std::uint16_t>(offset)});
  };
  const std::pair<std::string_view, std::size_t> places[] = {
      {"x", offsetof(NormalizationParams, x)},
      {"parts", offsetof(NormalizationParams, x)},
      {"residual", offsetof(NormalizationParams, residual)},
      {"dy", offsetof(NormalizationParams, dy)},
      {"scale", offsetof(NormalizationParams, scale)},
      {"bias", offsetof(NormalizationParams, bias)},
      {"mean", offsetof(NormalizationParams, mean)},
      {"deviation", offsetof(NormalizationParams, deviation)},
      {"variance", offsetof(NormalizationParams, deviation)},
      {"running_mean", offsetof(NormalizationParams, running_mean)},
      {"running_variance", offsetof(NormalizationParams, running_variance)},
      {"dscale", offsetof(NormalizationParams, dscale)},
      {"dbias", offsetof(NormalizationParams, dbias)},
      {"dresidual", offsetof(NormalizationParams, dresidual)},
      {"y", offsetof(NormalizationParams, out)},
      {"dx", offsetof(NormalizationParams, out)},
      {"moments", offsetof(NormalizationParams, out)}};
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (const auto& [operand, offset] : places)
      if (operands[i].name == operand) patch(Hole::operand, i, offset);
  patch(Hole::alpha, 0, offsetof(NormalizationParams, alpha));
  patch(Hole::beta, 0, offsetof(NormalizationParams, beta));
  patch(Hole::alpha2, 0, offsetof(NormalizationParams, factor));
}

Step NormalizationPasses::statistics(const BlockLayout& layout, int parts, bool partial) const {
  Step out = step("statistics", layout, parts, partial);
  const std::uint32_t totals = static_cast<std::uint32_t>(layout.results() * combining.lanes()) *
                               2 * static_cast<std::uint32_t>(size_of(problem.parameter_type()));
  out.kernel.shared_memory =
      layout.combine_bytes(combining.lanes(), problem.parameter_type()) + in_vectors(totals) +
      in_vectors(static_cast<std::uint32_t>(device.largest_cluster) * totals);
  out.kernel.constants.push_back({"PARTIAL", partial, ""});
  out.kernel.constants.push_back({"PART_THREADS", std::int64_t{layout.ty}, ""});
  out.kernel.constants.push_back({"LARGEST_CLUSTER", std::int64_t{device.largest_cluster}, ""});
  out.kernel.constants.push_back({"SHARED_BYTES", std::int64_t{out.kernel.shared_memory}, ""});
  out.launch.shape.shared_memory = out.kernel.shared_memory;
  if (partial) {
    out.kernel.tile += ", three steps";
  } else {
    // One kernel serves all batch sizes, and some of them need clusters.
    out.kernel.clustered = device.largest_cluster > 1;
    out.launch.shape.cluster = static_cast<std::uint32_t>(parts);
  }
  return out;
}

Step NormalizationPasses::finish(const BlockLayout& statistics, int parts) const {
  BlockLayout layout;  // 128 threads for each group of channels
  layout.ty = 128;
  layout.groups = usual_threads / layout.ty;
  Step out = step("finish", layout, 1, true);
  out.kernel.shared_memory = layout.combine_bytes(combining.lanes(), problem.parameter_type());
  out.launch.shape.shared_memory = out.kernel.shared_memory;
  // What the first step's blocks had: their threads, not those of this step.
  out.kernel.constants.push_back({"PART_THREADS", std::int64_t{statistics.ty}, ""});
  NormalizationParams params{};
  std::memcpy(&params, out.launch.parameters.data(), sizeof params);
  const std::int64_t sharing = std::int64_t{parts} * statistics.ty;
  params.steps = vectors() / sharing;
  params.rest = static_cast<unsigned>(vectors() % sharing);
  params.parts = static_cast<unsigned>(parts);
  out.launch.set_parameters(params);
  return out;
}

Step NormalizationPasses::apply() const {
  const BlockLayout wide = layout(true);
  return step("apply", wide, parts(wide, false), false);
}

Step NormalizationPasses::combine() const {
  Step out;
  KernelSpec& spec = out.kernel;
  spec.engine = "normalization";
  spec.file = "normalization/combine.cu";
  spec.entry = "combine";
  constexpr std::int64_t channels_of_block = 128;
  spec.tile = cat(channels_of_block, " channels");
  spec.constants = {{"compute_t", kernel_type(problem.parameter_type()), ""},
                    {"RUNNING", problem.running, ""},
                    {"CHANNELS", problem.dims[1], ""},
                    {"THREADS", channels_of_block, ""}};
  LaunchSpec& launch = out.launch;
  launch.shape.grid = {static_cast<std::uint32_t>(ceil_div(problem.dims[1], channels_of_block)), 1,
                       1};
  launch.shape.block = {static_cast<std::uint32_t>(channels_of_block), 1, 1};
  NormalizationParams params{};
  params.epsilon = problem.epsilon;
  params.images = problem.dims[0];
  launch.set_parameters(params);
  set_operands(launch);
  return out;
}

}  // namespace kiln
