// Problem lines in the notation of oneDNN's benchdnn, so that its shape files can be used
// unchanged:
//   g1mb128_ic96ih64iw64_oc128oh56ow56_kh9kw9_sh1sw1_ph0pw0_dh0dw0_n"name"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln {

// The content of a line. Layout and type are not in it; they are flags.
struct ConvolutionLine {
  int rank = 2;  // spatial dimensions: 1 with only `w` entries, 3 with `d` entries
  std::int64_t batch = 2, groups = 1, in_channels = 0, out_channels = 0;
  Spatial in{1, 1, 1}, filter{1, 1, 1}, out{1, 1, 1};  // depth, height, width
  Spatial pad_before{}, pad_after{};                   // `out` implies pad_after
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};  // 1 is dense (benchdnn's own 0)
  std::string name;

  friend bool operator==(const ConvolutionLine&, const ConvolutionLine&) = default;
};

// Any line that benchdnn takes has the same meaning here: a dimension whose input and filter sizes
// are given gets defaults for all other values. In any other dimension (benchdnn takes it only if
// it has no entry) missing values are those of the dimension above.
//
// Throws BAD_PARAM naming the column (from 1), the text there and what was expected, or the sizes
// that do not fit each other.
ConvolutionLine parse_convolution_line(std::string_view line);

// The line in full, every entry of its rank written; parse(print(x)) == x.
std::string print_convolution_line(const ConvolutionLine& line);

// The same for pooling, "mb16ic64_ih112oh56_kh3_sh2_ph0": the filter is the window, and groups and
// output channels are not given (1, and those of the input).
ConvolutionLine parse_pooling_line(std::string_view line);
std::string print_pooling_line(const ConvolutionLine& line);

// The name in a line's n"...": the text after the n, without its quotes.
std::string unquoted(std::string_view name);

// The line up to a comment: a '#' that begins it or comes after a blank, outside double quotes.
std::string_view without_comment(std::string_view line);

// The problems of a text of many lines, with their line numbers (from 1). Blank lines, `#` comments
// and lines of one word that begins with `--` (benchdnn's options) are skipped. Comments behind a
// problem are removed, unless it is a JSON object.
struct NumberedLine {
  int number;
  std::string text;
};
std::vector<NumberedLine> problem_lines(std::string_view text);

// The descriptors of the dense tensors that a line describes in one layout. Throws BAD_PARAM if a
// tensor is too large to be addressed.
struct ConvolutionOperands {
  ConvolutionSpec spec;
  Tensor x, w, y;
};
ConvolutionOperands describe_convolution(const ConvolutionLine& line, DataType type,
                                         kilnTensorFormat_t layout, kilnConvolutionMode_t mode);

// The problem that these tensors make.
ConvolutionProblem make_convolution(const ConvolutionLine& line, DataType type,
                                    kilnTensorFormat_t layout, kilnConvolutionMode_t mode);

}  // namespace kiln
