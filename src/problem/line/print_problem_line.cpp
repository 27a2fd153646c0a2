#include "core/error.hpp"
#include "problem/line/notation.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln {
namespace {

std::string print_line(const ConvolutionLine& line, bool pooling) {
  std::string text = cat("mb", line.batch, pooling ? "ic" : "_ic", line.in_channels);
  if (!pooling) text = cat("g", line.groups, text);
  const auto add = [&](Kind kind, const Spatial& sizes, std::int64_t offset = 0) {
    for (int i = 3 - line.rank; i < 3; ++i) {
      text += cat(kind_letters[kind], axis_letters[i], sizes[i] - offset);
    }
  };
  if (pooling) text += '_';
  add(in, line.in);
  if (!pooling) text += cat("_oc", line.out_channels);
  add(out, line.out);
  text += '_';
  add(filter, line.filter);
  text += '_';
  add(stride, line.stride);
  text += '_';
  add(pad, line.pad_before);
  text += '_';
  add(dilation, line.dilation, 1);
  if (!line.name.empty()) text += cat("_n\"", line.name, "\"");
  return text;
}

}  // namespace

std::string print_convolution_line(const ConvolutionLine& line) { return print_line(line, false); }
std::string print_pooling_line(const ConvolutionLine& line) { return print_line(line, true); }

}  // namespace kiln
