#include "engines/pooling/pooling.hpp"

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/pooling/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size

// Rows of outputs that a thread computes: it reads rows of x that their windows share once. Fewer
// if the threads would not fill the device, or their registers would not hold the taps.
std::int64_t rows_of(const PoolingProblem& problem, std::int64_t places, int vector,
                     std::int64_t columns, const DeviceDescription& device) {
  if (problem.backward || problem.window[1] <= problem.stride[1] || problem.dilation[1] != 1)
    return 1;
  const std::int64_t threads_of_chip = std::int64_t{1024} * device.multiprocessors;
  std::int64_t rows = vector == 1 && (columns == 1 || every_tap_inside(problem)) ? 4 : 2;
  while (rows > 1 && (rows > problem.out[1] || usual_images * places / rows < threads_of_chip))
    rows /= 2;
  return rows;
}

// Neighboring outputs that a thread computes: 2 of 16-bit planes whose rows are pairs of elements.
std::int64_t columns_of(const PoolingProblem& problem, const Operand& result, std::int64_t places,
                        int vector, const DeviceDescription& device) {
  const std::int64_t threads_of_chip = std::int64_t{1024} * device.multiprocessors;
  const auto in_pairs = [](const Dims& s) {
    return s[4] == 1 && s[0] % 2 == 0 && s[1] % 2 == 0 && s[2] % 2 == 0 && s[3] % 2 == 0;
  };
  // More would not stay in registers.
  const bool few_taps = problem.window[1] * (problem.window[2] + problem.stride[2]) <= 32;
  const bool pairs = !problem.backward && vector == 1 && size_of(problem.type) == 2 &&
                     problem.dilation[2] == 1 && few_taps && problem.in[2] % 2 == 0 &&
                     problem.out[2] % 2 == 0 && in_pairs(problem.x_strides) &&
                     in_pairs(result.strides);
  return pairs && usual_images * places >= 2 * threads_of_chip ? 2 : 1;
}

}  // namespace

bool PoolingEngine::is_for(const Problem& problem) const {
  return std::holds_alternative<PoolingProblem>(problem);
}

std::variant<Proposal, Refusal> PoolingEngine::propose(const Problem& any,
                                                       const DeviceDescription& device) const {
  const auto& problem = std::get<PoolingProblem>(any);
  // Kernels count positions in 32 bits, including padding and the reach of windows.
  for (int i = 0; i < 3; ++i) {
    const std::int64_t reach = places_counted(problem, i);
    if (reach > limit32 / 2)
      return Refusal{cat("x, its padding and the windows take ", reach, " places; at most ",
                         limit32 / 2, " can be counted in 32 bits")};
  }
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const int vector = pooling_channel_vector(problem, operands);
  const bool channels_inner = result.strides[1] == 1 && vector > 1;
  const std::int64_t planes = problem.channels / (channels_inner ? vector : 1) * result.dims[2];
  const std::int64_t columns =
      columns_of(problem, result, planes * result.dims[3] * result.dims[4], vector, device);
  const std::int64_t places_w = result.dims[4] / columns, lines = planes * places_w;
  const std::int64_t rows = rows_of(problem, lines * result.dims[3], vector, columns, device);
  const std::int64_t places_h = (result.dims[3] + rows - 1) / rows;
  const std::int64_t image = lines * places_h;
  const std::int64_t blocks = (problem.batch * image + pooling_threads - 1) / pooling_threads;
  if (blocks > limit32)
    return Refusal{cat(problem.batch * image, " elements need ", blocks,
                       " thread blocks; a launch has at most ", limit32)};
  KernelSpec spec =
      pooling_kernel(problem, result, vector, channels_inner, image, places_h, places_w);
  spec.engine = "pooling";
  spec.file = problem.backward ? "pooling/pooling_backward.cu" : "pooling/pooling_forward.cu";
  spec.entry = problem.backward ? "pooling_backward" : "pooling_forward";
  spec.constants.push_back({"ROWS", rows, "outputs of a thread, one below the other"});
  spec.constants.push_back({"COLUMNS", columns, "outputs of a thread, side by side in each row"});
  spec.tile =
      cat(vector, vector > 1 ? " channels" : " element", rows * columns > 1 ? cat(" x ", rows) : "",
          columns > 1 ? " x 2" : "", " a thread, 256 threads");
  return Proposal{{std::move(spec), pooling_launch(problem, operands, blocks, 0)}};
}

// A gradient looks at a window once for each of its elements; it took up to 14 times as long as one
// that looks at each window once (f32, NCHW, window 3, stride 2).
double PoolingEngine::seconds(const Problem& problem, const DeviceDescription& device) const {
  constexpr double repeated = 14;
  return memory_bound_seconds(work_of(problem, false).bytes, device) *
         (std::get<PoolingProblem>(problem).backward ? repeated : 1);
}

}  // namespace kiln
