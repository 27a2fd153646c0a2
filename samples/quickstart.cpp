// What samples/quickstart.sh runs: one layer of AlexNet, and all that Kiln can tell about it. On
// the GPU if there is one, else on the host device. With --again it shows only what a second
// process finds: the kernel on disk.
//
// The convolution goes through the public C++ API alone. Three things a program brings with it, or
// needs no more than this one does, come from the library's insides: device memory, the
// double-precision reference, and PTX for a GPU that is not there.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/source.hpp"
#include "device/device.hpp"
#include "engines/choice.hpp"
#include "kiln/kiln.hpp"
#include "plan/kernel_store.hpp"
#include "problem/problem_line.hpp"
#include "reference/reference.hpp"

namespace {

// AlexNet's third layer: 3x3 over 13x13, 256 to 384 channels. The host device, which is no fast
// one, gets a single image.
constexpr std::int64_t channels = 256, features = 384, image = 13;
constexpr int gpu_batch = 4, host_batch = 1;

void heading(const std::string& text) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  std::printf(terminal ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text.c_str());
}

void row(const char* name, const std::string& text) {
  std::printf("  %-10s %s\n", name, text.c_str());
}

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::vector<std::string> lines(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

// ---- data -----------------------------------------------------------------------------------

// The same numbers every time, in [-1, 1).
std::vector<float> random_floats(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(generator() >> 8) * 0x1p-23f - 1.0f;
  }
  return values;
}

