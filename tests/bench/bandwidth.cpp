// The memory-bound operations against the device's own copy, in one run: GB/s of the bytes that
// must move, and that as a share of what the driver's device-to-device copy reaches at the same
// size.
//
//   bandwidth [--json]
//
// Two sizes: 128x96x118x118, whose tensors are many times the L2 cache, with buffers taken in
// turns; and 16x64x28x28 launched back to back. Random data. Medians of several timings, with the
// extremes.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "plan/plan.hpp"

namespace {

using namespace kiln;  // NOLINT(google-build-using-namespace)

struct Item {
  std::string name;
  Problem problem;
  Scalars scalars;
};

Tensor tensor(DataType type, kilnTensorFormat_t layout, const Dims& dims) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(layout, 4, dims);
  return out;
}

std::vector<Item> items(DataType type, kilnTensorFormat_t layout, const Dims& dims) {
  const Tensor x = tensor(type, layout, dims);
  const kilnTensorFormat_t other_layout =
      layout == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
  const Tensor other = tensor(type, other_layout, dims);
  const Tensor channels = tensor(type, layout, {1, dims[1], 1, 1});
  const Tensor one = tensor(type, layout, {1, 1, 1, 1});
  PoolingSpec pool;
  pool.spatial = 2;
  pool.window = {3, 3};
  pool.stride = {2, 2};
  const Tensor y = tensor(type, layout, pooling_output_dims(pool, x));
  PoolingSpec average = pool;
  average.mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  const auto act = [&](kilnActivationMode_t mode) {
    return make_activation_forward({mode, 0}, x, x);
  };
  const auto act_bwd = [&](kilnActivationMode_t mode) {
    return make_activation_backward({mode, 0}, x, "saved", x, x);
  };
  constexpr auto channel = KILN_SOFTMAX_MODE_CHANNEL;
  constexpr auto image = KILN_SOFTMAX_MODE_INSTANCE;
  return {
      {"max pool 3x3/2", make_pooling_forward(pool, x, y), {}},
      {"max pool bwd", make_pooling_backward(pool, y, &x, x), {}},
      {"avg pool 3x3/2", make_pooling_forward(average, x, y), {}},
      {"avg pool bwd", make_pooling_backward(average, y, nullptr, x), {}},
      {"relu", act(KILN_ACTIVATION_RELU), {}},
      {"sigmoid", act(KILN_ACTIVATION_SIGMOID), {}},
      {"tanh", act(KILN_ACTIVATION_TANH), {}},
      {"gelu (erf)", act(KILN_ACTIVATION_GELU_ERF), {}},
      {"relu bwd", act_bwd(KILN_ACTIVATION_RELU), {}},
      {"tanh bwd", act_bwd(KILN_ACTIVATION_TANH), {}},
      {"softmax channels", make_softmax_forward(KILN_SOFTMAX_ACCURATE, channel, x, x), {}},
      {"softmax channels bwd", make_softmax_backward(KILN_SOFTMAX_ACCURATE, channel, x, x, x), {}},
      {"softmax image", make_softmax_forward(KILN_SOFTMAX_ACCURATE, image, x, x), {}},
      {"add bias", make_add(channels, x), {.beta = 1}},
      {"copy", make_transform(x, x), {}},
      {"to the other layout", make_transform(x, other), {}},
      {"scale", make_fill(x), {.alpha = 0, .beta = 0.5}},
      {"bias gradient", make_bias_gradient(x, channels), {}},
      {"sum of all", make_reduction(KILN_REDUCE_SUM, x, one), {}},
  };
}

