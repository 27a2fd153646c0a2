// kiln conv: the three passes of a convolution, and the bias gradient.
#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln::cli {
namespace {

class ConvOperation final : public Operation {
 public:
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<ConvOperation>(*this);
  }
  const char* command() const override { return "conv"; }
  const char* summary() const override { return "Run convolutions: check them, time them"; }
  const char* line_help() const override {
    return "A PROBLEM is written as oneDNN's benchdnn writes it, entries in any order, "
           "underscores\n"
           "ignored:\n"
           "  g1mb128_ic96ih64iw64_oc128oh56ow56_kh9kw9_sh1sw1_ph0pw0_dh0dw0_n\"name\"\n"
           "g groups (1), mb batch (2), ic and oc channels in all groups; then i input, o output,\n"
           "k filter, s stride (1), p padding before, d dilation (0 is dense), each for d depth,\n"
           "h height and w width. Entries of d make it 3-D, of w alone 1-D. What a dimension\n"
           "leaves out it takes from the one above, d to h to w, unless it gives its own input "
           "and\n"
           "filter. A missing output is computed with the padding on both sides, a missing "
           "padding\n"
           "from the output; with both, the padding after is what the output implies.";
  }

  void add_flags(Command app) override {
    app.add_option("--dir", direction_,
                   "fwd: y; dgrad: the gradient of x; wgrad: of w; bgrad: of the bias")
        .one_of({"fwd", "dgrad", "wgrad", "bgrad"})
        .show_default();
    add_type_and_layout(app, *this, Lists::of_types);
    app.add_option("--mode", mode_, "Cross-correlation, or convolution with the filter flipped")
        .one_of({"xcorr", "conv"})
        .show_default();
    add_math(app, math_);
    app.add_option("--align", alignment_,
                   "Bytes that every operand's address is a multiple of; below 16, kernels go "
                   "element by element")
        .show_default();
    epilogue_.add_to(app, "", "tensor", " (fwd, dgrad)");
    app.add_flag("--moments", moments_,
                 "Also count, mean and sum of squares around it, of each channel of the result as "
                 "stored (fwd, dgrad)");
    app.add_flag("--norm-gradient", gradient_,
                 "The result is multiplied by the gradient of --act behind a batch normalization "
                 "of norm_x, and its sums dscale and dbias are written (fwd, dgrad)");
    app.add_flag("--no-affine", plain_, "That normalization has no scale and bias");
    app.add_flag("--norm-residual", norm_residual_,
                 "That normalization added a residual before the activation");
    strides_.add_to(app);
  }

  Problem make(const std::string& text) const override {
    ConvolutionOperands o = describe_convolution(
        parse_convolution_line(text), type_of(type, 0, 3), layout_of(layout, 0, 1),
        mode_ == "conv" ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
    o.w.type = type_of(type, 1, 3);
    o.y.type = type_of(type, 2, 3);
    parse_name(math_, o.spec.math);
    check_alignment(alignment_);
    o.spec.alignment = alignment_;
    const bool transposed = direction_ == "dgrad";
    const Tensor& result = transposed ? o.x : o.y;
    Tensor z = result, bias = result;
    for (int i = 0; i < bias.rank; ++i) bias.dims[i] = i == 1 ? result.dims[1] : 1;
    bias.strides = dense_strides(KILN_TENSOR_NCHW, bias.rank, bias.dims);
    bias.strides[1] = epilogue_.bias_stride;
    strides_.apply(o.x, "x");
    strides_.apply(o.w, "w");
    strides_.apply(o.y, "y");
    strides_.apply(z, "z");
    Tensor norm_x = result, norm_residual = result;
    strides_.apply(norm_x, "norm-x");
    strides_.apply(norm_residual, "norm-residual");
    EpilogueList list = epilogue(z, bias);
    if (gradient_) add_gradient(list, norm_x, norm_residual);
    if (!gradient_ && (plain_ || norm_residual_))
      fail(KILN_STATUS_BAD_PARAM, plain_ ? "--no-affine" : "--norm-residual",
           " is given without --norm-gradient; expected both, or neither");
    if (!transposed && direction_ != "fwd" && !list.empty())
      fail(KILN_STATUS_BAD_PARAM, "--dir is ", direction_,
           "; expected fwd or dgrad with --bias, --residual, --residual-last, --act, --moments or "
           "--norm-gradient");
    if (direction_ == "bgrad") return make_bias_gradient(o.y, bias);
    if (direction_ == "wgrad") return make_convolution_wgrad(o.spec, o.x, o.y, o.w);
    if (transposed && list.empty()) return make_convolution_dgrad(o.spec, o.w, o.y, o.x);
    if (transposed) return make_convolution_transposed(o.spec, o.y, o.w, o.x, list);
    return make_convolution(o.spec, o.x, o.w, o.y, list);
  }

  std::string name_in(const std::string& line) const override {
    return parse_convolution_line(line).name;
  }

 private:
  EpilogueList epilogue(const Tensor& z, const Tensor& bias) const {
    EpilogueList list = epilogue_.make(z, bias, !gradient_);
    if (moments_) list.push_back({.kind = EpilogueOperation::Kind::moments});
    return list;
  }
  // With --norm-gradient, --act is the normalization's.
  void add_gradient(EpilogueList& list, const Tensor& x, const Tensor& residual) const {
    EpilogueOperation gradient{.kind = EpilogueOperation::Kind::gradient,
                               .tensor = x,
                               .activation = epilogue_.activation.make(),
                               .affine = !plain_};
    if (norm_residual_) gradient.residual = residual;
    list.push_back(std::move(gradient));
  }

  std::int64_t alignment_ = ConvolutionSpec{}.alignment;
  std::string direction_ = "fwd", mode_ = "xcorr", math_ = "default";
  bool moments_ = false, gradient_ = false, plain_ = false, norm_residual_ = false;
  EpilogueOptions epilogue_;
  StrideOptions strides_{{"x", "w", "y", "z", "norm-x", "norm-residual"}};
};

}  // namespace

std::unique_ptr<Operation> make_conv_operation() { return std::make_unique<ConvOperation>(); }

}  // namespace kiln::cli
