// The reference's softmax and its gradient against oneDNN's.
#include "onednn.hpp"

using namespace kiln;

namespace {

using onednn::cpu;
using onednn::execute;
using onednn::Memory;

// {N, C, inner}. For softmax over an image, an image is one pixel of C * inner channels.
Memory::desc layout(std::int64_t n, std::int64_t c, std::int64_t inner) {
  return {{n, c, inner}, Memory::data_type::f32, Memory::dims{c * inner, inner, 1}};
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

}  // namespace

BOOST_AUTO_TEST_SUITE(softmax_onednn)

BOOST_AUTO_TEST_CASE(random_problems) {
  onednn::Random random(5);
  for (int turn = 0; turn < 120; ++turn) {
    Tensor t;
    t.rank = static_cast<int>(random.among(2, 8));
    std::int64_t count = 1, inner = 1;
    for (int i = 0; i < t.rank; ++i) {
      t.dims[i] = random.among(1, i == 1 ? 70 : t.rank > 5 ? 3 : 7);
      count *= t.dims[i];
      if (i > 1) inner *= t.dims[i];
    }
    t.strides = dense_strides(KILN_TENSOR_NCHW, t.rank, t.dims);
    const bool log = random.coin(), instance = random.coin();
    const auto kind = log ? KILN_SOFTMAX_LOG : KILN_SOFTMAX_ACCURATE;
    const auto mode = instance ? KILN_SOFTMAX_MODE_INSTANCE : KILN_SOFTMAX_MODE_CHANNEL;
    const Memory::desc desc =
        instance ? layout(t.dims[0], t.dims[1] * inner, 1) : layout(t.dims[0], t.dims[1], inner);

    // oneDNN's vectorized logarithm is less accurate than the compiler's.
    std::vector<float> x = random.values(static_cast<std::size_t>(count), -6, 6), y(x.size()),
                       dx(x.size());
    forward(log, desc, x.data(), y.data());
    onednn::compare(make_softmax_forward(kind, mode, t, t), {x.data()}, y, 4);
    std::vector<float> dy = random.values(x.size());
    backward(log, desc, y.data(), dy.data(), dx.data());
    onednn::compare(make_softmax_backward(kind, mode, t, t, t), {y.data(), dy.data()}, dx, 4);
  }
}

BOOST_AUTO_TEST_SUITE_END()