std::uint64_t checksum(const std::vector<float>& values) {  // FNV-1a over the bits
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

// Floats on a device.
class Buffer {
 public:
  Buffer(kiln::Device& device, const std::vector<float>& values)
      : device_(device), bytes_(values.size() * sizeof(float)), data_(device.allocate(bytes_)) {
    device_.copy_in(data_, values.data(), bytes_);
  }
  ~Buffer() { device_.free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  std::vector<float> read() const {
    std::vector<float> values(bytes_ / sizeof(float));
    device_.copy_out(values.data(), data_, bytes_);
    return values;
  }

 private:
  kiln::Device& device_;
  std::size_t bytes_;
  void* data_;
};

// The same layer, as the library's insides know it.
kiln::Problem third_layer(std::int64_t batch) {
  const std::string line =
      format("mb%dic%dih%doc%dkh3ph1", static_cast<int>(batch), static_cast<int>(channels),
             static_cast<int>(image), static_cast<int>(features));
  return kiln::make_convolution(kiln::parse_convolution_line(line), KILN_DATA_FLOAT,
                                KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
}

// ---- the check ------------------------------------------------------------------------------

// Every output against the double-precision reference, within the bound that it derives.
bool check(const kiln::Problem& problem, const std::vector<float>& x, const std::vector<float>& w,
           const std::vector<float>& y) {
  std::vector<std::int64_t> indices(y.size());
  std::iota(indices.begin(), indices.end(), 0);
  const void* const operands[] = {x.data(), w.data(), y.data()};
  const auto expected = kiln::reference::expect(problem, {}, operands, indices);

  double worst = 0;  // error, as a share of what is allowed
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double share = std::abs(y[i] - expected[i].value) / expected[i].allowed;
    worst = share <= worst ? worst : share;  // a NaN becomes the worst and stays
  }
  const bool good = worst <= 1;
  row("checked", format("%zu outputs against the double-precision reference: %s", y.size(),
                        good ? "PASSED" : "FAILED"));
  row("", format("largest error %.2f of what rounding may cost", worst));
  return good;
}

// ---- divisions in the PTX -------------------------------------------------------------------

struct KernelText {
  std::string arch, constants, ptx;
};

// The same problem's kernel for a GPU that is not there: engines need a description, NVRTC a name.
KernelText compile_for(const std::string& arch, const kiln::Problem& problem) {
  const kiln::DeviceDescription device = kiln::known_architecture(arch);
  std::vector<kiln::EngineRefusal> refusals;
  const kiln::Proposal proposal = kiln::choose(problem, device, "", refusals);
  const auto found = kiln::make_image(proposal.kernel, KILN_DEVICE_CUDA, device.arch);
  return {device.arch, kiln::print_constants(proposal.kernel), found.image->ptx};
}

std::string squeezed(const std::string& line) {
  static const std::regex spaces(R"(\s+)");
  return std::regex_replace(std::regex_replace(line, spaces, " "), std::regex("^ "), "");
}

// The first multiplication by `multiplier`, and the shift of its high half where one follows. The
// compiler writes the multiplier into the instruction or, more often, moves it to a register first.
std::vector<std::string> find_division(const std::vector<std::string>& ptx,
                                       std::uint64_t multiplier, bool shifted) {
  static const std::regex move(R"(\s*mov\.\S+\s+(%\w+), (-?\d+);)");
  static const std::regex multiply(R"(\s*mul\.hi\.\S+\s+(%\w+), (\S+), (\S+);)");
  const bool wide = multiplier > 0xffffffffu;
  // PTX prints a number as signed or unsigned, as the compiler last saw it.
  const auto is_multiplier = [&](const std::string& number) {
    const auto value = number.starts_with('-')
                           ? static_cast<std::uint64_t>(std::strtoll(number.c_str(), nullptr, 10))
                           : std::strtoull(number.c_str(), nullptr, 10);
    return wide ? value == multiplier : static_cast<std::uint32_t>(value) == multiplier;
  };
  std::string holder, moved, product;
  std::vector<std::string> found;
  std::smatch match;
  for (const std::string& line : ptx) {
    if (!product.empty()) {
      if (line.find("shr.") == std::string::npos || line.find(product) == std::string::npos)
        continue;
      found.push_back(squeezed(line));
      break;
    }
    if (std::regex_match(line, match, move) && is_multiplier(match.str(2))) {
      holder = match.str(1);
      moved = squeezed(line);
    } else if (std::regex_match(line, match, multiply)) {
      if (!holder.empty() && (match.str(2) == holder || match.str(3) == holder)) {
        found.push_back(moved);
      } else if (!is_multiplier(match.str(3))) {
        continue;
      }
      found.push_back(squeezed(line));
      if (!shifted) break;
      product = " " + match.str(1) + ",";
    }
  }
  return found;
}

void show_divisions(const KernelText& kernel) {
  heading("Division by a launch constant, in the PTX for " + kernel.arch);
  const std::vector<std::string> ptx = lines(kernel.ptx);
  const std::regex magic(R"(\((n / .*mulhi\(n, (0x[0-9a-f]+)[ul]*\).*>> (\d+).*)\)$)");
  std::vector<std::string> shown;
  std::smatch match;
  for (const std::string& constant : lines(kernel.constants)) {
    if (!std::regex_search(constant, match, magic)) continue;
    if (std::find(shown.begin(), shown.end(), match.str(1)) != shown.end()) continue;
    const auto found =
        find_division(ptx, std::stoull(match.str(2), nullptr, 16), match.str(3) != "0");
    if (found.empty()) continue;
    std::printf("  %s\n", match.str(1).c_str());
    for (const std::string& line : found) std::printf("      %s\n", line.c_str());
    shown.push_back(match.str(1));
  }
  if (shown.empty()) std::printf("  none is left: every divisor is a power of two\n");
}

// ---- the plan -------------------------------------------------------------------------------

// The divisors a line each, with the arithmetic that replaces the division; the rest in a
// paragraph.
void show_constants(std::string_view constants) {
  std::string paragraph;
  std::size_t column = 0;
  for (const std::string& line : lines(constants)) {
    if (line.find("n / ") != std::string::npos) {
      std::printf("  %s\n", line.c_str());
      continue;
    }
    const bool wrap = column + line.size() > 92;
    paragraph += paragraph.empty() ? "  " : wrap ? ",\n  " : ", ";
    column = (wrap ? 0 : column) + line.size() + 2;
    paragraph += line;
  }
  std::printf("%s\n", paragraph.c_str());
}

std::string origin(const kilnPlanInfo_t& info) {
  std::string text = info.origin == KILN_KERNEL_COMPILED
                         ? format("compiled in %.1f ms", info.compileMs)
                     : info.origin == KILN_KERNEL_DISK ? "from disk"
                                                       : "from memory";
  return text + format(" (text %.2f ms, lookup %.2f, load %.2f); the whole plan %.2f ms",
                       info.generateMs, info.lookupMs, info.loadMs, info.totalMs);
}

bool run(bool again) {
  std::string no_gpu;
  const bool gpu = !kiln::list_cuda_devices(no_gpu).empty();
  const auto kind = gpu ? KILN_DEVICE_CUDA : KILN_DEVICE_HOST;
  const std::int64_t batch = gpu ? gpu_batch : host_batch;

  const kiln::Handle handle(kind);
  const kiln::TensorDescriptor x_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      {batch, channels, image, image});
  const kiln::FilterDescriptor w_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      {features, channels, 3, 3});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
  const kiln::TensorDescriptor y_desc(KILN_TENSOR_NCHW, KILN_DATA_FLOAT,
                                      convolution.output_dims(x_desc, w_desc));
  kiln::cxx::Plan plan(handle, x_desc, w_desc, convolution, y_desc);
  plan.finalize();
  const kilnPlanInfo_t info = plan.info();

  const std::shared_ptr<kiln::Device> device = kiln::open_device(kind, 0);
  const auto x_values =
      random_floats(static_cast<std::size_t>(batch * channels * image * image), 1);
  const auto w_values = random_floats(static_cast<std::size_t>(features * channels * 3 * 3), 2);
  const std::vector<float> nothing(static_cast<std::size_t>(batch * features * image * image));
  const Buffer x(*device, x_values), w(*device, w_values), y(*device, nothing);
  const auto execute = [&] {
    const double ms = device->time(
        nullptr, 1, [&] { plan.execute(handle, 1.0, x.data(), w.data(), 0.0, y.data()); });
    const std::vector<float> values = y.read();
    row("executed", format("in %.3f ms; checksum of y %016llx", ms,
                           static_cast<unsigned long long>(checksum(values))));
    return values;
  };

  if (again) {
    heading("The same in a new process");
    row("kernel", origin(info));
    execute();
    return true;
  }

  heading("Kiln " + format("%d.%d.%d", KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH) +
          " on " + device->description().name);
  if (!gpu) std::printf("  (the host device: %s)\n", no_gpu.c_str());
  row("problem", std::string(plan.text(KILN_PLAN_PROBLEM)));
  row("", "AlexNet's third layer, f32, cross-correlation");
  row("engine", std::string(plan.text(KILN_PLAN_ENGINE)));
  row("tile", std::string(plan.text(KILN_PLAN_TILE)));
  row("launch", format("%lld blocks of %d threads, %d bytes of shared memory, workspace %zu",
                       static_cast<long long>(info.blocks), info.threadsPerBlock,
                       info.sharedMemoryBytes, info.workspaceBytes));
  row("kernel", origin(info));
  execute();
  const bool good = check(third_layer(batch), x_values, w_values, execute());

  heading("Constants baked into the kernel");
  show_constants(plan.text(KILN_PLAN_CONSTANTS));

  if (gpu) {
    show_divisions({std::string(plan.text(KILN_PLAN_ARCHITECTURE)),
                    std::string(plan.text(KILN_PLAN_CONSTANTS)),
                    std::string(plan.text(KILN_PLAN_PTX))});
  } else {
    show_divisions(compile_for("sm_90a", third_layer(batch)));
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 && std::strcmp(argv[1], "--again") == 0) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quickstart: %s\n", error.what());
    return 1;
  }
}
