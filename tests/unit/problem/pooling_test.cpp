// The canonical pooling problem and its line.
#include "problem/pooling.hpp"

#include <boost/test/unit_test.hpp>

#include "problem/line/problem_line.hpp"
#include "problem/tensor/checks.hpp"
#include "problem_support.hpp"

using namespace kiln;
using test::fault_of;
using test::names_of;
using test::tensor;

namespace {

// A window of 3x2 with stride 2x1, two rows and a column of padding.
PoolingSpec spec(kilnPoolingMode_t mode = KILN_POOLING_MAX) {
  PoolingSpec out;
  out.spatial = 2;
  out.mode = mode;
  out.window = {3, 2, 1};
  out.pad_before = {1, 0};
  out.pad_after = {2, 1};
  out.stride = {2, 1, 1};
  return out;
}

PoolingSpec line_spec(std::int64_t window, std::int64_t before, std::int64_t after,
                      std::int64_t stride, std::int64_t dilation) {
  PoolingSpec out;
  out.spatial = 1;
  out.window[0] = window;
  out.pad_before[0] = before;
  out.pad_after[0] = after;
  out.stride[0] = stride;
  out.dilation[0] = dilation;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pooling_problems)

BOOST_AUTO_TEST_CASE(output_sizes_round_down) {
  const auto out = [](std::int64_t in, const PoolingSpec& pooling) {
    return pooling_output_dims(pooling, tensor(3, {2, 5, in}))[2];
  };
  BOOST_TEST(out(112, line_spec(3, 0, 0, 2, 1)) == 55);
  BOOST_TEST(out(112, line_spec(3, 0, 1, 2, 1)) == 56);
  BOOST_TEST(out(7, line_spec(7, 0, 0, 1, 1)) == 1);  // global pooling
  BOOST_TEST(out(7, line_spec(3, 2, 2, 1, 1)) == 9);  // more outputs than inputs
  BOOST_TEST(out(9, line_spec(3, 0, 0, 1, 4)) == 1);  // the window's extent is 9
  BOOST_TEST(out(9, line_spec(3, 8, 8, 1, 4)) == 17);
  BOOST_TEST(out(5, line_spec(2, 0, 0, 100, 1)) == 1);  // the stride skips the rest
  BOOST_TEST((pooling_output_dims(spec(), tensor(4, {0, 3, 9, 8})) == TensorDims{0, 3, 5, 8}));
}

// The sizes of PyTorch's pooling_output_shape(): rounded up, unless the last window would begin
// behind the input and the padding before it.
BOOST_AUTO_TEST_CASE(output_sizes_of_ceil_mode) {
  const auto out = [](std::int64_t in, PoolingSpec pooling) {
    pooling.ceil = true;
    return pooling_output_dims(pooling, tensor(3, {2, 5, in}))[2];
  };
  BOOST_TEST(out(112, line_spec(3, 0, 0, 2, 1)) == 56);  // ResNet's pool
  BOOST_TEST(out(4, line_spec(3, 1, 1, 2, 1)) == 3);
  BOOST_TEST(out(5, line_spec(1, 0, 0, 3, 1)) == 2);   // a third window would begin at 6
  BOOST_TEST(out(5, line_spec(2, 1, 1, 3, 1)) == 2);   // a third window would begin at 5
  BOOST_TEST(out(4, line_spec(2, 1, 1, 5, 1)) == 1);   // a second one, in the padding behind x
  BOOST_TEST(out(2, line_spec(3, 0, 0, 2, 1)) == 1);   // wider than x, and rounded up to fit
  BOOST_TEST(out(12, line_spec(2, 0, 0, 2, 1)) == 6);  // exact without rounding
}

// The overhang, by which the last windows extend beyond the counted padding, is a part of the
// problem only for averages that count padding.
BOOST_AUTO_TEST_CASE(overhangs) {
  const Tensor x = tensor(4, {2, 3, 4, 7}), y = tensor(4, {2, 3, 3, 4});
  PoolingSpec average = spec(KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING);
  average.window = {3, 3, 1};
  average.pad_before = average.pad_after = {1, 0};
  average.stride = {2, 2, 1};
  average.ceil = true;  // (4 + 2 - 3) / 2 = 1.5; (7 - 3) / 2 = 2
  const Tensor narrow = tensor(4, {2, 3, 3, 3});
  const PoolingProblem problem = make_pooling_forward(average, x, narrow);
  BOOST_TEST((problem.overhang == Spatial{0, 1, 0}));
  BOOST_TEST(to_line(problem) ==
             "--mode avg_include --overhang 1:0 mb2ic3_ih4iw7oh3ow3_kh3kw3_sh2sw2_ph1pw0_dh0dw0");
  average.mode = KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  BOOST_TEST((make_pooling_forward(average, x, narrow).overhang == Spatial{}));
  average.mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  average.ceil = false;
  average.pad_after[0] = 2;  // the padding is counted, so the problem is another one
  BOOST_TEST((make_pooling_forward(average, x, narrow).overhang == Spatial{}));
  BOOST_TEST(fault_of([&] { make_pooling_forward(average, x, y); }) ==
             "yDesc has sizes 2x3x3x4; the pooling of xDesc gives 2x3x3x3");
}

BOOST_AUTO_TEST_CASE(padding_of_windows_and_elements_unread) {
  const auto out = [](std::int64_t in, const PoolingSpec& pooling) {
    return pooling_output_dims(pooling, tensor(3, {2, 5, in}))[2];
  };
  BOOST_TEST(out(5, line_spec(2, 4, 3, 1, 1)) == 11);   // 5 + 7 - 2 + 1
  BOOST_TEST(out(10, line_spec(2, 0, -4, 2, 1)) == 3);  // four elements are not read
  BOOST_TEST(out(10, line_spec(2, -3, 0, 2, 1)) == 3);
  PoolingSpec none = line_spec(2, 0, -9, 1, 1);
  BOOST_TEST(fault_of([&] { out(10, none); }).starts_with("window[0] is 2 with dilation 1"));
  const PoolingProblem problem =
      make_pooling_forward(line_spec(2, 0, -4, 2, 1), tensor(3, {2, 5, 10}), tensor(3, {2, 5, 3}));
  BOOST_TEST(to_line(problem) == "mb2ic5_iw10ow3_kw2_sw2_pw0_dw0");
}

BOOST_AUTO_TEST_CASE(fewer_dimensions_become_three) {
  const PoolingProblem problem =
      make_pooling_forward(line_spec(3, 1, 2, 2, 2), tensor(3, {2, 5, 20}), tensor(3, {2, 5, 10}));
  BOOST_TEST(problem.rank == 1);
  BOOST_TEST(problem.batch == 2);
  BOOST_TEST(problem.channels == 5);
  BOOST_TEST((problem.in == Spatial{1, 1, 20}));
  BOOST_TEST((problem.out == Spatial{1, 1, 10}));
  BOOST_TEST((problem.window == Spatial{1, 1, 3}));
  BOOST_TEST((problem.pad == Spatial{0, 0, 1}));
  BOOST_TEST((problem.stride == Spatial{1, 1, 2}));
  BOOST_TEST((problem.dilation == Spatial{1, 1, 2}));
  BOOST_TEST((problem.x_strides == Dims{100, 20, 0, 0, 1}));
  BOOST_TEST((problem.dx_strides == Dims{}));
}

BOOST_AUTO_TEST_CASE(what_makes_no_difference_is_equal) {
  const Tensor x = tensor(4, {2, 3, 9, 8}), y = tensor(4, {2, 3, 5, 8});
  PoolingSpec average = spec(KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING);
  const PoolingProblem problem = make_pooling_forward(average, x, y);
  average.nan = KILN_NOT_PROPAGATE_NAN;  // has no effect, because averages always propagate NaN
  BOOST_TEST((make_pooling_forward(average, x, y) == problem));
  BOOST_TEST(
      (make_pooling_backward(average, y, nullptr, x) == make_pooling_backward(average, y, &x, x)));
  PoolingSpec ignoring = spec();
  ignoring.nan = KILN_NOT_PROPAGATE_NAN;
  BOOST_TEST(!(make_pooling_forward(ignoring, x, y) == make_pooling_forward(spec(), x, y)));
  PoolingSpec wider = spec();
  wider.pad_after[0] = 1;  // gives the same number of output rows
  BOOST_TEST((make_pooling_forward(wider, x, y) == make_pooling_forward(spec(), x, y)));
}

BOOST_AUTO_TEST_CASE(operands_in_the_order_of_execution) {
  const Tensor x = tensor(4, {2, 3, 9, 8}), y = tensor(4, {2, 3, 5, 8});
  const auto average = spec(KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  BOOST_TEST(names_of(operands_of(make_pooling_forward(spec(), x, y))) == "x y!");
  BOOST_TEST(names_of(operands_of(make_pooling_backward(spec(), y, &x, x))) == "dy x dx!");
  BOOST_TEST(names_of(operands_of(make_pooling_backward(average, y, nullptr, x))) == "dy dx!");
}

BOOST_AUTO_TEST_CASE(lines_say_what_is_not_usual) {
  const Tensor x = tensor(4, {2, 3, 9, 8}), y = tensor(4, {2, 3, 5, 8});
  const std::string sizes = "mb2ic3_ih9iw8oh5ow8_kh3kw2_sh2sw1_ph1pw0_dh0dw0";
  BOOST_TEST(to_line(make_pooling_forward(spec(), x, y)) == sizes);
  PoolingSpec ignoring = spec();
  ignoring.nan = KILN_NOT_PROPAGATE_NAN;
  BOOST_TEST(to_line(make_pooling_forward(ignoring, x, y)) == "--nan ignore " + sizes);
  const Tensor nhwc = tensor(4, {2, 3, 9, 8}, KILN_TENSOR_NHWC);
  Tensor gaps = tensor(4, {2, 3, 5, 8}, KILN_TENSOR_NHWC);
  gaps.strides[0] = 1000;
  BOOST_TEST(to_line(make_pooling_backward(spec(KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING), gaps,
                                           nullptr, nhwc)) ==
             "--dir bwd --mode avg_exclude --layout nhwc --dy-strides 1000:1:24:3 " + sizes);
}

BOOST_AUTO_TEST_CASE(lines_of_the_field_are_read) {
  const ConvolutionLine line = parse_pooling_line("mb16ic64_ih112oh56_kh3_sh2_ph0_n\"pool1\"");
  BOOST_TEST(line.batch == 16);
  BOOST_TEST(line.in_channels == 64);
  BOOST_TEST(line.out_channels == 64);
  BOOST_TEST((line.in == Spatial{1, 112, 112}));
  BOOST_TEST((line.out == Spatial{1, 56, 56}));
  BOOST_TEST((line.pad_after == Spatial{0, 1, 1}));
  BOOST_TEST(line.name == "pool1");
  BOOST_TEST((parse_pooling_line(print_pooling_line(line)) == line));
  BOOST_TEST(fault_of([] { parse_pooling_line("oc4ic4ih8kh2"); }).starts_with("oc is given"));
  BOOST_TEST(fault_of([] { parse_pooling_line("g1ic4ih8kh2"); }).starts_with("g is given"));
  BOOST_TEST(fault_of([] { parse_pooling_line("mb4ih8kh2"); }) ==
             "no input channels; expected an entry ic");
}

BOOST_AUTO_TEST_CASE(faults_name_the_field) {
  const Tensor x = tensor(4, {2, 3, 9, 8}), y = tensor(4, {2, 3, 5, 8});
  const auto with = [&](const auto& change) {
    PoolingSpec changed = spec();
    change(changed);
    return fault_of([&] { make_pooling_forward(changed, x, y); });
  };
  BOOST_TEST(with([](auto&) {}) == "no fault");
  BOOST_TEST(with([](auto& s) { s.window[0] = 0; }) == "window[0] is 0; expected 1 to 2147483647");
  BOOST_TEST(with([](auto& s) { s.stride[1] = 0; }) == "stride[1] is 0; expected 1 to 2147483647");
  BOOST_TEST(with([](auto& s) { s.pad_before[1] = most_of_field + 1; }) ==
             "padBefore[1] is 2147483648; expected -2147483647 to 2147483647");
  BOOST_TEST(with([](auto& s) { s.pad_after[0] = -most_of_field - 1; }) ==
             "padAfter[0] is -2147483648; expected -2147483647 to 2147483647");
  BOOST_TEST(with([](auto& s) { s.window[0] = 13; }) ==
             "window[0] is 13 with dilation 1; expected one that fits into xDesc's dims[2] 9 with "
             "padding 1 and 2");
  BOOST_TEST(with([](auto& s) { s.stride[0] = 3; }) ==
             "yDesc has sizes 2x3x5x8; the pooling of xDesc gives 2x3x4x8");
  BOOST_TEST(
      with([](auto& s) { s.spatial = 1; }).starts_with("xDesc has 4 dimensions; expected 3"));
  BOOST_TEST(with([](auto& s) { s.spatial = 0; }).starts_with("poolingDesc was created"));
  BOOST_TEST(fault_of([&] {
               make_pooling_backward(spec(), y, nullptr, x);
             }).starts_with("xDesc is null; expected the pooled tensor"));
  BOOST_TEST(fault_of([&] { make_pooling_backward(spec(), x, &x, x); }) ==
             "dyDesc has sizes 2x3x9x8; the pooling of dxDesc gives 2x3x5x8");
  BOOST_TEST(fault_of([&] { make_pooling_backward(spec(), y, &y, x); }) ==
             "xDesc has sizes 2x3x5x8; expected 2x3x9x8, as dxDesc has");
}

BOOST_AUTO_TEST_SUITE_END()
