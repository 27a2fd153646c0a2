#include "engines/pooling/pooling.hpp"

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/pooling/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size

// Rows of outputs that a thread computes: it reads rows of x that their windows share once. Fewer
// if the threads would not fill the device.
std::int64_t rows_of(const PoolingProblem& problem, std::int64_t places, int vector,
                     const DeviceDescription& device) {
  if (problem.backward || problem.window[1] <= problem.stride[1] || problem.dilation[1] != 1)
    return 1;
  const std::int64_t threads_of_chip = std::int64_t{1024} * device.multiprocessors;
  std::int64_t rows = vector == 1 ? 4 : 2;
  while (rows > 1 && (rows > problem.out[1] || usual_images * places / rows < threads_of_chip))
    rows /= 2;
  return rows;
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
  const std::int64_t lines =
      problem.channels / (channels_inner ? vector : 1) * result.dims[2] * result.dims[4];
  const std::int64_t rows = rows_of(problem, lines * result.dims[3], vector, device);
  const std::int64_t places_h = (result.dims[3] + rows - 1) / rows;
  const std::int64_t image = lines * places_h;
  const std::int64_t blocks = (problem.batch * image + pooling_threads - 1) / pooling_threads;
  if (blocks > limit32)
    return Refusal{cat(problem.batch * image, " elements need ", blocks,
                       " thread blocks; a launch has at most ", limit32)};
  KernelSpec spec = pooling_kernel(problem, result, vector, channels_inner, image, places_h);
  spec.engine = "pooling";
  spec.file = problem.backward ? "pooling/pooling_backward.cu" : "pooling/pooling_forward.cu";
  spec.entry = problem.backward ? "pooling_backward" : "pooling_forward";
  spec.constants.push_back({"ROWS", rows, "outputs of a thread, one below the other"});
  spec.tile = cat(vector, vector > 1 ? " channels" : " element", rows > 1 ? cat(" x ", rows) : "",
                  " a thread, 256 threads");
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
