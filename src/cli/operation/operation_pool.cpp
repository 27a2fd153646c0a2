// kiln pool: pooling and its gradient.
#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln::cli {
namespace {

class PoolOperation final : public Operation {
 public:
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<PoolOperation>(*this);
  }
  const char* command() const override { return "pool"; }
  const char* summary() const override { return "Run pooling: check it, time it"; }
  const char* line_help() const override {
    return "A PROBLEM is written as oneDNN's benchdnn writes it, as for `kiln conv` but without\n"
           "groups and output channels; k is the window:\n"
           "  mb16ic64_ih112oh56_kh3_sh2_ph0_n\"name\"";
  }

  void add_flags(Command app) override {
    app.add_option("--dir", direction_, "fwd: y; bwd: the gradient of x")
        .one_of({"fwd", "bwd"})
        .show_default();
    app.add_option("--mode", mode_, "The maximum, or an average that counts padding or does not")
        .one_of(names_of<kilnPoolingMode_t>())
        .show_default();
    app.add_option("--nan", nan_, "Whether a NaN is the maximum, or passed over")
        .one_of(names_of<kilnNanPropagation_t>())
        .show_default();
    app.add_option("--overhang", overhang_,
                   "Places beyond the padding that avg_include counts, of each dimension, into "
                   "which the last window reaches: ceil mode, in which padding after is as before, "
                   "has what oh needs beyond that")
        .type_name("A:B:...");
    add_type_and_layout(app, *this, Lists::of_layouts);
    strides_.add_to(app);
  }

  Problem make(const std::string& text) const override {
    const ConvolutionLine line = parse_pooling_line(text);
    PoolingSpec spec;
    spec.spatial = line.rank;
    parse_name(mode_, spec.mode);
    parse_name(nan_, spec.nan);
    const std::vector<std::int64_t> overhang = overhangs(line.rank);
    TensorDims in{line.batch, line.in_channels}, out{line.batch, line.in_channels};
    for (int i = 0, axis = 3 - line.rank; i < line.rank; ++i, ++axis) {
      spec.window[i] = line.filter[axis];
      spec.pad_before[i] = line.pad_before[axis];
      spec.overhang[i] = overhang[i];
      spec.pad_after[i] = line.pad_after[axis] - overhang[i];
      spec.stride[i] = line.stride[axis];
      spec.dilation[i] = line.dilation[axis];
      in[i + 2] = line.in[axis];
      out[i + 2] = line.out[axis];
    }
    const bool max = spec.mode == KILN_POOLING_MAX;
    const std::vector<std::string> names = direction_ == "fwd" ? std::vector<std::string>{"x", "y"}
                                           : max ? std::vector<std::string>{"dy", "x", "dx"}
                                                 : std::vector<std::string>{"dy", "dx"};
    const auto tensor = [&](const std::string& name) {
      std::size_t i = 0;
      while (names[i] != name) ++i;
      Tensor made;
      made.type = type_of(type, i, names.size());
      made.rank = line.rank + 2;
      made.dims = name == "y" || name == "dy" ? out : in;
      check_tensor(made, names[i].c_str(), true);
      made.strides = dense_strides(layout_of(layout, i, names.size()), made.rank, made.dims);
      strides_.apply(made, name);
      return made;
    };
    if (direction_ == "fwd") return make_pooling_forward(spec, tensor("x"), tensor("y"));
    if (!max) return make_pooling_backward(spec, tensor("dy"), nullptr, tensor("dx"));
    const Tensor x = tensor("x");
    return make_pooling_backward(spec, tensor("dy"), &x, tensor("dx"));
  }

  std::string name_in(const std::string& line) const override {
    return parse_pooling_line(line).name;
  }

 private:
  std::vector<std::int64_t> overhangs(int rank) const {
    std::vector<std::int64_t> out(static_cast<std::size_t>(rank));
    if (!overhang_.empty()) parse_numbers("--overhang", overhang_, out);
    return out;
  }

  std::string direction_ = "fwd", mode_ = "max", nan_ = "propagate", overhang_;
  StrideOptions strides_{{"x", "y", "dy", "dx"}};
};

}  // namespace

std::unique_ptr<Operation> make_pool_operation() { return std::make_unique<PoolOperation>(); }

}  // namespace kiln::cli
