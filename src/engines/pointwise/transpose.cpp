#include "engines/pointwise/transpose.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/common/axes.hpp"
#include "engines/pointwise/pointwise.hpp"

namespace kiln {
namespace {

struct Plane {
  Axis a, b;                 // the innermost axis of the output, and of the input
  std::vector<Axis> others;  // the two other axes
};

// Finds the plane that is transposed. In the axes' strides, tensor 0 is the input, 1 the output.
std::variant<Plane, Refusal> find_plane(const PointwiseProblem& problem) {
  std::vector<Axis> axes =
      image_axes(problem.dims, {problem.views[0].strides, problem.views[1].strides}, 1);
  if (axes.size() < 2)
    return Refusal{"input and output have the same order in memory, so nothing is transposed"};
  if (axes.size() > 4) return Refusal{"more than four axes"};
  if (axes.back().strides[1] != 1) return Refusal{"the output's innermost stride is not 1"};
  if (axes.back().strides[0] == 1 || axes.back().strides[0] == 0)
    return Refusal{"input and output are contiguous along the same dimension"};
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

// Elements of one access along the axis `along`, as alignment allows.
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

struct Tile {
  std::int64_t a = 0, b = 0;
  std::int64_t pitch = 0;    // elements from row to row in shared memory, a multiple of 128 bytes
  std::int64_t lanes_a = 0;  // contiguous vectors that a warp writes
  std::int64_t bytes = 0;
};

// The tile with the lowest estimate: contiguous runs in memory should be long, tiles full, and
// their number large enough for the chip.
Tile choose_tile(const Plane& plane, DataType in, DataType out, int vector_a, int vector_b,
                 const DeviceDescription& device) {
  constexpr std::int64_t usual_images = 32, most_bytes = 32 << 10;
  const auto in_size = static_cast<std::int64_t>(size_of(in));
  const auto out_size = static_cast<std::int64_t>(size_of(out));
  const std::int64_t chip = std::int64_t{5} * device.multiprocessors;  // resident blocks
  Tile best;
  double least = 0;
  for (const std::int64_t a : {16, 32, 64, 96, 128, 192, 256})
    for (const std::int64_t b : {32, 64, 96, 128, 192, 256}) {
      Tile tile{a, b};
      tile.pitch = ceil_div(b * in_size, 128) * 128 / in_size;
      tile.bytes = a * tile.pitch * in_size;
      tile.lanes_a = std::min<std::int64_t>(32, 128 / (vector_a * out_size));
      while (a % (vector_a * tile.lanes_a) != 0) tile.lanes_a /= 2;
      // A thread holds all of its elements in registers.
      if (a * b > 8 * 256 * vector_b && a * b > 4096) continue;
      if (tile.bytes > most_bytes || b % vector_b != 0 || b % (32 / tile.lanes_a) != 0) continue;
      // A run that is not aligned reads part of one more sector than it needs, in bytes:
      constexpr double more_bytes = 24;
      const auto run = [](std::int64_t elements, std::int64_t size) {
        return 1 + more_bytes / static_cast<double>(elements * size);
      };
      const double runs =
          run(std::min(a, plane.a.size), out_size) + run(std::min(b, plane.b.size), in_size);
      const std::int64_t tiles = usual_images * ceil_div(plane.a.size, a) *
                                 ceil_div(plane.b.size, b) * plane.others[0].size *
                                 plane.others[1].size;
      const double waves = std::max(1.0, static_cast<double>(tiles) / static_cast<double>(chip));
      constexpr std::int64_t start =
          1024;  // of a block, as long as moving so many elements; chosen
      const double cost = waves * static_cast<double>(a * b + start) * runs;
      if (best.a == 0 || cost < least) best = tile, least = cost;
    }
  return best;
}

}  // namespace

bool TransposeEngine::is_for(const Problem& problem) const {
  const auto* pointwise = std::get_if<PointwiseProblem>(&problem);
  return pointwise != nullptr && pointwise->op == PointwiseOp::copy;
}

std::variant<Proposal, Refusal> TransposeEngine::propose(const Problem& any,
                                                         const DeviceDescription& device) const {
  const auto& problem = std::get<PointwiseProblem>(any);
  auto found = find_plane(problem);
  if (auto* refusal = std::get_if<Refusal>(&found)) return *refusal;
  const Plane& plane = std::get<Plane>(found);
  const PointwiseProblem::View &in = problem.views[0], &out = problem.views[1];

  const int vector_a = vector_of(out.type, plane.a, plane.b, plane.others, out.strides[0], 1);
  const int vector_b = vector_of(in.type, plane.b, plane.a, plane.others, in.strides[0], 0);
  const Tile tile = choose_tile(plane, in.type, out.type, vector_a, vector_b, device);

  KernelSpec spec;
  spec.engine = "transpose";
  spec.file = "pointwise/transpose.cu";
  spec.entry = "transpose";
  spec.tile = cat(tile.a, "x", tile.b, ", ", vector_b, " read and ", vector_a,
                  " written an access, 256 threads");
  const DataType compute = problem.compute_type();
  spec.shared_memory = static_cast<std::uint32_t>(tile.bytes);
  const auto add = [&](std::string name, auto value) {
    spec.constants.push_back({std::move(name), value, ""});
  };
  const std::int64_t tiles_a = ceil_div(plane.a.size, tile.a),
                     tiles_b = ceil_div(plane.b.size, tile.b);
  const std::int64_t blocks =
      tiles_a * tiles_b * plane.others[0].size * plane.others[1].size * problem.dims[0];
  if (blocks > limit32)
    return Refusal{cat(blocks, " tiles; a launch has at most ", limit32, " thread blocks")};
  add("compute_t", kernel_type(compute));
  add("IN0_t", kernel_type(in.type));
  add("OUT_t", kernel_type(out.type));
  add("TILE_A", tile.a);
  add("TILE_B", tile.b);
  add("PITCH", tile.pitch);
  add("LANES_A", tile.lanes_a);
  add("MIN_BLOCKS", std::int64_t{3});
  const std::int64_t reach = std::max(tile.a * plane.a.strides[0], tile.b * plane.b.strides[1]);
  add("offset_t", TypeName{2 * reach > limit32 ? "long long" : "int"});
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

  Proposal proposal{{std::move(spec), pointwise_launch(problem, blocks)}};
  proposal.first().launch.shape.shared_memory = proposal.first().kernel.shared_memory;
  return proposal;
}

}  // namespace kiln
