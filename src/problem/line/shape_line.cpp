#include "problem/line/shape_line.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln {
namespace {

// Prints the values of a tensor with `rank` dimensions of space; -1: only {N}, 0: {N, C}.
std::string print(const Dims& values, int rank, const char* separator) {
  std::string text = cat(values[0]);
  if (rank >= 0) text += cat(separator, values[1]);
  for (int i = operand_rank - std::max(rank, 0); i < operand_rank; ++i)
    text += cat(separator, values[i]);
  return text;
}

bool is_dense(const Operand& operand, kilnTensorFormat_t format) {
  return operand.strides == dense_operand_strides(format, operand.dims);
}

// One value if all are the same, else all of them separated by ':'.
std::string join_values(const std::vector<std::string>& values) {
  const bool same = std::all_of(values.begin(), values.end(),
                                [&](const std::string& value) { return value == values[0]; });
  return same ? values[0] : join(values, ":");
}

}  // namespace

ShapeLine parse_shape_line(std::string_view line, std::size_t most) {
  ShapeLine out;
  auto& shapes = out.shapes;
  shapes.emplace_back();
  const char* const begin = line.data();
  const char* const end = begin + line.size();
  const char* at = begin;
  const auto wrong = [&](const std::string& expected) {
    const std::string found =
        at == end ? "the line ends" : cat("there is \"", std::string(at, end), "\"");
    fail(KILN_STATUS_BAD_PARAM, "column ", at - begin + 1, ": ", found, "; expected ", expected);
  };
  for (;;) {
    std::int64_t size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) wrong("a size, such as in 16x64x28x28");
    shapes.back().push_back(size);
    at = stop;
    const bool more_sizes = at != end && *at == 'x';
    if (more_sizes) {
      if (shapes.back().size() == KILN_DIM_MAX) wrong(cat("at most ", KILN_DIM_MAX, " sizes"));
      ++at;
      continue;
    }
    if (shapes.back().size() != shapes.front().size())
      fail(KILN_STATUS_BAD_PARAM, "column ", at - begin + 1, ": the shape has ",
           shapes.back().size(), " sizes; expected ", shapes.front().size(),
           ", as the first shape has");
    if (at == end) return out;
    if (const std::string_view rest(at, end); rest.starts_with("_n") || rest.starts_with('n')) {
      out.name = unquoted(rest.substr(rest.find('n') + 1));
      return out;
    }
    if (*at != ':') wrong("'x' and another size, ':' and another shape, _n\"name\", or the end");
    if (shapes.size() == most) wrong(cat("at most ", most, most == 1 ? " shape" : " shapes"));
    shapes.emplace_back();
    ++at;
  }
}

std::string print_shapes(const std::vector<Operand>& operands, int rank) {
  std::vector<std::string> shapes;
  for (const Operand& operand : operands) shapes.push_back(print(operand.dims, rank, "x"));
  return join_values(shapes);
}

std::string print_operand_flags(const std::vector<Operand>& operands, int rank) {
  const kilnTensorFormat_t usual =
      !is_dense(operands.back(), KILN_TENSOR_NCHW) && is_dense(operands.back(), KILN_TENSOR_NHWC)
          ? KILN_TENSOR_NHWC
          : KILN_TENSOR_NCHW;
  const kilnTensorFormat_t other = usual == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
  std::vector<std::string> types, layouts;
  std::string strides;
  for (const Operand& operand : operands) {
    types.emplace_back(name_of(operand.type));
    const bool is_other = !is_dense(operand, usual) && is_dense(operand, other);
    layouts.emplace_back((is_other ? other : usual) == KILN_TENSOR_NHWC ? "nhwc" : "nchw");
    if (!is_dense(operand, usual) && !is_other)
      strides += cat("--", operand.name, "-strides ", print(operand.strides, rank, ":"), " ");
  }
  std::string flags;
  if (const std::string text = join_values(types); text != "f32") flags += cat("--dt ", text, " ");
  if (const std::string text = join_values(layouts); text != "nchw")
    flags += cat("--layout ", text, " ");
  return flags + strides;
}

}  // namespace kiln
