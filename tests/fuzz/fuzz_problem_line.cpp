// Any text at all: a problem line of any operation is read or refused with BAD_PARAM, and what is
// read survives printing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "problem/line/shape_line.hpp"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Function>
void expect_bad_param_alone(Function&& function) {
  try {
    function();
  } catch (const kiln::Error& error) {
    require(error.status() == KILN_STATUS_BAD_PARAM);
    require(error.what()[0] != '\0');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = kiln::problem_lines(text);
  for (const auto& [number, line] : lines) {
    require(number >= 1 && line.find('\n') == line.npos);
  }
  expect_bad_param_alone([&] {
    const kiln::ConvolutionLine line = kiln::parse_convolution_line(text);
    require(kiln::parse_convolution_line(kiln::print_convolution_line(line)) == line);
    for (kilnDataType_t type : {KILN_DATA_DOUBLE, KILN_DATA_HALF}) {
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        const kiln::ConvolutionProblem problem =
            make_convolution(line, type, layout, KILN_CROSS_CORRELATION);
        require(problem.in_channels == line.in_channels && problem.out == line.out);
      }
    }
  });
  expect_bad_param_alone([&] {
    const kiln::ConvolutionLine line = kiln::parse_pooling_line(text);
    require(line.in_channels == line.out_channels);
    require(kiln::parse_pooling_line(kiln::print_pooling_line(line)) == line);
  });
  expect_bad_param_alone([&] {
    const auto shapes = kiln::parse_shape_line(text, 3).shapes;
    require(!shapes.empty() && shapes.size() <= 3);
    for (const auto& shape : shapes) {
      require(shape.size() == shapes[0].size() && shape.size() >= 1 &&
              shape.size() <= KILN_DIM_MAX);
      for (const std::int64_t extent : shape) require(extent >= 0);
    }
  });
  return 0;
}
