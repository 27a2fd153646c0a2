// Problem lines in oneDNN benchdnn's notation, so that the field's shape files serve unchanged:
//   g1mb128_ic96ih64iw64_oc128oh56ow56_kh9kw9_sh1sw1_ph0pw0_dh0dw0_n"name"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/convolution.hpp"

namespace kiln {

// What one line says, without layout and type (those are flags beside it).
struct ConvolutionLine {
  int rank = 2;  // spatial dimensions: 1 with only `w` entries, 3 with `d` entries
  std::int64_t batch = 2, groups = 1, in_channels = 0, out_channels = 0;
  Spatial in{1, 1, 1}, filter{1, 1, 1}, out{1, 1, 1};  // depth, height, width
  Spatial pad_before{}, pad_after{};                   // the one after is what `out` implies
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};  // 1 is dense (benchdnn's own 0)
  std::string name;

  friend bool operator==(const ConvolutionLine&, const ConvolutionLine&) = default;
};

// Any line that benchdnn takes means here what it means there: a dimension that gives its input and
// its filter size stands on its own, with defaults for what it leaves out. In any other dimension
// (benchdnn takes it only if nothing of it is given) each value left out is the higher dimension's.
//
// Throws BAD_PARAM whose sentence names the column (from 1), what stands there and what was
// expected, or the sizes that do not fit each other.
ConvolutionLine parse_convolution_line(std::string_view line);

// The line in full, every entry of its rank written; parse(print(x)) == x.
std::string print_convolution_line(const ConvolutionLine& line);

// The same for pooling, "mb16ic64_ih112oh56_kh3_sh2_ph0": the filter is the window, and groups and
// output channels are not given (1, and those of the input).
ConvolutionLine parse_pooling_line(std::string_view line);
std::string print_pooling_line(const ConvolutionLine& line);

// What a line's n"..." names: the text after the n, without the quotes around it.
std::string unquoted(std::string_view name);

// The line up to a comment: a '#' that begins it or comes after a blank, outside double quotes.
std::string_view without_comment(std::string_view line);

// The lines of a batch text that are problems, with their line numbers (from 1): blank lines,
// `#` comments and lines that are one word beginning with `--` (benchdnn's options) are skipped,
// and comments behind a problem (not a JSON object) left out.
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

// The problem that those make.
ConvolutionProblem make_convolution(const ConvolutionLine& line, DataType type,
                                    kilnTensorFormat_t layout, kilnConvolutionMode_t mode);

}  // namespace kiln
