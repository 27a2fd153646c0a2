// kiln norm: normalizations, their gradients, and the moments of batches.
#include <map>

#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/enumeration.hpp"
#include "core/error.hpp"
#include "problem/line/shape_line.hpp"

namespace kiln::cli {
namespace {

class NormOperation final : public Operation {
 public:
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<NormOperation>(*this);
  }
  const char* command() const override { return "norm"; }
  const char* summary() const override { return "Run a normalization: check it, time it"; }
  const char* line_help() const override {
    return "A PROBLEM is the shape of x, 2 to 8 sizes from the batch on, and perhaps a name:\n"
           "  16x64x112x112_n\"stem\"\n"
           "Of --dir combine it is parts and channels: 8x64";
  }

  void add_flags(Command app) override {
    app.add_option("--dir", direction_,
                   "fwd: y in training; inference: y from mean and variance; apply: from mean and "
                   "inverse deviation; bwd: the gradients; bwd_apply: dx from sums that are given; "
                   "moments: count, mean and M2 of each channel; combine: those of a whole from "
                   "those of its parts")
        .one_of({"fwd", "inference", "apply", "bwd", "bwd_apply", "moments", "combine"})
        .show_default();
    app.add_option("--over", over_,
                   "What shares a mean and a deviation: a channel of the batch, a channel of an "
                   "image, a group of neighboring channels of an image, or the channels of a pixel")
        .one_of({"batch", "instance", "group", "pixel"})
        .show_default();
    app.add_option("--groups", groups_, "Groups of channels, of --over group");
    app.add_flag("--rms", rms_, "Not centered: the mean is 0");
    app.add_flag("--no-affine", plain_, "No scale and bias");
    app.add_flag("--no-bias", unbiased_, "A scale alone");
    app.add_flag("--no-running", local_, "Training updates no running statistics");
    app.add_flag("--residual", residual_, "Add a tensor before the activation");
    app.add_flag("--frozen", frozen_, "The gradient takes mean and deviation as constants");
    app.add_option("--epsilon", epsilon_, "Added to the variance").show_default();
    activation_.add_to(app, "The function applied last");
    add_type_and_layout(app, *this, Lists::of_layouts);
    strides_.add_to(app);
  }

  Problem make(const std::string& line) const override {
    NormalizationSpec spec;
    spec.affine = !plain_;
    spec.bias = !unbiased_;
    spec.statistics = static_cast<kilnNormalizationStatistics_t>(
        find_enumerator(enumeration_of(spec.statistics), over_)->value);
    spec.groups = groups_;
    spec.centered = !rms_;
    spec.running = !local_;
    spec.frozen = frozen_;
    spec.epsilon = epsilon_;
    spec.activation = activation_.make();
    const std::vector<std::int64_t> sizes = parse_shape_line(line, 1).shapes[0];
    if (direction_ == "combine") {
      if (sizes.size() != 2)
        fail(KILN_STATUS_BAD_PARAM, "the line has ", sizes.size(),
             " sizes; expected 2, parts and channels");
      return make_normalization_combine(spec, type_of(type, 0, 1), sizes[0], sizes[1]);
    }
    const std::map<std::string, Tensor> t = tensors(sizes);
    if (direction_ == "moments") return make_normalization_moments(t.at("x"));
    const Tensor* const residual = residual_ ? &t.at("residual") : nullptr;
    if (direction_ == "bwd")
      return make_normalization_backward(spec, t.at("x"), residual, t.at("dy"),
                                         residual_ ? &t.at("dresidual") : nullptr, t.at("dx"));
    if (direction_ == "bwd_apply" && residual_)
      fail(KILN_STATUS_BAD_PARAM,
           "--dir is bwd_apply; expected another with --residual, for dy is ",
           "the gradient after it");
    if (direction_ == "bwd_apply")
      return make_normalization_backward_apply(spec, t.at("x"), t.at("dy"), t.at("dx"));
    if (frozen_)
      fail(KILN_STATUS_BAD_PARAM, "--dir is ", direction_, "; expected bwd with --frozen");
    if (direction_ == "inference")
      return make_normalization_inference(spec, t.at("x"), residual, t.at("y"));
    if (direction_ == "apply")
      return make_normalization_apply(spec, t.at("x"), residual, t.at("y"));
    return make_normalization_training(spec, t.at("x"), residual, t.at("y"));
  }

  std::string name_in(const std::string& line) const override {
    return parse_shape_line(line, 1).name;
  }

 private:
  // The tensors that the flags ask for, by name, with layouts in the order of an execution.
  std::map<std::string, Tensor> tensors(const std::vector<std::int64_t>& sizes) const {
    std::vector<std::string> names{"x"};
    if (residual_) names.emplace_back("residual");
    if (direction_.starts_with("bwd")) {
      names.emplace_back("dy");
      if (residual_) names.emplace_back("dresidual");
      names.emplace_back("dx");
    } else if (direction_ != "moments") {
      names.emplace_back("y");
    }
    std::map<std::string, Tensor> out;
    for (std::size_t i = 0; i < names.size(); ++i) {
      Tensor tensor;
      tensor.type = type_of(type, i, names.size());
      tensor.rank = static_cast<int>(sizes.size());
      std::copy(sizes.begin(), sizes.end(), tensor.dims.begin());
      check_tensor(tensor, names[i].c_str(), true);
      tensor.strides = dense_strides(layout_of(layout, i, names.size()), tensor.rank, tensor.dims);
      strides_.apply(tensor, names[i]);
      out[names[i]] = tensor;
    }
    return out;
  }

  std::string direction_ = "fwd", over_ = "batch";
  std::int64_t groups_ = 0;
  bool rms_ = false, unbiased_ = false;
  bool plain_ = false, local_ = false, residual_ = false, frozen_ = false;
  double epsilon_ = NormalizationSpec{}.epsilon;
  ActivationOptions activation_{"identity"};
  StrideOptions strides_{{"x", "residual", "y", "dy", "dresidual", "dx"}};
};

}  // namespace

std::unique_ptr<Operation> make_norm_operation() { return std::make_unique<NormOperation>(); }

}  // namespace kiln::cli
