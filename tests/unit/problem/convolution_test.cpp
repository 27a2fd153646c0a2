// The canonical convolution problem and its line.
#include "problem/convolution.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>

#include "problem/line/problem_line.hpp"
#include "problem_support.hpp"

using namespace kiln;
using test::tensor;

namespace {

ConvolutionSpec spec(int spatial) {
  ConvolutionSpec out;
  out.spatial = spatial;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution_problems)

BOOST_AUTO_TEST_CASE(output_size_rounds_down_and_says_when_nothing_fits) {
  BOOST_TEST(output_size(224, 3, 3, 7, 2, 1) == 112);
  BOOST_TEST(output_size(5, 0, 0, 3, 1, 2) == 1);
  BOOST_TEST(output_size(5, 0, 0, 3, 100, 1) == 1);
  BOOST_TEST(output_size(5, -1, -1, 3, 1, 1) == 1);
  BOOST_TEST(output_size(5, 0, 0, 6, 2, 1) < 1);
  BOOST_TEST(output_size(5, -3, -3, 1, 1, 1) < 1);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  BOOST_TEST(output_size(most, 0, 0, most, 1, 2147483647) < 1);
}

BOOST_AUTO_TEST_CASE(fewer_dimensions_become_three) {
  ConvolutionSpec one = spec(1);
  one.pad_before[0] = 1;
  one.pad_after[0] = 2;
  one.stride[0] = 3;
  one.dilation[0] = 2;
  const auto problem =
      make_convolution(one, tensor(3, {2, 4, 20}), tensor(3, {8, 4, 3}), tensor(3, {2, 8, 7}));
  BOOST_TEST(problem.rank == 1);
  BOOST_TEST(problem.in == (Spatial{1, 1, 20}));
  BOOST_TEST(problem.filter == (Spatial{1, 1, 3}));
  BOOST_TEST(problem.out == (Spatial{1, 1, 7}));
  BOOST_TEST(problem.pad == (Spatial{0, 0, 1}));
  BOOST_TEST(problem.stride == (Spatial{1, 1, 3}));
  BOOST_TEST(problem.dilation == (Spatial{1, 1, 2}));
  BOOST_TEST(problem.x_strides == (std::array<std::int64_t, 5>{80, 20, 0, 0, 1}));
  BOOST_TEST(problem.flops() == 2.0 * 2 * 8 * 7 * 4 * 3);
}

BOOST_AUTO_TEST_CASE(what_makes_no_difference_is_equal) {
  Tensor w = tensor(4, {8, 4, 1, 1}), x = tensor(4, {1, 4, 5, 6});
  const Tensor y = tensor(4, {1, 8, 5, 6});
  const auto problem = make_convolution(spec(2), x, w, y);
  w.strides[2] = 12345;  // has no effect, because the filter is one tap high
  BOOST_TEST((make_convolution(spec(2), x, w, y) == problem));
  x.strides[1] = 31;
  BOOST_TEST(!(make_convolution(spec(2), x, w, y) == problem));
  ConvolutionSpec other = spec(2);
  other.stride = {2, 1, 1};
  other.pad_after = {-1, 0, 0};
  const auto shorter = make_convolution(other, tensor(4, {1, 4, 5, 6}), w, tensor(4, {1, 8, 2, 6}));
  other.pad_after = {-2, 0, 0};  // gives the same number of output rows
  BOOST_TEST(
      (make_convolution(other, tensor(4, {1, 4, 5, 6}), w, tensor(4, {1, 8, 2, 6})) == shorter));
}

BOOST_AUTO_TEST_CASE(lines_reproduce_dense_problems) {
  ConvolutionSpec conv = spec(2);
  conv.pad_before = {2, 1, 0};
  conv.pad_after = {1, 0, 0};
  conv.stride = {2, 1, 1};
  conv.dilation = {1, 2, 1};
  conv.groups = 2;
  for (const auto format : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
    for (const auto mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
      for (const auto type : {KILN_DATA_FLOAT, KILN_DATA_BFLOAT16}) {
        conv.mode = mode;
        const auto problem = make_convolution(conv, tensor(4, {3, 4, 9, 8}, format, type),
                                              tensor(4, {6, 2, 3, 2}, format, type),
                                              tensor(4, {3, 6, 5, 7}, format, type));
        const std::string line = to_line(problem);
        BOOST_TEST_INFO(line);
        BOOST_TEST((line.find("--layout nhwc ") != line.npos) == (format == KILN_TENSOR_NHWC));
        BOOST_TEST((line.find("--mode conv ") != line.npos) == (mode == KILN_CONVOLUTION));
        BOOST_TEST((line.find("--dt bf16 ") == 0) == (type == KILN_DATA_BFLOAT16));
        BOOST_TEST(line.find("-strides") == line.npos);
        const std::string notation = line.substr(line.rfind(' ') + 1);
        BOOST_TEST(
            (make_convolution(parse_convolution_line(notation), type, format, mode) == problem));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(lines_name_strides_that_are_not_dense) {
  Tensor x = tensor(4, {3, 4, 9, 8}, KILN_TENSOR_NHWC);
  x.strides[0] = 1000;
  const auto problem = make_convolution(spec(2), x, tensor(4, {6, 4, 1, 1}, KILN_TENSOR_NHWC),
                                        tensor(4, {3, 6, 9, 8}, KILN_TENSOR_NHWC));
  BOOST_TEST(to_line(problem).find("--layout nhwc --x-strides 1000:1:32:4 ") == 0u,
             to_line(problem));
  Tensor w = tensor(3, {6, 4, 2});
  w.strides[0] = 0;
  Tensor y = tensor(3, {2, 6, 7});
  y.strides = {100, 14, 2};
  const auto line = to_line(make_convolution(spec(1), tensor(3, {2, 4, 8}), w, y));
  BOOST_TEST(line.find("--w-strides 0:2:1 --y-strides 100:14:2 ") == 0u, line);
}

BOOST_AUTO_TEST_SUITE_END()
