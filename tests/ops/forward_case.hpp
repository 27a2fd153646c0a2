// One forward convolution on the device under test (KILN_TEST_DEVICE: host, the default, or cuda),
// on small integers, so that sums are exact in every order and results can be compared for
// equality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "plan/kernel_store.hpp"
#include "plan/plan.hpp"
#include "problem/problem_line.hpp"
#include "reference/convolution.hpp"
#include "reference/element.hpp"

namespace test {

using namespace kiln;

inline kilnDeviceKind_t device_kind() {
  const char* wanted = std::getenv("KILN_TEST_DEVICE");
  return wanted && std::string(wanted) == "cuda" ? KILN_DEVICE_CUDA : KILN_DEVICE_HOST;
}

inline std::shared_ptr<Device> device() { return open_device(device_kind(), 0); }

inline ConvolutionProblem problem_of(const std::string& line, DataType type = KILN_DATA_FLOAT,
                                     kilnTensorFormat_t layout = KILN_TENSOR_NCHW,
                                     kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return make_convolution(parse_convolution_line(line), type, layout, mode);
}

using Strides = std::array<std::int64_t, 5>;
using Sizes = std::array<std::int64_t, 5>;

inline Sizes x_sizes(const ConvolutionProblem& p) {
  return {p.batch, p.in_channels, p.in[0], p.in[1], p.in[2]};
}
inline Sizes w_sizes(const ConvolutionProblem& p) {
  return {p.out_channels, p.group_in(), p.filter[0], p.filter[1], p.filter[2]};
}
inline Sizes y_sizes(const ConvolutionProblem& p) {
  return {p.batch, p.out_channels, p.out[0], p.out[1], p.out[2]};
}

inline std::size_t span_of(const Sizes& sizes, const Strides& strides) {
  std::int64_t span = 1;
  for (int i = 0; i < 5; ++i) span += (sizes[i] - 1) * strides[i];
  return static_cast<std::size_t>(span);
}

// The offset of the index-th element, counted densely.
inline std::int64_t offset_of(std::int64_t index, const Sizes& sizes, const Strides& strides) {
  std::int64_t offset = 0;
  for (int i = 4; i >= 0; --i) {
    offset += index % sizes[i] * strides[i];
    index /= sizes[i];
  }
  return offset;
}

inline std::int64_t count_of(const Sizes& sizes) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  return count;
}

// A tensor of doubles that stand for elements of `type`, with every gap between them NaN.
struct HostTensor {
  Sizes sizes;
  Strides strides;
  std::vector<double> values;

  HostTensor(const Sizes& tensor_sizes, const Strides& tensor_strides)
      : sizes(tensor_sizes),
        strides(tensor_strides),
        values(span_of(sizes, strides), std::nan("")) {}

  void fill(std::mt19937& random, int magnitude) {
    std::uniform_int_distribution<int> integers(-magnitude, magnitude);
    for (std::int64_t i = 0; i < count_of(sizes); ++i) at(i) = integers(random);
  }
  double& at(std::int64_t index) {
    return values[static_cast<std::size_t>(offset_of(index, sizes, strides))];
  }

  std::vector<std::byte> bytes(DataType type) const {
    std::vector<std::byte> out(values.size() * size_of(type));
    reference::with_element(type, [&](auto zero) {
      using Element = decltype(zero);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto element = reference::from_double<Element>(values[i]);
        std::memcpy(out.data() + i * sizeof element, &element, sizeof element);
      }
    });
    return out;
  }
  void read(const std::vector<std::byte>& bytes, DataType type) {
    reference::with_element(type, [&](auto element) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
        values[i] = reference::to_double(element);
      }
    });
  }
};

class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, const std::vector<std::byte>& bytes)
      : device_(device), size_(bytes.size()), address_(device.allocate(size_)) {
    device_.copy_in(address_, bytes.data(), size_);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { device_.free(address_); }
  void* address() const { return address_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    device_.synchronize(nullptr);
    device_.copy_out(bytes.data(), address_, size_);
    return bytes;
  }

 private:
  Device& device_;
  std::size_t size_;
  void* address_;
};

// The data of one problem. y begins as `before` gives it: NaN to prove that it is not read.
struct ForwardCase {
  ConvolutionProblem problem;
  double alpha = 1, beta = 0;
  HostTensor x, w, y;

  explicit ForwardCase(const ConvolutionProblem& p, unsigned seed = 1)
      : problem(p),
        x(x_sizes(p), p.x_strides),
        w(w_sizes(p), p.w_strides),
        y(y_sizes(p), p.y_strides) {
    std::mt19937 random(seed);
    x.fill(random, 3);
    w.fill(random, 2);
  }

  void fill_y(unsigned seed) {
    std::mt19937 random(seed);
    y.fill(random, 4);
  }

  // alpha * conv(x, w) + beta * y, rounded to the type; gaps as they were.
  HostTensor expected() const {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(count_of(y.sizes)));
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
    const auto sums = reference::forward(problem, x.values.data(), w.values.data(), indices);
    HostTensor out = y;
    const auto format = reference::format_of(problem.type);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      double& element = out.at(indices[i]);
      const double before = beta == 0 ? 0 : beta * element;
      element = reference::round_to_format(alpha * sums[i].value + before, format);
    }
    return out;
  }

  // Executes `launch(operands)` on buffers of the device and reads y back.
  template <class Launch>
  HostTensor run(Device& on, const Launch& launch) const {
    const DeviceBuffer x_buffer(on, x.bytes(problem.type)), w_buffer(on, w.bytes(problem.type)),
        y_buffer(on, y.bytes(problem.type));
    void* const operands[] = {x_buffer.address(), w_buffer.address(), y_buffer.address()};
    launch(operands);
    HostTensor out = y;
    out.read(y_buffer.read(), problem.type);
    return out;
  }

  HostTensor run_plan(const std::string& engine = {}) const {
    const std::shared_ptr<Device> on = device();
    Plan plan(on, problem);
    plan.finalize({.only_engine = engine});
    return run(*on, [&](std::span<void* const> operands) {
      plan.execute(operands, alpha, beta, nullptr);
    });
  }
};

// "" if equal, NaN to NaN; otherwise the first difference.
inline std::string difference(const HostTensor& got, const HostTensor& want) {
  std::size_t count = 0, first = 0;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double a = got.values[i], b = want.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return "";
  return cat(count, " of ", got.values.size(), " elements differ; the first at offset ", first,
             " is ", got.values[first], ", expected ", want.values[first]);
}

}  // namespace test
