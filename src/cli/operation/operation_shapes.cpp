// kiln act, kiln softmax, kiln tensor: operations whose problem lines are shapes.
#include <algorithm>

#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "problem/line/shape_line.hpp"

namespace kiln::cli {
namespace {

constexpr const char* shape_help =
    "A PROBLEM is a shape, 1 to 8 sizes from the batch on, or one for each operand, and perhaps a\n"
    "name:\n"
    "  16x64x112x112\n"
    "  16x64x112x112:1x64x1x1_n\"bias\"";

// Expands an input to the result's sizes: where its size is 1 and the result's is not, its stride
// becomes 0. A problem line gives such strides as sizes of 1.
Tensor broadcast(const Tensor& tensor, const Tensor& result) {
  Tensor out = tensor;
  for (int i = 0; i < out.rank; ++i) {
    if (out.dims[i] != 1 || result.dims[i] == 1) continue;
    out.dims[i] = result.dims[i];
    out.strides[i] = 0;
  }
  return out;
}

class ShapeOperation : public Operation {
 public:
  explicit ShapeOperation(const std::vector<std::string>& names) : strides_(names) {}

 protected:
  std::string name_in(const std::string& line) const override {
    return parse_shape_line(line, 3).name;
  }

  // The tensors of a line, one for each name, in that order.
  std::vector<Tensor> tensors(const std::string& line,
                              const std::vector<std::string>& names) const {
    const auto shapes = parse_shape_line(line, names.size()).shapes;
    if (shapes.size() != 1 && shapes.size() != names.size())
      fail(KILN_STATUS_BAD_PARAM, "the line has ", shapes.size(), " shapes; expected 1, or ",
           names.size(), ": ", join(names, ", "));
    std::vector<Tensor> out;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& sizes = shapes.size() == 1 ? shapes[0] : shapes[i];
      Tensor tensor;
      tensor.type = type_of(type, i, names.size());
      tensor.rank = static_cast<int>(sizes.size());
      std::copy(sizes.begin(), sizes.end(), tensor.dims.begin());
      check_tensor(tensor, names[i].c_str(), true);
      tensor.strides = dense_strides(layout_of(layout, i, names.size()), tensor.rank, tensor.dims);
      strides_.apply(tensor, names[i]);
      out.push_back(tensor);
    }
    return out;
  }

  void add_direction(Command app) {
    app.add_option("--dir", direction_, "fwd: y; bwd: the gradient of x")
        .one_of({"fwd", "bwd"})
        .show_default();
  }
  void add_operands(Command app, Lists lists = Lists::of_layouts) {
    add_type_and_layout(app, *this, lists);
    strides_.add_to(app);
  }
  bool backward() const { return direction_ == "bwd"; }

 private:
  std::string direction_ = "fwd";
  StrideOptions strides_;
};

class ActOperation final : public ShapeOperation {
 public:
  ActOperation() : ShapeOperation({"x", "y", "dy", "dx"}) {}
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<ActOperation>(*this);
  }
  const char* command() const override { return "act"; }
  const char* summary() const override { return "Run activations: check them, time them"; }
  const char* line_help() const override { return shape_help; }

  void add_flags(Command app) override {
    add_direction(app);
    activation_.add_to(app, "The function");
    add_operands(app);
  }

  Problem make(const std::string& line) const override {
    const Activation activation = activation_.make();
    if (!backward()) {
      const std::vector<Tensor> t = tensors(line, {"x", "y"});
      return make_activation_forward(activation, broadcast(t[0], t[1]), t[1]);
    }
    const bool from_output = gradient_from_output(activation);
    const std::vector<Tensor> t = tensors(line, {from_output ? "y" : "x", "dy", "dx"});
    return make_activation_backward(activation, broadcast(t[0], t[2]),
                                    from_output ? "yDesc" : "xDesc", broadcast(t[1], t[2]), t[2]);
  }

 private:
  ActivationOptions activation_{"relu"};
};

