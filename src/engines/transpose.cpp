#include "engines/transpose.hpp"

#include <algorithm>
#include <limits>

#include "core/text.hpp"
#include "engines/axes.hpp"
#include "engines/pointwise.hpp"

namespace kiln {
namespace {

constexpr std::int64_t limit32 = std::numeric_limits<std::int32_t>::max();

struct Plane {
  Axis a, b;                 // the output's innermost axis, the input's
  std::vector<Axis> others;  // two
};

// Tensor 0 is the input, 1 the output.
std::variant<Plane, Refusal> find_plane(const PointwiseProblem& problem) {
  std::vector<Axis> axes =
      image_axes(problem.dims, {problem.views[0].strides, problem.views[1].strides}, 1);
  if (axes.size() < 2) return Refusal{"the image is one run of elements in both operands"};
  if (axes.size() > 4) return Refusal{"more than four axes"};
  if (axes.back().strides[1] != 1) return Refusal{"the output's innermost stride is not 1"};
  if (axes.back().strides[0] == 1 || axes.back().strides[0] == 0)
    return Refusal{"both operands run along the same dimension"};
  Plane plane;
  plane.a = axes.back();
  axes.pop_back();
  const auto inner =
      std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.strides[0] == 1; });
  if (inner == axes.end()) return Refusal{"the input's innermost stride is not 1"};
  plane.b = *inner;
  axes.erase(inner);
  constexpr std::int64_t least = 8;
  if (plane.a.size < least || plane.b.size < least)
    return Refusal{cat("a plane of ", plane.a.size, " x ", plane.b.size,
                       " elements; below 8 a tile would be mostly idle")};
  while (axes.size() < 2) axes.insert(axes.begin(), Axis{1, {0, 0}, false});
  plane.others = axes;
  return plane;
}

// Elements that one access may take along `along`, the other axes' strides given.
int vector_of(DataType type, const Axis& along, const Axis& across, const std::vector<Axis>& others,
              std::int64_t batch_stride, std::size_t tensor) {
  const auto fits = [&](int count) {
    bool all =
        along.size % count == 0 && across.strides[tensor] % count == 0 && batch_stride % count == 0;
    for (const Axis& axis : others) all = all && axis.strides[tensor] % count == 0;
    return all;
  };
  int count = static_cast<int>(16 / size_of(type));
  while (count > 1 && !fits(count)) count /= 2;
  return count;
}

}  // namespace

bool TransposeEngine::is_for(const Problem& problem) const {
  const auto* pointwise = std::get_if<PointwiseProblem>(&problem);
  return pointwise != nullptr && pointwise->op == PointwiseOp::copy;
}

std::variant<Proposal, Refusal> TransposeEngine::propose(const Problem& any,
                                                         const DeviceDescription&) const {
  const auto& problem = std::get<PointwiseProblem>(any);
  auto found = find_plane(problem);
  if (auto* refusal = std::get_if<Refusal>(&found)) return *refusal;
  const Plane& plane = std::get<Plane>(found);
  const PointwiseProblem::View &in = problem.views[0], &out = problem.views[1];

  // 8 KB of the wider operand a tile, or more, so that enough of them are in flight.
  const std::size_t widest = std::max(size_of(in.type), size_of(out.type));
  const std::int64_t tile_a = 32, tile_b = widest == 2 ? 128 : 64;
  const int vector_a = vector_of(out.type, plane.a, plane.b, plane.others, out.strides[0], 1);
  const int vector_b = vector_of(in.type, plane.b, plane.a, plane.others, in.strides[0], 0);

  KernelSpec spec;
  spec.engine = "transpose";
  spec.file = "pointwise/transpose.cu";
  spec.entry = "transpose";
  spec.tile = cat(tile_a, "x", tile_b, ", ", vector_b, " read and ", vector_a,
                  " written an access, 256 threads");
  const DataType compute = problem.compute_type();
  spec.shared_memory =
      static_cast<std::uint32_t>(tile_a * tile_b) * static_cast<std::uint32_t>(size_of(compute));
  const auto add = [&](std::string name, auto value) {
    spec.constants.push_back({std::move(name), value, ""});
  };
  const auto tiles = [](std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; };
  const std::int64_t tiles_a = tiles(plane.a.size, tile_a), tiles_b = tiles(plane.b.size, tile_b);
  const std::int64_t blocks =
      tiles_a * tiles_b * plane.others[0].size * plane.others[1].size * problem.dims[0];
  if (blocks > limit32)
    return Refusal{cat(blocks, " tiles; a launch has at most ", limit32, " thread blocks")};
  add("compute_t", kernel_type(compute));
  add("IN0_t", kernel_type(in.type));
  add("OUT_t", kernel_type(out.type));
  add("TILE_A", tile_a);
  add("TILE_B", tile_b);
  add("VECTOR_A", std::int64_t{vector_a});
  add("VECTOR_B", std::int64_t{vector_b});
  add("SIZE_A", plane.a.size);
  add("SIZE_B", plane.b.size);
  const auto add_divisor = [&](const char* name, std::int64_t divisor) {
    add(name, make_magic(static_cast<std::uint32_t>(divisor), limit32));
  };
  add_divisor("DIV_TILES_A", tiles_a);
  add_divisor("DIV_TILES_B", tiles_b);
  add_divisor("DIV_SIZE_0", plane.others[0].size);
  add_divisor("DIV_SIZE_1", plane.others[1].size);
  add("IN0_STRIDE_N", in.strides[0]);
  add("OUT_STRIDE_N", out.strides[0]);
  for (int i = 0; i < 2; ++i) {
    add(cat("IN0_STRIDE_", i), plane.others[i].strides[0]);
    add(cat("OUT_STRIDE_", i), plane.others[i].strides[1]);
  }
  add("IN0_STRIDE_A", plane.a.strides[0]);
  add("OUT_STRIDE_B", plane.b.strides[1]);

  Proposal proposal{std::move(spec), pointwise_launch(problem, blocks)};
  proposal.launch.shape.shared_memory = proposal.kernel.shared_memory;
  return proposal;
}

}  // namespace kiln