// Uniform numbers in [-1, 1) of any type: a few megabytes of them, again and again.
class RandomBytes {
 public:
  explicit RandomBytes(DataType type) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::size_t i = 0; i < (std::size_t{1} << 20); ++i) {
      const float value = uniform(random);
      if (type == KILN_DATA_FLOAT) {
        append(&value, sizeof value);
      } else {  // f16: the sign, and an exponent below that of 1
        const auto bits =
            static_cast<std::uint16_t>((random() & 0x83ff) | (0x2c00 + (random() & 0x0c00)));
        append(&bits, sizeof bits);
      }
    }
  }
  void fill(Device& device, void* address, std::size_t bytes) const {
    for (std::size_t at = 0; at < bytes; at += bytes_.size())
      device.copy_in(static_cast<std::byte*>(address) + at, bytes_.data(),
                     std::min(bytes_.size(), bytes - at));
  }

 private:
  void append(const void* value, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(value);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

struct Times {  // milliseconds of one execution
  double median, least, most;
};

// `count` executions a timing, back to back.
template <class Work>
Times measure(Device& device, int count, const Work& work) {
  for (double busy = 0; busy < 30;) busy += device.time(nullptr, count, work);
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) times.push_back(device.time(nullptr, count, work) / count);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

class Bench {
 public:
  Bench(bool json) : json_(json), device_(open_cuda_device(0)) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    copy_ =
        driver == nullptr ? nullptr : reinterpret_cast<Copy>(dlsym(driver, "cuMemcpyDtoDAsync_v2"));
    if (copy_ == nullptr) fail(KILN_STATUS_NO_DEVICE, "libcuda.so.1 has no cuMemcpyDtoDAsync");
    std::printf("%s%s\n", json_ ? "# " : "", device_->description().name.c_str());
  }

  void run(DataType type, kilnTensorFormat_t layout, const Dims& dims, int launches) {
    // Sets of buffers, so that none of a small number of them stays in the L2 cache.
    const bool large = launches == 1;
    const std::size_t bytes =
        static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]) * size_of(type);
    constexpr int sets = 2, operands = 3;
    const RandomBytes random(type);
    std::vector<void*> memory;
    for (int i = 0; i < sets * operands; ++i) {
      memory.push_back(device_->allocate(bytes + 256));
      random.fill(*device_, memory.back(), bytes);
    }
    int turn = 0;
    const auto buffer = [&](int operand) {
      return memory[static_cast<std::size_t>(turn % (large ? sets : 1) * operands + operand)];
    };
    const Times copy = measure(*device_, launches, [&] {
      copy_(reinterpret_cast<unsigned long long>(buffer(1)),
            reinterpret_cast<unsigned long long>(buffer(0)), bytes, nullptr);
      ++turn;
    });
    const double copy_rate = 2 * static_cast<double>(bytes) / copy.median * 1e-6;
    const std::string where = cat(name_of(type), layout == KILN_TENSOR_NCHW ? " nchw " : " nhwc ",
                                  dims[0], "x", dims[1], "x", dims[2], "x", dims[3]);
    report(where, "copy by the driver", copy, copy_rate, copy_rate, "");
    for (const Item& item : items(type, layout, dims)) {
      Plan plan(device_, item.problem);
      plan.finalize();
      const std::size_t count = operands_of(item.problem).size();
      const Times times = measure(*device_, launches, [&] {
        std::array<void*, operands> addresses{};
        for (std::size_t i = 0; i < count; ++i) addresses[i] = buffer(static_cast<int>(i));
        plan.execute(std::span(addresses).first(count), item.scalars, nullptr);
        ++turn;
      });
      const double rate = work_of(item.problem, item.scalars.beta != 0).bytes / times.median * 1e-6;
      report(where, item.name, times, rate, copy_rate,
             cat(plan.spec().engine, ", ", plan.spec().tile));
    }
    for (void* address : memory) device_->free(address);
  }

 private:
  using Copy = int (*)(unsigned long long, unsigned long long, std::size_t, void*);

  void report(const std::string& where, const std::string& name, const Times& times, double rate,
              double copy_rate, const std::string& kernel) const {
    if (json_) {
      std::printf(
          "{\"tensor\":\"%s\",\"operation\":\"%s\",\"kernel\":\"%s\",\"median_us\":%.2f,"
          "\"min_us\":%.2f,\"max_us\":%.2f,\"gbps\":%.0f,\"of_copy\":%.3f}\n",
          where.c_str(), name.c_str(), kernel.c_str(), times.median * 1e3, times.least * 1e3,
          times.most * 1e3, rate, rate / copy_rate);
    } else {
      std::printf("%-26s %-22s %9.2f us (%.2f to %.2f) %6.0f GB/s %5.1f%% of copy  %s\n",
                  where.c_str(), name.c_str(), times.median * 1e3, times.least * 1e3,
                  times.most * 1e3, rate, 100 * rate / copy_rate, kernel.c_str());
    }
    std::fflush(stdout);
  }

  bool json_;
  std::shared_ptr<Device> device_;
  Copy copy_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Bench bench(argc > 1 && std::string(argv[1]) == "--json");
    constexpr int back_to_back = 200;
    for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        bench.run(type, layout, {128, 96, 118, 118}, 1);
        bench.run(type, layout, {16, 64, 28, 28}, back_to_back);
      }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bandwidth: %s\n", error.what());
    return 1;
  }
}
