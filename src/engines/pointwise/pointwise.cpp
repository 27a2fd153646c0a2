#include "engines/pointwise/pointwise.hpp"

#include <algorithm>
#include <cstddef>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/common/axes.hpp"
#include "pointwise/pointwise_params.h"

namespace kiln {
namespace {

constexpr std::int64_t threads = 256;

std::vector<Dims> strides_of(const PointwiseProblem& problem) {
  std::vector<Dims> strides;
  for (const PointwiseProblem::View& view : problem.views) strides.push_back(view.strides);
  return strides;
}

// How threads iterate over the elements: along four axes or, `linear`, along one run of all images.
struct Walk {
  std::vector<Axis> axes;  // four
  std::int64_t image_elements = 1;
  bool linear = false;
  int vector = 1, unroll = 1;
};

// Whether the tensor is one contiguous run of elements over all images, or a single element that is
// broadcast to all.
bool is_run(const PointwiseProblem::View& view, const std::vector<Axis>& axes, std::size_t tensor,
            std::int64_t image_elements) {
  const std::int64_t inner = axes.empty() ? 1 : axes.back().strides[tensor];
  const std::int64_t step = axes.empty() ? view.strides[0] : inner;
  if (axes.size() > 1) return false;
  if (view.strides[0] == 0 && (axes.empty() || inner == 0)) return true;
  return step == 1 && view.strides[0] == image_elements;
}

// Whether vectors of `count` elements are contiguous and aligned in every operand that is not
// broadcast along the innermost axis.
bool vectors_fit(const PointwiseProblem& problem, const std::vector<Axis>& axes, int count) {
  if (axes.empty() || axes.back().size % count != 0) return false;
  for (std::size_t tensor = 0; tensor < problem.views.size(); ++tensor) {
    const std::int64_t inner = axes.back().strides[tensor];
    const bool output = tensor + 1 == problem.views.size();
    if (inner == 0 && !output) continue;
    if (inner != 1 || problem.views[tensor].strides[0] % count != 0) return false;
    for (std::size_t i = 0; i + 1 < axes.size(); ++i)
      if (axes[i].strides[tensor] % count != 0) return false;
  }
  return true;
}

// Vectors of a thread: as many as its registers hold, but fewer for small tensors, so that there
// are enough blocks to fill the chip.
int choose_unroll(const PointwiseProblem& problem, const Walk& walk,
                  const DeviceDescription& device) {
  constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size
  const std::int64_t vectors = usual_images * walk.image_elements / walk.vector;
  int unroll = walk.vector > 4 && problem.inputs() > 1 ? 2 : 4;
  while (unroll > 1 && vectors < std::int64_t{4} * device.multiprocessors * threads * unroll)
    unroll /= 2;
  return unroll;
}

Walk choose_walk(const PointwiseProblem& problem, const DeviceDescription& device) {
  Walk walk;
  walk.axes = image_axes(problem.dims, strides_of(problem), problem.inputs());
  for (int i = 1; i < operand_rank; ++i) walk.image_elements *= problem.dims[i];
  walk.linear = true;
  std::size_t widest = 1;
  for (std::size_t i = 0; i < problem.views.size(); ++i) {
    widest = std::max(widest, size_of(problem.views[i].type));
    walk.linear = walk.linear && is_run(problem.views[i], walk.axes, i, walk.image_elements);
  }
  walk.vector = static_cast<int>(16 / widest);
  if (!walk.linear)
    while (walk.vector > 1 && !vectors_fit(problem, walk.axes, walk.vector)) walk.vector /= 2;
  walk.unroll = choose_unroll(problem, walk, device);
  walk.axes = padded(walk.axes, 4);
  return walk;
}

KernelSpec make_spec(const PointwiseProblem& problem, const Walk& walk,
                     const DeviceDescription& device) {
  KernelSpec spec;
  spec.engine = "pointwise";
  spec.file = "pointwise/pointwise.cu";
  spec.entry = "pointwise";
  spec.tile = cat(walk.vector, walk.vector > 1 ? " elements" : " element", " x ", walk.unroll,
                  " a thread, 256 threads", walk.linear ? ", linear" : "");
  const auto add = [&](std::string name, auto value) {
    spec.constants.push_back({std::move(name), value, ""});
  };
  add("compute_t", kernel_type(problem.compute_type()));
  add("OPERATION", static_cast<std::int64_t>(problem.op));
  add("ACTIVATION", static_cast<std::int64_t>(problem.activation.mode));
  add("INPUTS", static_cast<std::int64_t>(problem.inputs()));
  add("LINEAR", walk.linear);
  add("VECTOR", std::int64_t{walk.vector});
  add("UNROLL", std::int64_t{walk.unroll});
  // With four blocks a multiprocessor, a thread's vectors fit in registers, except for f64; on
  // sm_120 the code needs more registers.
  const bool wide = size_of(problem.compute_type()) == 8;
  add("MIN_BLOCKS", std::int64_t{wide ? 2 : device.compute_capability >= 120 ? 3 : 4});
  add("IMAGE_ELEMENTS", walk.image_elements);

  // The axes' sizes in vectors. An index counts the vectors of an image and of one block beyond it.
  std::int64_t sizes[4];
  for (int i = 0; i < 4; ++i) sizes[i] = walk.axes[i].size;
  sizes[3] /= walk.linear ? 1 : walk.vector;
  const std::int64_t image = sizes[0] * sizes[1] * sizes[2] * sizes[3];
  const std::int64_t bound = image + threads * walk.unroll;
  const bool wide_index = bound > limit32;
  add("index_t", TypeName{wide_index ? "unsigned long long" : "unsigned"});
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    if (wide_index)
      add(name, make_wide_magic(static_cast<std::uint64_t>(divisor)));
    else
      add(name, make_magic(static_cast<std::uint32_t>(divisor), static_cast<std::uint32_t>(bound)));
  };
  add("BLOCK_DIV_IMAGE", make_wide_magic(static_cast<std::uint64_t>(image)));
  add_divisor("DIV_IMAGE", image);
  add_divisor("DIV_123", sizes[1] * sizes[2] * sizes[3]);
  add_divisor("DIV_23", sizes[2] * sizes[3]);
  add_divisor("DIV_3", sizes[3]);

