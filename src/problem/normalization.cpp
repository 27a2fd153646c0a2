#include "problem/normalization.hpp"

#include <cmath>
#include <string_view>

#include "core/enumeration.hpp"
#include "core/error.hpp"
#include "problem/line/shape_line.hpp"
#include "problem/tensor/checks.hpp"
#include "problem/tensor/fold.hpp"

namespace kiln {
namespace {

struct Named {
  const Tensor* tensor;
  const char* name;
  bool written;
  Dims NormalizationProblem::*strides;
};

// Sets over what statistics are taken. `list`: the folded tensors; name: of the first one.
void set_statistics(NormalizationProblem& problem, const NormalizationSpec& spec,
                    const char* name) {
  if (spec.statistics == KILN_NORMALIZATION_BATCH) return;
  if (problem.pass != NormalizationPass::training && problem.pass != NormalizationPass::backward)
    fail(KILN_STATUS_BAD_PARAM, "normDesc has statistics of ", name_of(spec.statistics),
         "; expected those of the batch, which alone this function takes");
  if (spec.frozen && problem.pass == NormalizationPass::backward)
    fail(KILN_STATUS_BAD_PARAM, "normDesc is frozen and has statistics of ",
         name_of(spec.statistics), "; expected one that is not, or statistics of the batch");
  problem.running = false;
  problem.centered = spec.centered;
  const std::int64_t channels = problem.dims[1];
  if (spec.statistics == KILN_NORMALIZATION_PIXEL) {
    problem.over = NormalizationOver::pixel;
    return;
  }
  problem.over = NormalizationOver::group;
  problem.groups = spec.statistics == KILN_NORMALIZATION_INSTANCE ? channels : spec.groups;
  if (channels % problem.groups != 0)
    fail(KILN_STATUS_BAD_PARAM, "groups is ", problem.groups, "; expected a divisor of ", name,
         "'s ", channels, channels == 1 ? " channel" : " channels");
}

// Checks the tensors against the last one, folds them together, and keeps their sizes and strides.
NormalizationProblem make(NormalizationPass pass, const NormalizationSpec& spec,
                          const std::vector<Named>& tensors) {
  check_normalization(spec);
  const Named& result = tensors.back();
  for (const Named& each : tensors) {
    check_given(*each.tensor, each.name);
    if (each.tensor->rank < 2)
      fail(KILN_STATUS_BAD_PARAM, each.name, " has 1 dimension; expected at least 2, of which the ",
           "second is the channels");
    check_same_type(*each.tensor, each.name, *result.tensor, result.name);
    check_same_sizes(*each.tensor, each.name, *result.tensor, result.name);
    if (each.written) check_writable(*each.tensor, each.name);
  }
  if (spec.statistics == KILN_NORMALIZATION_PIXEL && result.tensor->rank > operand_rank)
    fail(KILN_STATUS_NOT_SUPPORTED, result.name, " has ", result.tensor->rank,
         " dimensions; expected at most ", operand_rank,
         " with statistics of pixels, which lie as space does");
  std::vector<Tensor> list;
  list.reserve(tensors.size());
  for (const Named& each : tensors) list.push_back(*each.tensor);
  list = folded(list, list.size() - 1, Fold::space);
  NormalizationProblem problem;
  problem.type = list.back().type;
  problem.pass = pass;
  problem.rank = list.back().rank - 2;
  problem.affine = spec.affine;
  problem.bias = spec.affine && spec.bias && pass != NormalizationPass::backward_apply;
  problem.running = pass == NormalizationPass::training && spec.running;
  problem.frozen = pass == NormalizationPass::backward && spec.frozen;
  const bool takes_root =
      pass == NormalizationPass::training || pass == NormalizationPass::inference;
  if (takes_root) problem.epsilon = spec.epsilon;
  problem.activation = make_activation(spec.activation);
  problem.dims = make_operand("", list.back()).dims;
  set_statistics(problem, spec, tensors.front().name);
  for (std::size_t i = 0; i < list.size(); ++i)
    problem.*tensors[i].strides = make_operand("", list[i]).strides;
  return problem;
}

void add_residual(std::vector<Named>& tensors, const Tensor* residual) {
  if (residual != nullptr)
    tensors.push_back({residual, "residualDesc", false, &NormalizationProblem::residual_strides});
}

NormalizationProblem make_forward(NormalizationPass pass, const NormalizationSpec& spec,
                                  const Tensor& x, const Tensor* residual, const Tensor& y) {
  std::vector<Named> tensors{{&x, "xDesc", false, &NormalizationProblem::x_strides}};
  add_residual(tensors, residual);
  tensors.push_back({&y, "yDesc", true, &NormalizationProblem::y_strides});
  NormalizationProblem problem = make(pass, spec, tensors);
  problem.residual = residual != nullptr;
  return problem;
}

constexpr const char* pass_names[] = {"fwd",      "inference", "apply",   "bwd",
                                      "gradient", "bwd_apply", "moments", "combine"};

// That of the innermost dimension.
std::int64_t stride_of(std::int64_t size) { return size > 1 ? 1 : 0; }

Operand of_channels(const NormalizationProblem& p, const char* name, bool written = false) {
  const std::int64_t channels = p.dims[1];
  return {
      name, p.parameter_type(), {1, channels, 1, 1, 1}, {0, stride_of(channels), 0, 0, 0}, written};
}

// A mean or a deviation of whatever elements share one.
Operand of_statistics(const NormalizationProblem& p, const char* name, bool written = false) {
  if (p.over == NormalizationOver::batch) return of_channels(p, name, written);
  Operand out{name, p.parameter_type(), {p.dims[0], p.groups, 1, 1, 1}, {}, written};
  if (p.over == NormalizationOver::pixel)
    out.dims = {p.dims[0], 1, p.dims[2], p.dims[3], p.dims[4]};
  out.strides = dense_operand_strides(KILN_TENSOR_NCHW, out.dims);
  out.strides[0] = p.statistics();
  return out;
}

}  // namespace

DataType NormalizationProblem::parameter_type() const { return compute_type(type); }

std::int64_t NormalizationProblem::count() const {
  switch (over) {
    case NormalizationOver::group: return dims[1] / groups * space();
    case NormalizationOver::pixel: return dims[1];
    default: return dims[0] * space();
  }
}

std::int64_t NormalizationProblem::statistics() const {
  switch (over) {
    case NormalizationOver::group: return groups;
    case NormalizationOver::pixel: return space();
    default: return dims[1];
  }
}

void check_normalization(const NormalizationSpec& spec) {
  if (!(spec.epsilon >= 0) || std::isinf(spec.epsilon))
    fail(KILN_STATUS_BAD_PARAM, "epsilon is ", spec.epsilon, "; expected a finite number from 0");
  check_enumerator("statistics", spec.statistics);
  const bool in_groups = spec.statistics == KILN_NORMALIZATION_GROUP;
  if (in_groups && spec.groups < 1)
    fail(KILN_STATUS_BAD_PARAM, "groups is ", spec.groups, "; expected at least 1");
  if (!in_groups && spec.groups != 0)
    fail(KILN_STATUS_BAD_PARAM, "groups is ", spec.groups, "; expected 0 with statistics of ",
         name_of(spec.statistics));
  if (!spec.centered && spec.statistics == KILN_NORMALIZATION_BATCH)
    fail(KILN_STATUS_BAD_PARAM, "centered is 0; expected 1 with statistics of the batch");
  make_activation(spec.activation);
}

NormalizationProblem make_normalization_training(const NormalizationSpec& spec, const Tensor& x,
                                                 const Tensor* residual, const Tensor& y) {
  NormalizationProblem problem = make_forward(NormalizationPass::training, spec, x, residual, y);
  if (problem.over == NormalizationOver::batch && problem.count() < 2)
    fail(KILN_STATUS_BAD_PARAM, "xDesc has sizes ", sizes_text(x), ", ", problem.count(),
         problem.count() == 1 ? " element" : " elements",
         " a channel; expected at least 2, from which training estimates a variance");
  return problem;
}

NormalizationProblem make_normalization_inference(const NormalizationSpec& spec, const Tensor& x,
                                                  const Tensor* residual, const Tensor& y) {
  return make_forward(NormalizationPass::inference, spec, x, residual, y);
}

NormalizationProblem make_normalization_apply(const NormalizationSpec& spec, const Tensor& x,
                                              const Tensor* residual, const Tensor& y) {
  return make_forward(NormalizationPass::apply, spec, x, residual, y);
}

NormalizationProblem make_normalization_backward(const NormalizationSpec& spec, const Tensor& x,
                                                 const Tensor* residual, const Tensor& dy,
                                                 const Tensor* dresidual, const Tensor& dx) {
  if ((residual == nullptr) != (dresidual == nullptr))
    fail(KILN_STATUS_BAD_PARAM, residual == nullptr ? "residualDesc" : "dresidualDesc",
         " is null; expected both residualDesc and dresidualDesc, or neither");
  std::vector<Named> tensors{{&x, "xDesc", false, &NormalizationProblem::x_strides}};
  add_residual(tensors, residual);
  tensors.push_back({&dy, "dyDesc", false, &NormalizationProblem::dy_strides});
  if (dresidual != nullptr)
    tensors.push_back({dresidual, "dresidualDesc", true, &NormalizationProblem::dresidual_strides});
  tensors.push_back({&dx, "dxDesc", true, &NormalizationProblem::dx_strides});
  NormalizationProblem problem = make(NormalizationPass::backward, spec, tensors);
  problem.residual = residual != nullptr;
  return problem;
}

NormalizationProblem make_normalization_gradient(const NormalizationSpec& spec, const Tensor& x,
                                                 const Tensor* residual, const Tensor& dy,
                                                 const Tensor& dx) {
  std::vector<Named> tensors{{&x, "xDesc", false, &NormalizationProblem::x_strides}};
  add_residual(tensors, residual);
  tensors.push_back({&dy, "dyDesc", false, &NormalizationProblem::dy_strides});
  tensors.push_back({&dx, "dxDesc", true, &NormalizationProblem::dx_strides});
  NormalizationProblem problem = make(NormalizationPass::gradient, spec, tensors);
  problem.residual = residual != nullptr;
  return problem;
}

NormalizationProblem make_normalization_backward_apply(const NormalizationSpec& spec,
                                                       const Tensor& x, const Tensor& dy,
                                                       const Tensor& dx) {
  if (spec.frozen)
    fail(KILN_STATUS_BAD_PARAM, "normDesc is frozen; expected one that is not, for a frozen one's ",
         "gradient has no sums");
  NormalizationSpec of_sums = spec;
  of_sums.activation = {};
  return make(NormalizationPass::backward_apply, of_sums,
              {{&x, "xDesc", false, &NormalizationProblem::x_strides},
               {&dy, "dyDesc", false, &NormalizationProblem::dy_strides},
               {&dx, "dxDesc", true, &NormalizationProblem::dx_strides}});
}

NormalizationProblem make_normalization_moments(const Tensor& x) {
  NormalizationSpec spec;
  spec.affine = false;
  return make(NormalizationPass::moments, spec,
              {{&x, "xDesc", false, &NormalizationProblem::x_strides}});
}

NormalizationProblem make_normalization_combine(const NormalizationSpec& spec, DataType type,
                                                std::int64_t parts, std::int64_t channels) {
  check_normalization(spec);
  if (spec.statistics != KILN_NORMALIZATION_BATCH)
    fail(KILN_STATUS_BAD_PARAM, "normDesc has statistics of ", name_of(spec.statistics),
         "; expected those of the batch, whose parts have moments");
  check_enumerator("dataType", type);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (parts < 1 || parts > most)
    fail(KILN_STATUS_BAD_PARAM, "parts is ", parts, "; expected 1 to ", most);
  if (channels < 1 || channels > most)
    fail(KILN_STATUS_BAD_PARAM, "channels is ", channels, "; expected 1 to ", most);
  NormalizationProblem problem;
  problem.type = compute_type(type);
  problem.pass = NormalizationPass::combine;
  problem.rank = 0;
  problem.affine = problem.bias = false;
  problem.running = spec.running;
  problem.epsilon = spec.epsilon;
  problem.dims = {parts, channels, 1, 1, 1};
  return problem;
}

std::vector<Operand> operands_of(const NormalizationProblem& p) {
  using Pass = NormalizationPass;
  const bool backward = is_backward(p.pass), sums_given = p.pass == Pass::backward_apply;
  const std::int64_t channels = p.dims[1];
  const Operand moments{"moments",
                        p.parameter_type(),
                        {3, channels, 1, 1, 1},
                        {channels, stride_of(channels), 0, 0, 0},
                        true};
  std::vector<Operand> all;
  const auto add_statistics = [&] {
    if (p.running) {
      for (const char* name : {"running_mean", "running_variance"}) {
        all.push_back(of_channels(p, name, true));
        all.back().updated = true;
      }
    }
    if (p.centered) all.push_back(of_statistics(p, "mean", true));
    all.push_back(of_statistics(p, "deviation", true));
  };
  if (p.pass == Pass::combine) {
    all.push_back({"parts",
                   p.parameter_type(),
                   {p.dims[0], 3, channels, 1, 1},
                   {3 * channels, channels, stride_of(channels), 0, 0}});
    all.back().positive = true;
    add_statistics();
    all.push_back(moments);
    return all;
  }
  all.push_back({"x", p.type, p.dims, p.x_strides, false, p.pass != Pass::moments});
  if (p.pass == Pass::moments) {
    all.push_back(moments);
    return all;
  }
  if (p.affine) all.push_back(of_channels(p, "scale"));
  if (p.bias) all.push_back(of_channels(p, "bias"));
  if (p.pass != Pass::training) {
    if (p.centered) all.push_back(of_statistics(p, "mean"));
    all.push_back(of_statistics(p, p.pass == Pass::inference ? "variance" : "deviation"));
    all.back().positive = true;
  }
  if (p.residual) all.push_back({"residual", p.type, p.dims, p.residual_strides, false, true});
  if (p.pass == Pass::training) add_statistics();
  if (!backward) {
    all.push_back({"y", p.type, p.dims, p.y_strides, true});
    return all;
  }
  all.push_back({"dy", p.type, p.dims, p.dy_strides, false, true});
  const bool of_batch = p.over == NormalizationOver::batch;
  if (of_batch || p.affine) all.push_back(of_channels(p, "dscale", !sums_given));
  if (of_batch || p.bias) all.push_back(of_channels(p, "dbias", !sums_given));
  if (p.residual && p.pass == Pass::backward)
    all.push_back({"dresidual", p.type, p.dims, p.dresidual_strides, true});
  all.push_back({"dx", p.type, p.dims, p.dx_strides, true});
  return all;
}

std::string to_line(const NormalizationProblem& p) {
  using Pass = NormalizationPass;
  std::string flags;
  if (p.pass != Pass::training) flags += cat("--dir ", pass_names[static_cast<int>(p.pass)], " ");
  if (p.over == NormalizationOver::pixel) flags += "--over pixel ";
  if (p.over == NormalizationOver::group)
    flags +=
        p.groups == p.dims[1] ? "--over instance " : cat("--over group --groups ", p.groups, " ");
  if (!p.centered) flags += "--rms ";
  if (p.frozen) flags += "--frozen ";
  const bool elementwise = p.pass != Pass::moments && p.pass != Pass::combine;
  if (!p.affine && elementwise) flags += "--no-affine ";
  if (p.affine && !p.bias && p.pass != Pass::backward_apply) flags += "--no-bias ";
  const bool may_run = p.pass == Pass::training || p.pass == Pass::combine;
  if (may_run && !p.running && p.over == NormalizationOver::batch) flags += "--no-running ";
  if (p.residual) flags += "--residual ";
  if (p.activation.mode != KILN_ACTIVATION_IDENTITY) flags += print_activation(p.activation);
  if (p.epsilon != NormalizationSpec{}.epsilon) flags += cat("--epsilon ", p.epsilon, " ");
  std::vector<Operand> tensors;  // of x's sizes; of combine, one for all: parts and channels
  if (p.pass == Pass::combine)
    tensors.push_back({"x", p.type, p.dims, dense_operand_strides(KILN_TENSOR_NCHW, p.dims)});
  for (const Operand& operand : operands_of(p))
    for (const std::string_view name : {"x", "residual", "y", "dy", "dresidual", "dx"})
      if (operand.name == name) tensors.push_back(operand);
  return flags + print_operand_flags(tensors, p.rank) + print_shapes(tensors, p.rank);
}

}  // namespace kiln
