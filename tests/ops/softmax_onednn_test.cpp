// The reference's softmax and its gradient against oneDNN's.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <dnnl.hpp>
#include <random>
#include <unordered_map>

#include "reference/reference.hpp"

using namespace kiln;

namespace {

using Memory = dnnl::memory;

// {N, C, inner}: softmax over an image takes it as one pixel of C * inner channels.
Memory::desc layout(std::int64_t n, std::int64_t c, std::int64_t inner) {
  return {{n, c, inner}, Memory::data_type::f32, Memory::dims{c * inner, inner, 1}};
}

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

void execute(const dnnl::primitive& primitive, const std::unordered_map<int, Memory>& arguments) {
  dnnl::stream stream(cpu());
  primitive.execute(stream, arguments);
  stream.wait();
}

// oneDNN 3 has one softmax with algorithms, and describes it in one step; 2.6 has two primitives.
#if DNNL_VERSION_MAJOR >= 3
dnnl::algorithm algorithm(bool log) {
  return log ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
}
dnnl::softmax_forward::primitive_desc describe(bool log, const Memory::desc& desc) {
  return {cpu(), dnnl::prop_kind::forward_training, algorithm(log), desc, desc, 1};
}
void forward(bool log, const Memory::desc& desc, float* x, float* y) {
  execute(dnnl::softmax_forward(describe(log, desc)),
          {{DNNL_ARG_SRC, Memory(desc, cpu(), x)}, {DNNL_ARG_DST, Memory(desc, cpu(), y)}});
}
void backward(bool log, const Memory::desc& desc, float* y, float* dy, float* dx) {
  const dnnl::softmax_backward::primitive_desc description(cpu(), algorithm(log), desc, desc, desc,
                                                           1, describe(log, desc));
  execute(dnnl::softmax_backward(description), {{DNNL_ARG_DST, Memory(desc, cpu(), y)},
                                                {DNNL_ARG_DIFF_DST, Memory(desc, cpu(), dy)},
                                                {DNNL_ARG_DIFF_SRC, Memory(desc, cpu(), dx)}});
}
#else
template <class Forward>
typename Forward::primitive_desc describe(const Memory::desc& desc) {
  return {typename Forward::desc(dnnl::prop_kind::forward_training, desc, 1), cpu()};
}
template <class Forward>
void forward_by(const Memory::desc& desc, float* x, float* y) {
  execute(Forward(describe<Forward>(desc)),
          {{DNNL_ARG_SRC, Memory(desc, cpu(), x)}, {DNNL_ARG_DST, Memory(desc, cpu(), y)}});
}
template <class Forward, class Backward>
void backward_by(const Memory::desc& desc, float* y, float* dy, float* dx) {
  execute(Backward({typename Backward::desc(desc, desc, 1), cpu(), describe<Forward>(desc)}),
          {{DNNL_ARG_DST, Memory(desc, cpu(), y)},
           {DNNL_ARG_DIFF_DST, Memory(desc, cpu(), dy)},
           {DNNL_ARG_DIFF_SRC, Memory(desc, cpu(), dx)}});
}
void forward(bool log, const Memory::desc& desc, float* x, float* y) {
  if (log)
    forward_by<dnnl::logsoftmax_forward>(desc, x, y);
  else
    forward_by<dnnl::softmax_forward>(desc, x, y);
}
void backward(bool log, const Memory::desc& desc, float* y, float* dy, float* dx) {
  if (log)
    backward_by<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>(desc, y, dy, dx);
  else
    backward_by<dnnl::softmax_forward, dnnl::softmax_backward>(desc, y, dy, dx);
}
#endif

std::vector<float> random_values(std::mt19937& random, std::int64_t count, float low, float high) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

// Within some times what the reference allows a kernel in f32: oneDNN's vectorized logarithm errs
// by more than the compiler's own.
void compare(const SoftmaxProblem& problem, const std::vector<const void*>& memory,
             const std::vector<float>& got) {
  std::vector<std::int64_t> indices(got.size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  const auto expected = reference::expect(problem, {}, memory, indices, 2);
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::fmax(worst, std::fabs(got[i] - expected[i].value) / expected[i].allowed);
  BOOST_TEST(worst <= 4.0, to_line(problem) << ": " << worst << " times the error allowed");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(softmax_onednn)

BOOST_AUTO_TEST_CASE(random_problems) {
  std::mt19937 random(5);
  const auto among = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int turn = 0; turn < 120; ++turn) {
    Tensor t;
    t.rank = static_cast<int>(among(3, 5));
    std::int64_t count = 1, inner = 1;
    for (int i = 0; i < t.rank; ++i) {
      t.dims[i] = among(1, i == 1 ? 70 : 7);
      count *= t.dims[i];
      if (i > 1) inner *= t.dims[i];
    }
    t.strides = dense_strides(KILN_TENSOR_NCHW, t.rank, t.dims);
    const bool log = among(0, 1) == 1, instance = among(0, 1) == 1;
    const auto kind = log ? KILN_SOFTMAX_LOG : KILN_SOFTMAX_ACCURATE;
    const auto mode = instance ? KILN_SOFTMAX_MODE_INSTANCE : KILN_SOFTMAX_MODE_CHANNEL;
    const Memory::desc desc =
        instance ? layout(t.dims[0], t.dims[1] * inner, 1) : layout(t.dims[0], t.dims[1], inner);

    std::vector<float> x = random_values(random, count, -6, 6), y(x.size()), dx(x.size());
    forward(log, desc, x.data(), y.data());
    compare(make_softmax_forward(kind, mode, t, t), {x.data(), nullptr}, y);
    std::vector<float> dy = random_values(random, count, -1, 1);
    backward(log, desc, y.data(), dy.data(), dx.data());
    compare(make_softmax_backward(kind, mode, t, t, t), {y.data(), dy.data(), nullptr}, dx);
  }
}

BOOST_AUTO_TEST_SUITE_END()
