// Calls oneDNN, an implementation that shares no code with the reference. Versions 2.6 and 3
// describe primitives differently; both are supported.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/text.hpp"
#include "reference/reference.hpp"

namespace onednn {

using Memory = dnnl::memory;

inline const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

inline void execute(const dnnl::primitive& primitive,
                    const std::unordered_map<int, Memory>& arguments) {
  dnnl::stream stream(cpu());
  primitive.execute(stream, arguments);
  stream.wait();
}

// oneDNN 3 describes a primitive in one step, oneDNN 2 in two.
template <class Primitive, class... Arguments>
typename Primitive::primitive_desc describe_forward(const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), arguments...};
#else
  return {typename Primitive::desc(arguments...), cpu()};
#endif
}
template <class Primitive, class Forward, class... Arguments>
typename Primitive::primitive_desc describe_backward(const Forward& forward,
                                                     const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), arguments..., forward};
#else
  return {typename Primitive::desc(arguments...), cpu(), forward};
#endif
}

// The description of an f32 tensor with its strides.
inline Memory::desc layout(const kiln::Tensor& tensor) {
  return {Memory::dims(tensor.dims.begin(), tensor.dims.begin() + tensor.rank),
          Memory::data_type::f32,
          Memory::dims(tensor.strides.begin(), tensor.strides.begin() + tensor.rank)};
}

inline Memory wrap(const Memory::desc& desc, std::vector<float>& values) {
  return {desc, cpu(), values.data()};
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  std::int64_t among(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool coin() { return among(0, 1) == 1; }
  std::vector<float> values(std::size_t count, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> out(count);
    for (float& value : out) value = uniform(engine_);
    return out;
  }
  // A dense f32 tensor in either layout.
  kiln::Tensor tensor(int rank, const kiln::TensorDims& dims) {
    kiln::Tensor out;
    out.rank = rank;
    out.dims = dims;
    out.strides = kiln::dense_strides(coin() ? KILN_TENSOR_NCHW : KILN_TENSOR_NHWC, rank, dims);
    return out;
  }

 private:
  std::mt19937 engine_;
};

inline std::size_t elements(const kiln::Tensor& tensor) {
  return static_cast<std::size_t>(kiln::span_elements(tensor));
}

// Checks that every element of oneDNN's result has an error of at most `times` the bound that the
// reference has for a kernel in f32, plus `more`. The result has the problem's strides; inputs are
// in the order of operands_of(problem).
inline void compare(const kiln::Problem& problem, std::vector<const void*> inputs,
                    const std::vector<float>& got, double times = 1, double more = 0) {
  const kiln::Operand result = operands_of(problem).back();
  inputs.push_back(nullptr);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(result.count()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  const auto expected = kiln::reference::expect(problem, {}, inputs, indices, 2);
  double worst = 0;
  std::string where;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const double have = got[static_cast<std::size_t>(result.offset(indices[i]))];
    if (have == expected[i].value) continue;  // also for infinities, which have no bound
    const double bound =
        times * (expected[i].allowed + 0x1p-24 * std::fabs(expected[i].value)) + more + 1e-300;
    const double share = std::fabs(have - expected[i].value) / bound;
    if (share <= worst) continue;
    worst = std::isnan(share) ? HUGE_VAL : share;
    where =
        kiln::cat(result.coordinates(indices[i]), " is ", have, ", expected ", expected[i].value);
  }
  BOOST_TEST(worst <= 1.0, text_of(problem)
                               << ": " << where << ", " << worst << " times the error allowed");
}

}  // namespace onednn
