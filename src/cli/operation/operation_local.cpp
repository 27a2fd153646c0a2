// kiln local: the three passes of a locally connected layer.
#include <algorithm>

#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "problem/line/shape_line.hpp"

namespace kiln::cli {
namespace {

class LocalOperation final : public Operation {
 public:
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<LocalOperation>(*this);
  }
  const char* command() const override { return "local"; }
  const char* summary() const override {
    return "Run locally connected layers, each output pixel with weights of its own: check them, "
           "time them";
  }
  const char* line_help() const override {
    return "A PROBLEM is written as that of kiln conv:\n"
           "  mb32_ic16ih33iw33_oc16oh25ow25_kh9kw9_n\"name\"";
  }

  void add_flags(Command app) override {
    app.add_option("--dir", direction_, "fwd: y; dgrad: the gradient of x; wgrad: of w")
        .one_of({"fwd", "dgrad", "wgrad"})
        .show_default();
    add_type_and_layout(app, *this, Lists::of_types);
    app.add_option("--mode", mode_, "Cross-correlation, or convolution with the filter flipped")
        .one_of({"xcorr", "conv"})
        .show_default();
    app.add_option("--align", alignment_, "Bytes that every operand's address is a multiple of")
        .show_default();
    app.add_option("--weights", order_,
                   "Order of the weights, outermost first: p output pixels, k output channels, c "
                   "input channels, t taps, and n where each image has weights of its own (pkct if "
                   "left out, pktc of nhwc; Keras has ptck)")
        .type_name("ORDER");
    app.add_option("--bias", bias_,
                   "Add a bias (fwd): element, one an output element; channel, one a channel; or a "
                   "shape, 1x16x25x25, each size 1 or the output's");
    strides_.add_to(app);
  }

  Problem make(const std::string& text) const override {
    ConvolutionOperands o = describe_convolution(
        parse_convolution_line(text), type_of(type, 0, 3), layout_of(layout, 0, 1),
        mode_ == "conv" ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
    o.w.type = type_of(type, 1, 3);
    o.y.type = type_of(type, 2, 3);
    check_alignment(alignment_);
    o.spec.alignment = alignment_;
    Tensor w = local_weights(o.w, o.y, order_.empty() ? layout == "nhwc" ? "pktc" : "pkct" : order_,
                             "--weights");
    strides_.apply(o.x, "x");
    strides_.apply(w, "w");
    strides_.apply(o.y, "y");
    if (direction_ != "fwd" && !bias_.empty())
      fail(KILN_STATUS_BAD_PARAM, "--dir is ", direction_, "; expected fwd with --bias");
    if (direction_ == "dgrad") return make_local_dgrad(o.spec, w, o.y, o.x);
    if (direction_ == "wgrad") return make_local_wgrad(o.spec, o.x, o.y, w);
    if (bias_.empty()) return make_local(o.spec, o.x, w, nullptr, o.y);
    const Tensor bias = bias_of(o.y);
    return make_local(o.spec, o.x, w, &bias, o.y);
  }

  std::string name_in(const std::string& line) const override {
    return parse_convolution_line(line).name;
  }

 private:
  Tensor bias_of(const Tensor& y) const {
    Tensor bias = y;
    bias.dims[0] = 1;
    if (bias_ == "channel") {
      for (int i = 2; i < bias.rank; ++i) bias.dims[i] = 1;
    } else if (bias_ != "element") {
      const std::vector<std::int64_t> sizes = parse_shape_line(bias_, 1).shapes[0];
      bias.rank = static_cast<int>(sizes.size());
      std::copy(sizes.begin(), sizes.end(), bias.dims.begin());
    }
    check_tensor(bias, "bias", true);
    bias.strides = dense_strides(KILN_TENSOR_NCHW, bias.rank, bias.dims);
    strides_.apply(bias, "bias");
    return bias;
  }

  std::int64_t alignment_ = ConvolutionSpec{}.alignment;
  std::string direction_ = "fwd", mode_ = "xcorr", order_, bias_;
  StrideOptions strides_{{"x", "w", "y", "bias"}};
};

}  // namespace

std::unique_ptr<Operation> make_local_operation() { return std::make_unique<LocalOperation>(); }

}  // namespace kiln::cli
