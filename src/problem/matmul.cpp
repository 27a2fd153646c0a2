#include "problem/matmul.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "problem/tensor/checks.hpp"

namespace kiln {
namespace {

using Kind = EpilogueOperation::Kind;

// A tensor of two or three dimensions as matrices.
struct Matrices {
  std::int64_t batch = 1, rows = 0, columns = 0;
  MatrixStrides strides;

  explicit Matrices(const Tensor& tensor) {
    const int last = tensor.rank - 1;
    if (tensor.rank == 3) batch = tensor.dims[0], strides.batch = tensor.strides[0];
    rows = tensor.dims[last - 1], strides.row = tensor.strides[last - 1];
    columns = tensor.dims[last], strides.column = tensor.strides[last];
    if (columns < 2) strides.column = 0;
    if (tensor.rank == 3 && rows < 2) strides.row = 0;
  }
};

void check_rank(const Tensor& tensor, const char* name, int rank) {
  if (tensor.rank != rank)
    fail(KILN_STATUS_BAD_PARAM, name, " has ", tensor.rank, " dimensions; expected ", rank,
         rank == 2 ? ", rows and columns, as aDesc has"
                   : ", a batch, rows and columns, as aDesc "
                     "has");
}

void check_types(const Tensor& a, const Tensor& b, const Tensor& d) {
  check_same_type(b, "bDesc", a, "aDesc");
  if (size_of(a.type) != 2) return check_same_type(d, "dDesc", a, "aDesc");
  if (d.type != a.type && d.type != KILN_DATA_FLOAT)
    fail(KILN_STATUS_BAD_PARAM, "dDesc has data type ", name_of(d.type), "; expected ",
         name_of(a.type), ", as aDesc has, or f32");
}

void check_sizes(const Tensor& a, const Tensor& b, const Tensor& d) {
  const Matrices of_a(a), of_b(b), of_d(d);
  if (of_b.rows != of_a.columns)
    fail(KILN_STATUS_BAD_PARAM, "bDesc has sizes ", sizes_text(b), ", so ", of_b.rows,
         " rows; expected ", of_a.columns, ", the columns of aDesc, whose sizes are ",
         sizes_text(a));
  const auto check_batch = [&](const char* name, std::int64_t batch) {
    if (batch != of_d.batch && batch != 1)
      fail(KILN_STATUS_BAD_PARAM, name, ": dims[0] is ", batch, "; expected ", of_d.batch,
           ", as dDesc has, or 1, for one matrix that all share");
  };
  check_batch("aDesc", of_a.batch);
  check_batch("bDesc", of_b.batch);
  if (of_d.rows != of_a.rows || of_d.columns != of_b.columns)
    fail(KILN_STATUS_BAD_PARAM, "dDesc has sizes ", sizes_text(d), "; the product of aDesc, ",
         sizes_text(a), ", and bDesc, ", sizes_text(b), ", has ", of_a.rows, " rows and ",
         of_b.columns, " columns");
}

// Adds a checked epilogue.
void add_epilogue(MatmulProblem& problem, const EpilogueList& list, const Tensor& d) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].kind == Kind::moments || list[i].kind == Kind::gradient)
      fail(KILN_STATUS_NOT_SUPPORTED, "operation ", i, " of the epilogue is ",
           list[i].kind == Kind::moments ? "moments" : "a normalization's gradient",
           "; a matrix product takes a bias, a residual and an activation");
  problem.epilogue = make_epilogue(list);
  if (const Tensor* const z = tensor_of(list, Kind::residual)) {
    check_given(*z, "zDesc");
    check_same_type(*z, "zDesc", d, "dDesc");
    check_same_sizes(*z, "zDesc", d, "dDesc");
    problem.z = Matrices(*z).strides;
  }
  if (const Tensor* const bias = tensor_of(list, Kind::bias)) {
    check_given(*bias, "biasDesc");
    check_same_type(*bias, "biasDesc", d, "dDesc");
    Tensor expected = d;
    std::fill_n(expected.dims.begin(), d.rank - 1, 1);
    if (bias->rank != d.rank || sizes_text(*bias) != sizes_text(expected))
      fail(KILN_STATUS_BAD_PARAM, "biasDesc has sizes ", sizes_text(*bias), "; expected ",
           sizes_text(expected), ", one element a column of dDesc");
    problem.bias_stride = Matrices(*bias).strides.column;
  }
}

// Sizes {rows, columns, 1, 1, 1}, or {batch, rows, 1, 1, columns}.
Operand operand_of(const MatmulProblem& problem, const char* name, DataType type, std::int64_t rows,
                   std::int64_t columns, const MatrixStrides& strides) {
  if (problem.rank == 2)
    return {name, type, {rows, columns, 1, 1, 1}, {strides.row, strides.column}};
  return {name,
          type,
          {problem.batch, rows, 1, 1, columns},
          {strides.batch, strides.row, 0, 0, strides.column}};
}

// One of the matrices, for the line.
struct Named {
  const char* name;
  std::int64_t rows, columns;
  MatrixStrides strides;
};

