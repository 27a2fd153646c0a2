// What the library costs the host: making a plan (compiled, from disk, from memory) and executing
// it, beside a bare cuLaunchKernel of the same kernel. Figures, not a test.
//
//   latency [cuda|host] [PROBLEM]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "plan/plan.hpp"
#include "problem/problem_line.hpp"

namespace {

using namespace kiln;

double microseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// The median of `samples` runs of `work`.
double median(int samples, const std::function<double()>& sample) {
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) times.push_back(sample());
  std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
  return times[static_cast<std::size_t>(samples / 2)];
}

int run(const std::string& device_name, const std::string& line) {
  const auto device = open_device(device_name == "cuda" ? KILN_DEVICE_CUDA : KILN_DEVICE_HOST, 0);
  const ConvolutionProblem problem = make_convolution(parse_convolution_line(line), KILN_DATA_FLOAT,
                                                      KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);

  const auto finalize = [&](const FinalizeOptions& options) {
    Plan plan(device, problem);
    plan.finalize(options);
    return plan.finalize_milliseconds() * 1000;
  };
  std::printf("%s on %s\n", line.c_str(), device->description().name.c_str());
  std::printf("plan, first in this process    %10.1f us\n", finalize({}));
  std::printf("plan, from memory              %10.1f us\n",
              median(101, [&] { return finalize({}); }));
  std::printf("plan, compiled (no cache)      %10.1f us\n",
              median(5, [&] { return finalize({.no_cache = true}); }));

  Plan plan(device, problem);
  plan.finalize();
  const auto bytes = [](const std::array<std::int64_t, 5>& strides, std::int64_t first) {
    return static_cast<std::size_t>(strides[0] * first) * sizeof(float);
  };
  void* const operands[] = {device->allocate(bytes(problem.x_strides, problem.batch)),
                            device->allocate(bytes(problem.w_strides, problem.out_channels)),
                            device->allocate(bytes(problem.y_strides, problem.batch))};
  device->fill(operands[0], 0, bytes(problem.x_strides, problem.batch));
  device->fill(operands[1], 0, bytes(problem.w_strides, problem.out_channels));
  const Kernel& kernel = *plan.kernel().kernel;
  std::vector<std::byte> parameters = plan.launch().parameters;
  for (const LaunchSpec::Patch& patch : plan.launch().patches)
    if (patch.hole == LaunchSpec::Hole::operand)
      std::memcpy(parameters.data() + patch.offset, &operands[patch.operand], sizeof(void*));

  // Short bursts, so that the queue of the device never fills and makes the host wait.
  constexpr int burst = 64;
  const auto per_call = [&](const std::function<void()>& call) {
    return median(51, [&] {
      const double time = microseconds([&] {
        for (int i = 0; i < burst; ++i) call();
      });
      device->synchronize(nullptr);
      return time / burst;
    });
  };
  const double bare = per_call([&] { kernel.launch(plan.launch().shape, parameters, nullptr); });
  const double execute = per_call([&] { plan.execute(operands, {}, nullptr); });
  std::printf("launch of the bare kernel      %10.3f us\n", bare);
  std::printf("execute                        %10.3f us  (%+.3f)\n", execute, execute - bare);
  for (void* operand : operands) device->free(operand);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "cuda", argc > 2 ? argv[2] : "mb1ic16ih14oc32kh3ph1");
  } catch (const Error& error) {
    std::fprintf(stderr, "latency: %s\n", error.what());
    return 1;
  }
}
