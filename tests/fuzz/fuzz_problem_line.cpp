// Any text at all: a problem line is read or refused with BAD_PARAM, and what is read survives
// printing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.hpp"
#include "problem/problem_line.hpp"

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
  return 0;
}