  constexpr const char* names[] = {"IN0", "IN1", "OUT"};
  for (int slot = 0; slot < 3; ++slot) {
    const bool output = slot == 2;
    const bool present = output || static_cast<std::size_t>(slot) < problem.inputs();
    const std::size_t tensor = output ? problem.inputs() : static_cast<std::size_t>(slot);
    add(cat(names[slot], "_t"),
        kernel_type(present ? problem.views[tensor].type : problem.output().type));
    add(cat(names[slot], "_STRIDE_N"), present ? problem.views[tensor].strides[0] : 0);
    for (int axis = 0; axis < 4; ++axis) {
      std::int64_t stride =
          present && !walk.axes[axis].strides.empty() ? walk.axes[axis].strides[tensor] : 0;
      if (axis == 3) stride *= walk.vector;
      add(cat(names[slot], "_STRIDE_", axis), stride);
    }
    const bool along =
        present && (walk.linear ? problem.views[tensor].strides[0] != 0 || output
                                : walk.vector > 1 && walk.axes[3].strides[tensor] == 1);
    if (!output) add(cat(names[slot], "_INNER"), std::int64_t{along});
  }
  return spec;
}

}  // namespace

LaunchSpec pointwise_launch(const PointwiseProblem& problem, std::int64_t blocks) {
  LaunchSpec launch;
  launch.empty = problem.dims[0] == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  PointwiseParams params{};
  params.images = problem.dims[0];
  params.coef[0] = problem.activation.coefficient;
  params.coef[1] = problem.activation.coefficient2;
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  const auto patch = [&](Hole hole, std::size_t operand, std::size_t offset) {
    launch.patches.push_back(
        {hole, static_cast<std::uint8_t>(operand), static_cast<std::uint16_t>(offset)});
  };
  for (std::size_t i = 0; i < problem.inputs(); ++i)
    patch(Hole::operand, i, offsetof(PointwiseParams, in) + i * sizeof(void*));
  patch(Hole::operand, problem.inputs(), offsetof(PointwiseParams, out));
  patch(Hole::alpha, 0, offsetof(PointwiseParams, alpha));
  patch(Hole::beta, 0, offsetof(PointwiseParams, beta));
  patch(Hole::alpha2, 0, offsetof(PointwiseParams, alpha2));
  return launch;
}

bool PointwiseEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<PointwiseProblem>(problem);
}

std::variant<Proposal, Refusal> PointwiseEngine::propose(const Problem& any,
                                                         const DeviceDescription& device) const {
  const auto& problem = std::get<PointwiseProblem>(any);
  const Walk walk = choose_walk(problem, device);
  const std::int64_t elements = problem.dims[0] * walk.image_elements;
  const std::int64_t block = threads * walk.unroll * walk.vector;
  const std::int64_t blocks = std::max<std::int64_t>((elements + block - 1) / block, 1);
  if (blocks > limit32)
    return Refusal{
        cat(elements, " elements need ", blocks, " thread blocks; a launch has at most ", limit32)};
  return Proposal{{make_spec(problem, walk, device), pointwise_launch(problem, blocks)}};
}

}  // namespace kiln
