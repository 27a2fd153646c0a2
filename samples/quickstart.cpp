// What samples/quickstart.sh runs: one layer of AlexNet, on the GPU if there is one, else on the
// host device; through the public API alone.
//
//   quickstart            the layer, and its result checked
//   quickstart --again    in a process after that: where the kernel came from this time
//   quickstart --verbose  the kernel's constants and the time of each step besides
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "common/memory.hpp"
#include "kiln/kiln.hpp"

namespace {

// AlexNet's third layer: 3x3 over 13x13 with a border of one zero, 256 to 384 channels. The host
// device, which is no fast one, gets a single image.
constexpr std::int64_t channels = 256, features = 384, side = 13, filter = 3;

void row(const char* name, const std::string& text) {
  std::printf("%-9s %s\n", name, text.c_str());
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// The same numbers every time, in [-1, 1).
std::vector<float> random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(generator() >> 8) * 0x1p-23f - 1.0f;
  return values;
}

// Every output against the sum of its products in double precision. Adding n products in f32 errs
// by about sqrt(n) roundings of their sum of magnitudes; allowed are four times as many. The
// largest error, as a share of that: at most 1 if y is right. A NaN is not.
double largest_error(const std::vector<float>& x, const std::vector<float>& w,
                     const std::vector<float>& y) {
  const auto at = [](const std::vector<float>& values, std::int64_t index) {
    return static_cast<double>(values[static_cast<std::size_t>(index)]);
  };
  const double allowed_of_magnitude = 4 * std::sqrt(channels * filter * filter) * 0x1p-24;
  double worst = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.size()); ++i) {
    const std::int64_t column = i % side, line = i / side % side,
                       feature = i / side / side % features, image = i / side / side / features;
    double sum = 0, magnitude = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t r = 0; r < filter; ++r)
        for (std::int64_t s = 0; s < filter; ++s) {
          const std::int64_t h = line + r - 1, v = column + s - 1;
          if (h < 0 || h >= side || v < 0 || v >= side) continue;
          const double product = at(x, ((image * channels + c) * side + h) * side + v) *
                                 at(w, ((feature * channels + c) * filter + r) * filter + s);
          sum += product;
          magnitude += std::fabs(product);
        }
    const double share = std::fabs(at(y, i) - sum) / (allowed_of_magnitude * magnitude);
    if (!(share <= worst)) worst = share;
  }
  return worst;
}

std::string origin(const kilnPlanInfo_t& info) {
  if (info.origin == KILN_KERNEL_COMPILED)
    return format("written and compiled for this layer in %.0f ms", info.totalMs);
  return format("%s in %.1f ms", info.origin == KILN_KERNEL_DISK ? "from disk" : "from memory",
                info.totalMs);
}

bool run(bool again, bool verbose) {
  std::string no_gpu;
  std::optional<kiln::Handle> opened;
  try {
    opened.emplace(KILN_DEVICE_CUDA);
  } catch (const std::exception& error) {
    no_gpu = error.what();
    opened.emplace(KILN_DEVICE_HOST);
  }
  const kiln::Handle& handle = *opened;
  const bool gpu = no_gpu.empty();
  const std::int64_t batch = gpu ? 4 : 1;

  const kiln::TensorDescriptor x_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      {batch, channels, side, side});
  const kiln::FilterDescriptor w_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      {features, channels, filter, filter});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
  const kiln::TensorDescriptor y_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      convolution.output_dims(x_desc, w_desc));
  kiln::ConvolutionForward plan(
      handle, {.x = x_desc, .w = w_desc, .convolution = convolution, .y = y_desc});
  plan.finalize();
  const kilnPlanInfo_t info = plan.info();
  if (again) {
    row("again", format("a second process has this kernel %s", origin(info).c_str()));
    return true;
  }

  const auto memory = Memory::open(gpu ? KILN_DEVICE_CUDA : KILN_DEVICE_HOST);
  const std::vector<float> x_values = random_floats(batch * channels * side * side, 1);
  const std::vector<float> w_values = random_floats(features * channels * filter * filter, 2);
  Array x(*memory, x_values.size()), w(*memory, w_values.size()),
      y(*memory, static_cast<std::size_t>(batch * features * side * side));
  x.upload(x_values);
  w.upload(w_values);
  y.upload(std::vector<float>(y.count(), std::nanf("")));
  const auto execute = [&] { plan.execute(handle, {.x = x.get(), .w = w.get(), .y = y.get()}); };
  const int repeats = gpu ? 100 : 1;
  if (gpu) execute();
  std::vector<float> result = y.download();  // waits
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) execute();
  result = y.download();
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  const double error = largest_error(x_values, w_values, result);

  row("layer",
      format("AlexNet's third, %lld image%s: 3x3 convolution, 256 to 384 channels of 13x13, f32",
             static_cast<long long>(batch), batch == 1 ? "" : "s"));
  row("device", gpu ? format("the GPU, %s", std::string(plan.text(KILN_PLAN_ARCHITECTURE)).c_str())
                    : format("the host device, for want of a GPU (%s)", no_gpu.c_str()));
  row("kernel",
      format("%s, %s", std::string(plan.text(KILN_PLAN_ENGINE)).c_str(), origin(info).c_str()));
  row("time",
      gpu ? format("%.3f ms, the mean of %d executions", elapsed.count() / repeats, repeats)
          : format("%.0f ms, which means nothing: the host device simulates the GPU's kernel",
                   elapsed.count()));
  row("checked",
      format("%zu sums against double precision: %s, largest error %.2f of what is allowed",
             result.size(), error <= 1 ? "PASSED" : "FAILED", error));
  if (verbose) {
    row("tile", std::string(plan.text(KILN_PLAN_TILE)));
    row("launch", format("%lld blocks of %d threads, %d bytes of shared memory, workspace %zu",
                         static_cast<long long>(info.blocks), info.threadsPerBlock,
                         info.sharedMemoryBytes, info.workspaceBytes));
    row("steps", format("text %.2f ms, lookup %.2f, compilation %.1f, loading %.2f",
                        info.generateMs, info.lookupMs, info.compileMs, info.loadMs));
    std::printf(
        "\nConstants of this kernel, and the multiplications that replace divisions by them\n%s",
        std::string(plan.text(KILN_PLAN_CONSTANTS)).c_str());
  }
  return error <= 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!option.empty() && option != "--again" && option != "--verbose")) {
    std::fprintf(stderr, "usage: quickstart [--again | --verbose]\n");
    return 2;
  }
  try {
    return run(option == "--again", option == "--verbose") ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart: %s\n", error.what());
    return 1;
  }
}
