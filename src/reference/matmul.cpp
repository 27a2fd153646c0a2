// Products of matrices by their definition. An output is a convolution's of one tap, and so is the
// error that it may have.
#include "reference/convolution_sum.hpp"
#include "reference/element.hpp"

namespace kiln::reference {

std::vector<Expected> expect(const MatmulProblem& problem, const Request& request) {
  const std::vector<Operand> operands = operands_of(problem);
  const void* const z =
      problem.epilogue.residual ? memory_of(operands, request, "z") : request.operands.back();
  const MatrixStrides& z_strides = problem.epilogue.residual ? problem.z : problem.d;
  const void* const bias = memory_of(operands, request, "bias");
  ConvolutionProblem output;
  output.x_type = output.w_type = problem.type;
  output.y_type = problem.d_type;
  output.math = problem.math;
  output.epilogue = problem.epilogue;

  std::vector<Expected> out(request.indices.size());
  with_element(problem.type, [&](auto element) {
    using T = decltype(element);
    const T* const a = static_cast<const T*>(memory_of(operands, request, "a"));
    const T* const b = static_cast<const T*>(memory_of(operands, request, "b"));
    parallel(static_cast<std::int64_t>(out.size()), request.threads, [&](std::int64_t i) {
      const std::int64_t index = request.indices[i], column = index % problem.columns,
                         row = index / problem.columns % problem.rows,
                         matrix = index / problem.columns / problem.rows;
      const T* const from_a = a + matrix * problem.a.batch + row * problem.a.row;
      const T* const from_b = b + matrix * problem.b.batch + column * problem.b.column;
      Sum sum;
      for (std::int64_t k = 0; k < problem.inner; ++k)
        sum.add(to_double(from_a[k * problem.a.column]), to_double(from_b[k * problem.b.row]));
      const std::int64_t of_z =
          matrix * z_strides.batch + row * z_strides.row + column * z_strides.column;
      const double residual = request.scalars.beta == 0
                                  ? 0
                                  : request.scalars.beta * read_element(problem.d_type, z, of_z);
      const double added =
          bias == nullptr ? 0 : read_element(problem.d_type, bias, column * problem.bias_stride);
      out[i] = finish(output, request.scalars, sum, terms_of_output(problem), residual, added);
    });
  });
  return out;
}

double terms_of_output(const MatmulProblem& problem) { return static_cast<double>(problem.inner); }

}  // namespace kiln::reference