// The strides of dense matrices, as make_matmul() would have them.
MatrixStrides dense(const MatmulProblem& problem, const Named& matrix, bool by_columns) {
  const auto [name, rows, columns, own] = matrix;
  const bool keeps_row = problem.rank == 2 && *name != 'b';
  MatrixStrides strides;
  if (problem.rank == 3) strides.batch = rows * columns;
  if (rows > 1 || keeps_row) strides.row = by_columns ? 1 : columns;
  if (columns > 1) strides.column = by_columns ? rows : 1;
  return strides;
}

// The flag of a matrix that does not lie row by row without gaps.
std::string layout_flag(const MatmulProblem& problem, const Named& matrix) {
  const MatrixStrides& strides = matrix.strides;
  if (strides == dense(problem, matrix, false)) return "";
  if (strides == dense(problem, matrix, true)) return cat("--", matrix.name, "-layout column ");
  const std::string batch = problem.rank == 3 ? cat(strides.batch, ":") : "";
  return cat("--", matrix.name, "-strides ", batch, strides.row, ":", strides.column, " ");
}

}  // namespace

double MatmulProblem::flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(rows) *
         static_cast<double>(columns) * static_cast<double>(inner);
}

MatmulProblem make_matmul(const MatmulSpec& spec, const Tensor& a, const Tensor& b, const Tensor& d,
                          const EpilogueList& epilogue) {
  check_given(a, "aDesc");
  if (a.rank != 2 && a.rank != 3)
    fail(KILN_STATUS_BAD_PARAM, "aDesc has ", a.rank,
         " dimensions; expected 2, rows and columns, or 3 with a batch before them");
  check_given(b, "bDesc", a.rank == 3 ? Role::tensor : Role::filter);
  check_given(d, "dDesc");
  check_rank(b, "bDesc", a.rank);
  check_rank(d, "dDesc", a.rank);
  check_types(a, b, d);
  check_sizes(a, b, d);
  check_writable(d, "dDesc");
  const Matrices of_a(a), of_b(b), of_d(d);
  MatmulProblem problem;
  problem.type = a.type;
  problem.d_type = d.type;
  problem.rank = a.rank;
  problem.batch = of_d.batch;
  problem.rows = of_d.rows;
  problem.columns = of_d.columns;
  problem.inner = of_a.columns;
  problem.math =
      spec.math == KILN_MATH_TF32 && a.type != KILN_DATA_FLOAT ? KILN_MATH_DEFAULT : spec.math;
  problem.alignment = std::min(spec.alignment, problem.alignment);
  problem.a = of_a.strides;
  problem.b = of_b.strides;
  problem.d = of_d.strides;
  if (of_a.batch != of_d.batch) problem.a.batch = 0;
  if (of_b.batch != of_d.batch) problem.b.batch = 0;
  if (of_b.rows < 2) problem.b.row = 0;
  add_epilogue(problem, epilogue, d);
  return problem;
}

std::vector<Operand> operands_of(const MatmulProblem& p) {
  std::vector<Operand> operands{operand_of(p, "a", p.type, p.rows, p.inner, p.a),
                                operand_of(p, "b", p.type, p.inner, p.columns, p.b)};
  Operand d = operand_of(p, "d", p.d_type, p.rows, p.columns, p.d);
  d.written = true;
  if (p.epilogue.residual) {
    operands.push_back(operand_of(p, "z", p.d_type, p.rows, p.columns, p.z));
    operands.back().in_place = true;
  }
  if (p.epilogue.bias) {
    Operand bias = operand_of(p, "bias", p.d_type, 1, p.columns, {0, 0, p.bias_stride});
    bias.dims[0] = 1;
    operands.push_back(bias);
  }
  operands.push_back(d);
  return operands;
}

std::string to_line(const MatmulProblem& p) {
  std::string flags;
  if (p.d_type != p.type)
    flags += cat("--dt ", name_of(p.type), ":", name_of(p.type), ":", name_of(p.d_type), " ");
  else if (p.type != KILN_DATA_FLOAT)
    flags += cat("--dt ", name_of(p.type), " ");
  if (p.math != KILN_MATH_DEFAULT) flags += cat("--math ", name_of(p.math), " ");
  if (p.alignment != MatmulSpec{}.alignment) flags += cat("--align ", p.alignment, " ");
  const ConvolutionEpilogue& epilogue = p.epilogue;
  if (epilogue.bias) flags += "--bias ";
  if (epilogue.bias && p.bias_stride != (p.columns > 1 ? 1 : 0))
    flags += cat("--bias-stride ", p.bias_stride, " ");
  if (epilogue.residual) flags += "--residual ";
  if (epilogue.residual_last) flags += "--residual-last ";
  if (epilogue.activation.mode != KILN_ACTIVATION_IDENTITY)
    flags += print_activation(epilogue.activation);
  flags += layout_flag(p, {"a", p.rows, p.inner, p.a});
  flags += layout_flag(p, {"b", p.inner, p.columns, p.b});
  flags += layout_flag(p, {"d", p.rows, p.columns, p.d});
  if (epilogue.residual) flags += layout_flag(p, {"z", p.rows, p.columns, p.z});
  const std::string batch = p.rank == 3 ? cat(p.batch, "x") : "";
  return cat(flags, batch, p.rows, "x", p.inner, ":", batch, p.inner, "x", p.columns);
}

}  // namespace kiln
