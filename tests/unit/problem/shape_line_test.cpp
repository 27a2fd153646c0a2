// Problem lines of operations on shapes, and their flags for types, layouts and strides.
#include "problem/line/shape_line.hpp"

#include <boost/test/unit_test.hpp>

#include "problem/line/problem_line.hpp"
#include "problem_support.hpp"

using namespace kiln;
using test::fault_of;
using test::tensor;

namespace {

using Shapes = std::vector<std::vector<std::int64_t>>;

std::string fault_of_line(const char* line, std::size_t most = 3) {
  return fault_of([&] { parse_shape_line(line, most); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(shape_lines)

BOOST_AUTO_TEST_CASE(one_shape_or_several) {
  BOOST_TEST((parse_shape_line("16x64x112x112", 2).shapes == Shapes{{16, 64, 112, 112}}));
  BOOST_TEST(
      (parse_shape_line("2x3x4:1x3x1:2x3x4", 3).shapes == Shapes{{2, 3, 4}, {1, 3, 1}, {2, 3, 4}}));
  BOOST_TEST((parse_shape_line("0x1x2x3x4", 1).shapes == Shapes{{0, 1, 2, 3, 4}}));
  BOOST_TEST((parse_shape_line("7", 1).shapes == Shapes{{7}}));
  BOOST_TEST((parse_shape_line("1x2x3x4x5x6x7x8:8x7x6x5x4x3x2x1", 2).shapes ==
              Shapes{{1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1}}));
  BOOST_TEST((parse_shape_line("9223372036854775807x1x1", 1).shapes[0][0] == INT64_MAX));
}

BOOST_AUTO_TEST_CASE(lines_may_have_a_name) {
  const auto name = [](const char* line) {
    const ShapeLine parsed = parse_shape_line(line, 3);
    BOOST_TEST((parsed.shapes[0] == std::vector<std::int64_t>{2, 3}));
    return parsed.name;
  };
  BOOST_TEST(name("2x3") == "");
  BOOST_TEST(name("2x3_n\"bias of conv1\"") == "bias of conv1");
  BOOST_TEST(name("2x3:1x3n\"b:2x3\"") == "b:2x3");
  BOOST_TEST(name("2x3_nplain") == "plain");
  BOOST_TEST(name("2x3_n") == "");
  BOOST_TEST(fault_of_line("2x3_m").starts_with("column 4: there is \"_m\"; expected 'x'"));
}

BOOST_AUTO_TEST_CASE(comments_end_a_line) {
  BOOST_TEST(without_comment("2x3 # three") == "2x3");
  BOOST_TEST(without_comment("2x3\t#") == "2x3");
  BOOST_TEST(without_comment("# all") == "");
  BOOST_TEST(without_comment("2x3_n\"a # b\" # c") == "2x3_n\"a # b\"");
  BOOST_TEST(without_comment("2x3_na#b") == "2x3_na#b");
  const auto lines = problem_lines("2x3 # a\n  # b\n{\"problem\":\"2x3 # c\"}\n --dt f16 4 # d\n");
  BOOST_TEST(lines.size() == 3);
  BOOST_TEST(lines[0].text == "2x3");
  BOOST_TEST(lines[1].text == "{\"problem\":\"2x3 # c\"}");
  BOOST_TEST(lines[2].text == "--dt f16 4");
}

BOOST_AUTO_TEST_CASE(typos_are_named_with_their_column) {
  BOOST_TEST(fault_of_line("") ==
             "column 1: the line ends; expected a size, such as in 16x64x28x28");
  BOOST_TEST(fault_of_line("16 ").starts_with("column 3: there is \" \"; expected 'x'"));
  BOOST_TEST(fault_of_line("16x").starts_with("column 4: the line ends; expected a size"));
  BOOST_TEST(fault_of_line("16xx4").starts_with("column 4: there is \"x4\"; expected a size"));
  BOOST_TEST(fault_of_line("1x2x3 ").starts_with("column 6: there is \" \"; expected 'x'"));
  BOOST_TEST(fault_of_line("1x-2x3").starts_with("column 3: there is \"-2x3\"; expected a size"));
  BOOST_TEST(fault_of_line("1x2x3.5").starts_with("column 6: there is \".5\""));
  BOOST_TEST(fault_of_line("1x2x3:").starts_with("column 7: the line ends; expected a size"));
  BOOST_TEST(fault_of_line("1x2x9223372036854775808").starts_with("column 5: there is \"9223"));
  BOOST_TEST(fault_of_line("1x2x3x4x5x6x7x8x9") ==
             "column 16: there is \"x9\"; expected at most 8 sizes");
  BOOST_TEST(fault_of_line("1x2x3:1x2x3:1x2x3", 2) ==
             "column 12: there is \":1x2x3\"; expected at most 2 shapes");
  BOOST_TEST(fault_of_line("1x2x3:1x2x3x4") ==
             "column 14: the shape has 4 sizes; expected 3, as the first shape has");
}

BOOST_AUTO_TEST_CASE(shapes_that_are_all_alike_are_printed_once) {
  const auto operand = [](int rank, const TensorDims& dims) {
    return make_operand("", tensor(rank, dims));
  };
  BOOST_TEST(print_shapes({operand(3, {2, 3, 4}), operand(3, {2, 3, 4})}, 1) == "2x3x4");
  BOOST_TEST(print_shapes({operand(4, {1, 3, 1, 1}), operand(4, {2, 3, 4, 5})}, 2) ==
             "1x3x1x1:2x3x4x5");
  BOOST_TEST(print_shapes({operand(5, {2, 3, 4, 5, 6})}, 3) == "2x3x4x5x6");
}

BOOST_AUTO_TEST_CASE(flags_only_of_what_is_not_usual) {
  const auto operand = [](const char* name, const Tensor& t) { return make_operand(name, t); };
  const Tensor plain = tensor(4, {2, 3, 4, 5}), nhwc = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NHWC),
               half = tensor(4, {2, 3, 4, 5}, KILN_TENSOR_NCHW, KILN_DATA_HALF);
  Tensor gaps = plain;
  gaps.strides = {100, 30, 7, 1};
  const auto flags = [&](const Tensor& x, const Tensor& y) {
    return print_operand_flags({operand("x", x), operand("y", y)}, 2);
  };
  BOOST_TEST(flags(plain, plain) == "");
  BOOST_TEST(flags(half, half) == "--dt f16 ");
  BOOST_TEST(flags(plain, half) == "--dt f32:f16 ");
  BOOST_TEST(flags(nhwc, nhwc) == "--layout nhwc ");
  BOOST_TEST(flags(nhwc, plain) == "--layout nhwc:nchw ");
  BOOST_TEST(flags(plain, nhwc) == "--layout nchw:nhwc ");
  BOOST_TEST(flags(gaps, plain) == "--x-strides 100:30:7:1 ");
  BOOST_TEST(flags(half, gaps) == "--dt f16:f32 --y-strides 100:30:7:1 ");
  // A tensor that is dense in both layouts gets the layout of the others.
  BOOST_TEST(flags(tensor(4, {2, 3, 1, 1}), nhwc) == "--layout nhwc ");
}

BOOST_AUTO_TEST_SUITE_END()
