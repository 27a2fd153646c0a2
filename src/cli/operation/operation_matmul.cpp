// kiln matmul: products of matrices, with an epilogue.
#include <algorithm>

#include "cli/operation/operations.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "problem/line/shape_line.hpp"

namespace kiln::cli {
namespace {

class MatmulOperation final : public Operation {
 public:
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<MatmulOperation>(*this);
  }
  const char* command() const override { return "matmul"; }
  const char* summary() const override {
    return "Run products of matrices, as linear layers are: check them, time them";
  }
  const char* line_help() const override {
    return "A PROBLEM is written as oneDNN's benchdnn writes it: the rows and columns of a and of "
           "b,\n"
           "or these behind the size of a batch, and perhaps a name:\n"
           "  512x768:768x3072\n"
           "  96x128x64:96x64x128_n\"scores\"";
  }

  void add_flags(Command app) override {
    app.add_option("--dt", type,
                   "Data type f32, f64, f16 or bf16 of all operands, or one each for a, b and d: "
                   "the result of f16 or bf16 may be f32, as in f16:f16:f32")
        .each_of(type_names)
        .show_default();
    for (auto& [matrix, order] : layouts_)
      app.add_option(
             "--" + matrix + "-layout", order,
             "Whether the elements of a row or of a column of " + matrix + " lie side by side")
          .one_of({"row", "column"})
          .show_default();
    add_math(app, math_);
    app.add_option("--align", alignment_, "Bytes that every operand's address is a multiple of")
        .show_default();
    epilogue_.add_to(app, ", one element a column of d", "matrix", "");
    strides_.add_to(app);
  }

  Problem make(const std::string& line) const override {
    const auto shapes = parse_shape_line(line, 2).shapes;
    if (shapes.size() != 2)
      fail(KILN_STATUS_BAD_PARAM, "the line has ", shapes.size(),
           " shape; expected 2, those of a and b");
    const std::size_t rank = shapes[0].size();
    if ((rank != 2 && rank != 3) || shapes[1].size() != rank)
      fail(KILN_STATUS_BAD_PARAM, "a has ", rank, " sizes and b ", shapes[1].size(),
           "; expected 2 each, rows and columns, or 3 with a batch before them");
    std::vector<std::int64_t> sizes = shapes[0];
    sizes.back() = shapes[1].back();
    if (rank == 3) sizes[0] = std::max(shapes[0][0], shapes[1][0]);
    const Tensor a = tensor_of("a", 0, shapes[0]), b = tensor_of("b", 1, shapes[1]),
                 d = tensor_of("d", 2, sizes), z = tensor_of("z", 2, sizes);
    Tensor bias = d;
    std::fill_n(bias.dims.begin(), rank - 1, 1);
    bias.strides = dense_strides(KILN_TENSOR_NCHW, bias.rank, bias.dims);
    bias.strides[rank - 1] = epilogue_.bias_stride;
    MatmulSpec spec;
    parse_name(math_, spec.math);
    check_alignment(alignment_);
    spec.alignment = alignment_;
    return make_matmul(spec, a, b, d, epilogue_.make(z, bias));
  }

  std::string name_in(const std::string& line) const override {
    return parse_shape_line(line, 2).name;
  }

 private:
  Tensor tensor_of(const std::string& name, std::size_t number,
                   const std::vector<std::int64_t>& sizes) const {
    Tensor tensor;
    tensor.type = type_of(type, number, 3);
    tensor.rank = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), tensor.dims.begin());
    check_tensor(tensor, name.c_str(), true);
    tensor.strides = dense_strides(KILN_TENSOR_NCHW, tensor.rank, tensor.dims);
    const int last = tensor.rank - 1;
    for (const auto& [matrix, order] : layouts_)
      if (matrix == name && order == "column") {
        tensor.strides[last - 1] = 1;
        tensor.strides[last] = tensor.dims[last - 1];
      }
    strides_.apply(tensor, name);
    return tensor;
  }

  struct Layout {
    std::string matrix, order = "row";
  };
  std::vector<Layout> layouts_{{"a"}, {"b"}, {"d"}, {"z"}};
  std::int64_t alignment_ = MatmulSpec{}.alignment;
  std::string math_ = "default";
  EpilogueOptions epilogue_;
  StrideOptions strides_{{"a", "b", "d", "z"}};
};

}  // namespace

std::unique_ptr<Operation> make_matmul_operation() { return std::make_unique<MatmulOperation>(); }

}  // namespace kiln::cli