class SoftmaxOperation final : public ShapeOperation {
 public:
  SoftmaxOperation() : ShapeOperation({"x", "y", "dy", "dx"}) {}
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<SoftmaxOperation>(*this);
  }
  const char* command() const override { return "softmax"; }
  const char* summary() const override { return "Run softmax: check it, time it"; }
  const char* line_help() const override { return shape_help; }

  void add_flags(Command app) override {
    add_direction(app);
    app.add_option("--algorithm", algorithm_,
                   "With the hardware's exp, an accurate one, or the log")
        .one_of(names_of<kilnSoftmaxAlgorithm_t>())
        .show_default();
    app.add_option("--over", over_, "Over the channels of each location, or over each image")
        .one_of(names_of<kilnSoftmaxMode_t>())
        .show_default();
    add_operands(app);
  }

  Problem make(const std::string& line) const override {
    kilnSoftmaxAlgorithm_t algorithm{};
    kilnSoftmaxMode_t mode{};
    parse_name(algorithm_, algorithm);
    parse_name(over_, mode);
    if (!backward()) {
      const std::vector<Tensor> t = tensors(line, {"x", "y"});
      return make_softmax_forward(algorithm, mode, t[0], t[1]);
    }
    const std::vector<Tensor> t = tensors(line, {"y", "dy", "dx"});
    return make_softmax_backward(algorithm, mode, t[0], t[1], t[2]);
  }

 private:
  std::string algorithm_ = "accurate", over_ = "channels";
};

class TensorOperation final : public ShapeOperation {
 public:
  TensorOperation() : ShapeOperation({"x", "y", "a", "b", "c"}) {}
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<TensorOperation>(*this);
  }
  const char* command() const override { return "tensor"; }
  const char* summary() const override {
    return "Transform, set, add, multiply and reduce tensors: check it, time it";
  }
  const char* line_help() const override { return shape_help; }

  void add_flags(Command app) override {
    app.add_option("--op", op_,
                   "copy: y = alpha x + beta y, between layouts and types, x broadcast where its "
                   "size is 1; fill: y = alpha + beta y; add, sub, mul, div, min, max, eq, ne, lt, "
                   "le, gt, ge of a and b into c; reduce_sum, reduce_mean, reduce_mul, reduce_max, "
                   "reduce_min, reduce_amax, reduce_norm1, reduce_norm2 of a into c")
        .one_of(operations())
        .show_default();
    add_operands(app, Lists::of_both);
  }

  Problem make(const std::string& line) const override {
    if (op_ == "fill") return make_fill(tensors(line, {"y"})[0]);
    if (op_ == "copy") {
      const std::vector<Tensor> t = tensors(line, {"x", "y"});
      return t[0].type == t[1].type ? make_add(t[0], t[1])
                                    : make_transform(broadcast(t[0], t[1]), t[1]);
    }
    if (kilnOpTensorOp_t binary{}; parse_name(op_, binary)) {
      const std::vector<Tensor> t = tensors(line, {"a", "b", "c"});
      return make_binary(binary, t[0], t[1], t[2]);
    }
    kilnReduceTensorOp_t reduction{};
    parse_name(op_, reduction);
    const std::vector<Tensor> t = tensors(line, {"a", "c"});
    return make_reduction(reduction, t[0], t[1]);
  }

 private:
  static std::vector<std::string> operations() {
    std::vector<std::string> names{"copy", "fill"};
    for (std::string& name : names_of<kilnOpTensorOp_t>()) names.push_back(std::move(name));
    for (std::string& name : names_of<kilnReduceTensorOp_t>()) names.push_back(std::move(name));
    return names;
  }

  std::string op_ = "copy";
};

}  // namespace

std::unique_ptr<Operation> make_act_operation() { return std::make_unique<ActOperation>(); }
std::unique_ptr<Operation> make_softmax_operation() { return std::make_unique<SoftmaxOperation>(); }
std::unique_ptr<Operation> make_tensor_operation() { return std::make_unique<TensorOperation>(); }

}  // namespace kiln::cli
