// The reference's gradients of a convolution, and the transposed convolution, against oneDNN's.
#include "onednn_convolution.hpp"

using namespace kiln;

namespace {

using onednn::count;
using onednn::flipped;
using onednn::space;
using onednn::w_layout;
using onednn::wrap;
using onednn::x_layout;
using onednn::y_layout;

dnnl::convolution_forward::primitive_desc forward(const ConvolutionLine& line) {
  return onednn::describe_fprop(line, dnnl::prop_kind::forward_training);
}

std::vector<float> data_gradient(const ConvolutionLine& line, std::vector<float> w,
                                 std::vector<float> dy) {
  using Primitive = dnnl::convolution_backward_data;
  const auto description = onednn::describe_backward<Primitive>(
      forward(line), dnnl::algorithm::convolution_direct, x_layout(line), w_layout(line),
      y_layout(line), space(line, line.stride), space(line, line.dilation, -1),
      space(line, line.pad_before), space(line, line.pad_after));
  std::vector<float> dx(count(x_layout(line)));
  onednn::execute(Primitive(description), {{DNNL_ARG_WEIGHTS, wrap(w_layout(line), w)},
                                           {DNNL_ARG_DIFF_DST, wrap(y_layout(line), dy)},
                                           {DNNL_ARG_DIFF_SRC, wrap(x_layout(line), dx)}});
  return dx;
}

struct ParameterGradients {
  std::vector<float> w, bias;
};
ParameterGradients parameter_gradients(const ConvolutionLine& line, std::vector<float> x,
                                       std::vector<float> dy) {
  using Primitive = dnnl::convolution_backward_weights;
  const onednn::Memory::desc bias({line.out_channels}, onednn::Memory::data_type::f32,
                                  onednn::Memory::dims{1});
  const auto description = onednn::describe_backward<Primitive>(
      forward(line), dnnl::algorithm::convolution_direct, x_layout(line), w_layout(line), bias,
      y_layout(line), space(line, line.stride), space(line, line.dilation, -1),
      space(line, line.pad_before), space(line, line.pad_after));
  ParameterGradients out{std::vector<float>(count(w_layout(line))),
                         std::vector<float>(static_cast<std::size_t>(line.out_channels))};
  onednn::execute(Primitive(description), {{DNNL_ARG_SRC, wrap(x_layout(line), x)},
                                           {DNNL_ARG_DIFF_DST, wrap(y_layout(line), dy)},
                                           {DNNL_ARG_DIFF_WEIGHTS, wrap(w_layout(line), out.w)},
                                           {DNNL_ARG_DIFF_BIAS, wrap(bias, out.bias)}});
  return out;
}

// For the transposed convolution, oneDNN exchanges a filter's input and output channels: the memory
// is the same, with two dimensions exchanged.
std::vector<float> transposed(const ConvolutionLine& line, std::vector<float> w,
                              std::vector<float> x) {
  using Primitive = dnnl::deconvolution_forward;
  const auto description = onednn::describe_forward<Primitive>(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, y_layout(line),
      w_layout(line).permute_axes([&] {
        std::vector<int> axes(static_cast<std::size_t>(line.rank + 3));
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
        std::swap(axes[1], axes[2]);
        return axes;
      }()),
      x_layout(line), space(line, line.stride), space(line, line.dilation, -1),
      space(line, line.pad_before), space(line, line.pad_after));
  std::vector<float> y(count(x_layout(line)));
  onednn::execute(Primitive(description), {{DNNL_ARG_SRC, wrap(y_layout(line), x)},
                                           {DNNL_ARG_WEIGHTS, wrap(description.weights_desc(), w)},
                                           {DNNL_ARG_DST, wrap(x_layout(line), y)}});
  return y;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution_backward_onednn)

BOOST_AUTO_TEST_CASE(random_problems) {
  onednn::Random random(4);
  for (int turn = 0; turn < 150; ++turn) {
    const ConvolutionLine line = onednn::random_line(random);
    const auto mode = turn % 2 == 0 ? KILN_CROSS_CORRELATION : KILN_CONVOLUTION;
    const auto format = turn % 4 < 2 ? KILN_TENSOR_NCHW : KILN_TENSOR_NHWC;
    const auto as_onednn_has_it = [&](const std::vector<float>& w) {
      return mode == KILN_CONVOLUTION ? flipped(line, w) : w;
    };
    const std::vector<float> x = random.values(count(x_layout(line))),
                             w = random.values(count(w_layout(line))),
                             dy = random.values(count(y_layout(line)));
    const ConvolutionOperands o = describe_convolution(line, KILN_DATA_FLOAT, format, mode);

    const ConvolutionProblem dgrad = make_convolution_dgrad(o.spec, o.w, o.y, o.x);
    const std::vector<Operand> data = operands_of(dgrad);
    const auto w_in = onednn::rearranged(w, data[0]), dy_in = onednn::rearranged(dy, data[1]);
    onednn::compare(dgrad, {w_in.data(), dy_in.data()},
                    onednn::rearranged(data_gradient(line, as_onednn_has_it(w), dy), data[2]));
    onednn::compare(dgrad, {w_in.data(), dy_in.data()},
                    onednn::rearranged(transposed(line, as_onednn_has_it(w), dy), data[2]));

    const ConvolutionProblem wgrad = make_convolution_wgrad(o.spec, o.x, o.y, o.w);
    const std::vector<Operand> filter = operands_of(wgrad);
    const auto x_in = onednn::rearranged(x, filter[0]);
    const ParameterGradients parameters = parameter_gradients(line, x, dy);
    onednn::compare(wgrad, {x_in.data(), dy_in.data()},
                    onednn::rearranged(as_onednn_has_it(parameters.w), filter[2]));

    Tensor db = o.y;
    for (int i = 0; i < db.rank; ++i) db.dims[i] = i == 1 ? line.out_channels : 1;
    db.strides = dense_strides(format, db.rank, db.dims);
    onednn::compare(make_bias_gradient(o.y, db), {dy_in.data()}, parameters.bias);
  }
}

BOOST_AUTO_TEST_SUITE_END()
