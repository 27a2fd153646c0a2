#include "engines/softmax/rows.hpp"

#include <cstddef>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "softmax/softmax_params.h"

namespace kiln {
namespace {

Combining combining_of(const SoftmaxProblem& problem, const std::vector<Operand>& operands) {
  std::vector<Dims> strides;
  for (const Operand& operand : operands) strides.push_back(operand.strides);
  std::array<bool, operand_rank> in_row{};
  for (int i = 1; i < operand_rank; ++i)
    in_row[i] = i == 1 || problem.mode == KILN_SOFTMAX_MODE_INSTANCE;
  return make_combining(problem.dims, strides, in_row, strides.size() - 1, strides.size(),
                        static_cast<int>(16 / size_of(problem.type)));
}

}  // namespace

SoftmaxRows::SoftmaxRows(const SoftmaxProblem& p)
    : problem(p), operands(operands_of(p)), combining(combining_of(p, operands)) {}

std::int64_t SoftmaxRows::blocks(const BlockLayout& layout) const {
  const std::int64_t results = combining.kept_vectors() * problem.dims[0];
  return (results + layout.results() - 1) / layout.results();
}

KernelSpec SoftmaxRows::kernel(const std::string& name, const BlockLayout& layout,
                               int steps) const {
  KernelSpec spec;
  spec.engine = name;
  spec.file = cat("softmax/", name, ".cu");
  spec.entry = name;
  const auto add = [&](const char* constant, auto value) {
    spec.constants.push_back({constant, value, ""});
  };
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(compute()));
  add("ALGORITHM", static_cast<std::int64_t>(problem.algorithm));
  add("BACKWARD", problem.backward);
  add_combining_constants(spec.constants, combining, layout, steps);
  add("ROWS_DIV_KEPT", make_wide_magic(static_cast<std::uint64_t>(combining.kept_vectors())));
  // Without a second input, its constants are set to the first one's; the kernel does not use them.
  constexpr const char* prefixes[] = {"IN0", "IN1", "OUT"};
  const std::size_t tensors[] = {0, problem.backward ? 1u : 0u, operands.size() - 1};
  for (int i = 0; i < 3; ++i)
    add_combining_strides(spec.constants, combining, prefixes[i], tensors[i],
                          operands[tensors[i]].strides[0]);
  return spec;
}

std::variant<Proposal, Refusal> SoftmaxRows::proposal(KernelSpec kernel, const BlockLayout& layout,
                                                      int parts) const {
  const std::int64_t grid = blocks(layout) * parts;
  if (grid > limit32)
    return Refusal{cat(combining.kept_vectors() * problem.dims[0], " rows need ", grid,
                       " thread blocks; a launch has at most ", limit32)};
  Proposal out{{std::move(kernel), {}}};
  LaunchSpec& launch = out.first().launch;
  launch.empty = grid == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(grid), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(layout.threads()), 1, 1};
  launch.shape.cluster = static_cast<std::uint32_t>(parts);
  launch.shape.shared_memory = out.first().kernel.shared_memory;
  SoftmaxParams params{};
  params.images = problem.dims[0];
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  const auto patch = [&](Hole hole, std::size_t operand, std::size_t offset) {
    launch.patches.push_back(
        {hole, static_cast<std::uint8_t>(operand), static_cast<std::uint16_t>(offset)});
  };
  for (std::size_t i = 0; i + 1 < operands.size(); ++i)
    patch(Hole::operand, i, offsetof(SoftmaxParams, in) + i * sizeof(void*));
  patch(Hole::operand, operands.size() - 1, offsetof(SoftmaxParams, out));
  patch(Hole::alpha, 0, offsetof(SoftmaxParams, alpha));
  patch(Hole::beta, 0, offsetof(SoftmaxParams, beta));
  return out;
}

}  // namespace kiln
