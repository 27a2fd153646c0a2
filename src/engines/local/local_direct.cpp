#include "engines/local/local_direct.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/local/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t threads = 256;
constexpr std::int64_t most_images = 8;  // a thread's sums

struct Axis {
  int number;                 // as the kernel counts them
  std::int64_t size, stride;  // stride: from one's weights to the next one's
};

// The axes along which threads run, those with the smallest stride of weights first.
std::vector<Axis> axes_of(const LocalProblem& problem) {
  const ConvolutionProblem& conv = problem.conv;
  const OuterDims& outer = problem.outer_strides;
  std::vector<Axis> axes;
  switch (conv.pass) {
    case ConvolutionPass::fprop:
      for (int i = 0; i < 3; ++i) axes.push_back({i, conv.out[i], outer[i + 1]});
      axes.push_back({3, conv.out_channels, conv.w_strides[0]});
      break;
    case ConvolutionPass::dgrad:
      for (int i = 0; i < 3; ++i) axes.push_back({i, conv.in[i], outer[i + 1]});
      axes.push_back({3, conv.in_channels, conv.w_strides[1]});
      break;
    case ConvolutionPass::wgrad:
      for (int i = 0; i < 3; ++i) axes.push_back({i + 1, conv.out[i], outer[i + 1]});
      for (int i = 0; i < operand_rank; ++i)
        axes.push_back({i + 4, conv.w_dims()[i], conv.w_strides[i]});
      break;
  }
  // An axis of one element or of stride 0 comes last.
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    const auto key = [](const Axis& axis) {
      return axis.size == 1 || axis.stride == 0 ? std::numeric_limits<std::int64_t>::max()
                                                : axis.stride;
    };
    return key(a) < key(b);
  });
  return axes;
}

// Threads for one group of images, and the number of groups.
struct Grid {
  std::int64_t elements = 1, groups = 0, images = 1;

  explicit Grid(const LocalProblem& problem) {
    for (const Axis& axis : axes_of(problem)) elements *= axis.size;
    if (problem.conv.pass == ConvolutionPass::wgrad) {
      groups = problem.per_image() ? problem.conv.batch : 1;
    } else {
      images = images_at_once(problem, most_images);
      groups = ceil_div(problem.conv.batch, images);
    }
  }
  std::int64_t blocks() const { return ceil_div(elements * groups, threads); }
};

}  // namespace

bool LocalDirectEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<LocalProblem>(problem);
}

std::variant<Proposal, Refusal> LocalDirectEngine::propose(const Problem& any,
                                                           const DeviceDescription&) const {
  const auto& problem = std::get<LocalProblem>(any);
  const Grid grid(problem);
  if (grid.blocks() > limit32)
    return Refusal{cat(grid.elements * grid.groups, " elements need ", grid.blocks(),
                       " thread blocks; a launch has at most ", limit32)};
  const bool wgrad = problem.conv.pass == ConvolutionPass::wgrad;
  KernelSpec spec = local_kernel(wgrad ? "wgrad_local_direct" : "local_direct", problem);
  spec.engine = name();
  std::vector<std::int64_t> numbers, sizes;
  for (const Axis& axis : axes_of(problem)) {
    numbers.push_back(axis.number);
    sizes.push_back(axis.size);
  }
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  add("AXES", numbers);
  add("SIZES", sizes);
  add("index_t", TypeName{grid.blocks() * threads > limit32 ? "unsigned long long" : "unsigned"});
  add("FORWARD", problem.conv.pass == ConvolutionPass::fprop);
  add("IMAGES", grid.images);
  spec.tile = cat("1 element of ", grid.images, grid.images > 1 ? " images" : " image",
                  " a thread, 256 threads");
  return Proposal{{std::move(spec), local_launch(problem, grid.blocks(), threads, 0)}};
}

double LocalDirectEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<LocalProblem>(any);
  const Grid grid(problem);
  DirectWork work;
  work.type = problem.conv.type();
  work.threads = static_cast<double>(grid.blocks() * threads);
  // Finding its element costs a thread as much as a few products.
  constexpr double place_products = 3;  // counted
  work.products = place_products + problem.conv.flops() / 2 / std::max(work.threads, 1.0);
  work.bytes = work_of(any, false).bytes;
  return direct_seconds(work, device);
}

}  // namespace kiln
