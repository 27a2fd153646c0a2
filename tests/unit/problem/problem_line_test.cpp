#include "problem/line/problem_line.hpp"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "support/problem_lists.hpp"

using kiln::ConvolutionLine;
using kiln::parse_convolution_line;
using kiln::print_convolution_line;
using kiln::Spatial;

namespace {

// The message with which a line is refused; "" if it is not.
std::string refusal(std::string_view line) {
  try {
    parse_convolution_line(line);
  } catch (const kiln::Error& error) {
    BOOST_TEST(error.status() == KILN_STATUS_BAD_PARAM);
    return error.what();
  }
  return "";
}

// The canonical form of a line.
std::string full(std::string_view line) {
  return print_convolution_line(parse_convolution_line(line));
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(problem_line)

BOOST_AUTO_TEST_CASE(reads_every_entry) {
  const ConvolutionLine line = parse_convolution_line(
      "g2mb5_ic6id7ih8iw9_oc10od4oh3ow5_kd2kh3kw4_sd2sh3sw1_pd1ph2pw0_dd1dh0dw2_n\"all\"");
  BOOST_TEST(line.rank == 3);
  BOOST_TEST(line.groups == 2);
  BOOST_TEST(line.batch == 5);
  BOOST_TEST(line.in_channels == 6);
  BOOST_TEST(line.out_channels == 10);
  BOOST_TEST((line.in == Spatial{7, 8, 9}));
  BOOST_TEST((line.out == Spatial{4, 3, 5}));
  BOOST_TEST((line.filter == Spatial{2, 3, 4}));
  BOOST_TEST((line.stride == Spatial{2, 3, 1}));
  BOOST_TEST((line.pad_before == Spatial{1, 2, 0}));
  BOOST_TEST((line.dilation == Spatial{2, 1, 3}));  // benchdnn counts from 0
  // (o - 1) * s + (k - 1) * (d + 1) + 1 - i - pad before
  BOOST_TEST((line.pad_after == Spatial{1, -1, 5}));
  BOOST_TEST(line.name == "all");
}

BOOST_AUTO_TEST_CASE(prints_the_notation_of_the_field) {
  const std::string text = "g1mb128_ic96ih64iw64_oc128oh56ow56_kh9kw9_sh1sw1_ph0pw0_dh0dw0_n\"L2\"";
  BOOST_TEST(full(text) == text);
}

BOOST_AUTO_TEST_CASE(defaults) {
  BOOST_TEST(full("ic3ih8oc4kh3") == "g1mb2_ic3ih8iw8_oc4oh6ow6_kh3kw3_sh1sw1_ph0pw0_dh0dw0");
}

BOOST_AUTO_TEST_CASE(any_order_and_underscores_anywhere) {
  const std::string expected = full("g1mb2ic3ih8iw9oc4kh3kw2sh2sw1");
  BOOST_TEST(full("_sw1__kw2kh3_oc4sh2_iw9ih8_ic3_mb2g1_") == expected);
  BOOST_TEST(full("  \tg1mb2ic3ih8iw9oc4kh3kw2sh2sw1 \r\n") == expected);
}

BOOST_AUTO_TEST_CASE(rank_follows_from_the_entries) {
  BOOST_TEST(full("ic3iw8oc4kw3") == "g1mb2_ic3iw8_oc4ow6_kw3_sw1_pw0_dw0");
  BOOST_TEST(parse_convolution_line("ic3ih8oc4kh3").rank == 2);
  BOOST_TEST(full("ic3id8oc4kd3") ==
             "g1mb2_ic3id8ih8iw8_oc4od6oh6ow6_kd3kh3kw3_sd1sh1sw1_pd0ph0pw0_dd0dh0dw0");
  // Entries that equal the default do not add a dimension.
  BOOST_TEST(full("ic3iw8oc4kw3sh1ph0dh0") == full("ic3iw8oc4kw3"));
  BOOST_TEST(parse_convolution_line("ic3ih8oc4kh3sd1pd0dd0").rank == 2);
}

BOOST_AUTO_TEST_CASE(values_come_from_the_dimension_above) {
  BOOST_TEST(full("ic3ih9oc4kh3sh2ph1dh1") ==
             "g1mb2_ic3ih9iw9_oc4oh4ow4_kh3kw3_sh2sw2_ph1pw1_dh1dw1");
  BOOST_TEST(full("ic3ih9iw20oc4kh3sh2ph1") ==
             "g1mb2_ic3ih9iw20_oc4oh5ow10_kh3kw3_sh2sw2_ph1pw1_dh0dw0");
  BOOST_TEST(full("ic3id9ih5oc4kd3kh2sd2") ==
             "g1mb2_ic3id9ih5iw5_oc4od4oh4ow4_kd3kh2kw2_sd2sh1sw1_pd0ph0pw0_dd0dh0dw0");
  BOOST_TEST(full("ic3ih8oc4oh8kh3") == full("ic3ih8iw8oc4oh8ow8kh3kw3ph1pw1"));
  BOOST_TEST(full("ic3ih8iw8oc4oh8kh3") == full("ic3ih8oc4oh8kh3"));
}

// benchdnn and its shape files have the same rule.
BOOST_AUTO_TEST_CASE(a_dimension_with_input_and_filter_stands_on_its_own) {
  BOOST_TEST(full("ic16oc16_ih15oh7kh6sh2ph3_iw10ow10kw3") ==
             "g1mb2_ic16ih15iw10_oc16oh7ow10_kh6kw3_sh2sw1_ph3pw1_dh0dw0");
  BOOST_TEST(full("ic1oc1_ih1kh1ph1_iw1kw1") ==
             "g1mb2_ic1ih1iw1_oc1oh3ow1_kh1kw1_sh1sw1_ph1pw0_dh0dw0");
}

BOOST_AUTO_TEST_CASE(a_missing_output_is_computed_with_the_padding_on_both_sides) {
  const ConvolutionLine line = parse_convolution_line("ic3ih9iw10oc4kh3kw4sh2sw2ph1pw2");
  BOOST_TEST((line.out == Spatial{1, 5, 6}));  // (10 + 4 - 4) / 2 + 1
  BOOST_TEST((line.pad_after == Spatial{0, 1, 2}));
  // (10 + 2 - 3) / 2 + 1 = 5: one element of the padding behind the input is not read.
  const ConvolutionLine rounded = parse_convolution_line("ic3ih10oc4kh3sh2ph1");
  BOOST_TEST(rounded.out[1] == 5);
  BOOST_TEST(rounded.pad_after[1] == 0);
}

BOOST_AUTO_TEST_CASE(a_missing_padding_follows_from_the_output) {
  const ConvolutionLine even = parse_convolution_line("ic3ih8oc4oh8kh3");
  BOOST_TEST(even.pad_before[1] == 1);
  BOOST_TEST(even.pad_after[1] == 1);
  // The smaller half of an odd total is before the input.
  const ConvolutionLine odd = parse_convolution_line("ic3ih8oc4oh8kh4");
  BOOST_TEST(odd.pad_before[1] == 1);
  BOOST_TEST(odd.pad_after[1] == 2);
  // (5 - 1) * 2 - 8 + ((3 - 1) * 2 + 1) = 5
  const ConvolutionLine strided = parse_convolution_line("ic3ih8oc4oh5kh3sh2dh1");
  BOOST_TEST(strided.pad_before[1] == 2);
  BOOST_TEST(strided.pad_after[1] == 3);
  // The output is smaller than the input allows, so some rows are not read. C++ rounds -3 / 2 to
  // -1.
  const ConvolutionLine cropped = parse_convolution_line("ic3ih8oc4oh3kh3");
  BOOST_TEST(cropped.pad_before[1] == -1);
  BOOST_TEST(cropped.pad_after[1] == -2);
}

BOOST_AUTO_TEST_CASE(with_both_given_the_padding_after_is_what_the_output_implies) {
  const ConvolutionLine larger = parse_convolution_line("ic3ih8oc4oh9kh3ph0");
  BOOST_TEST(larger.pad_before[1] == 0);
  BOOST_TEST(larger.pad_after[1] == 3);
  const ConvolutionLine smaller = parse_convolution_line("ic3ih8oc4oh4kh3ph1");
  BOOST_TEST(smaller.pad_after[1] == -3);
  const ConvolutionLine negative = parse_convolution_line("ic3ih8oc4oh4kh3ph-1");
  BOOST_TEST(negative.pad_before[1] == -1);
  BOOST_TEST(negative.pad_after[1] == -1);
}

BOOST_AUTO_TEST_CASE(names) {
  const auto name = [](std::string_view tail) {
    return parse_convolution_line("ic3ih8oc4kh3" + std::string(tail)).name;
  };
  BOOST_TEST(name("") == "");
  BOOST_TEST(name("n") == "");
  BOOST_TEST(name("n\"\"") == "");
  BOOST_TEST(name("nplain") == "plain");
  BOOST_TEST(name("_n\"quoted\"") == "quoted");
  BOOST_TEST(name("n\"alexnet:conv_1 g2mb3\"") == "alexnet:conv_1 g2mb3");
  BOOST_TEST(name("n\"twice\"*2") == "\"twice\"*2");
  BOOST_TEST(name("n\"") == "\"");
  for (const char* tail : {"nplain", "n\"a b\"", "n\"twice\"*2", "n\"", "n\"\"\"", "n\" \""}) {
    BOOST_TEST(name("_n\"" + name(tail) + "\"") == name(tail));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_legal) {
  BOOST_TEST(parse_convolution_line("mb0ic3ih8oc4kh3").batch == 0);
}

BOOST_AUTO_TEST_CASE(typos_are_named_with_their_column) {
  const std::pair<const char*, const char*> cases[] = {
      {"ic3ih8oc4kq3", "column 10: \"kq\" begins no entry"},
      {"x", "column 1: \"x\" begins no entry"},
      {"ic3ih8oc4kh3!", "column 13: \"!\" begins no entry"},
      {"ic3 ih8oc4kh3", "column 4: a blank"},
      {"  ic3ih8oc4k", "column 12: \"k\" begins no entry"},
      {"icih8oc4kh3", "column 3: ic is followed by \"ih\"; expected a whole number"},
      {"ic3ih8oc4kh", "column 12: kh is followed by the end of the line"},
      {"ic3ih+8oc4kh3", "column 6: ih is followed by \"+\""},
      {"ic3ih--8oc4kh3", "column 6: ih is followed by \"--\""},
      {"ic3ih8.5oc4kh3", "column 7: \".\" begins no entry"},
      {"ic3ih8oc4kh0", "column 10: kh is 0; expected 1 to"},
      {"ic-3ih8oc4kh3", "column 1: ic is -3; expected 1 to"},
      {"g0ic3ih8oc4kh3", "column 1: g is 0"},
      {"mb-1ic3ih8oc4kh3", "column 1: mb is -1; expected 0 to"},
      {"ic3ih8oc4kh3sh0", "column 13: sh is 0"},
      {"ic3ih8oc4kh3dh-1", "column 13: dh is -1; expected 0 to"},
      {"ic3ih8oc4kh3_ih9", "column 14: ih is 9, but was 8 before"},
      {"ic3ih99999999999999999999oc4kh3", "column 6: ih is 99999999999999999999; expected at most"},
      {"ic3ih9999999999999oc4kh3", "column 4: ih is 9999999999999; expected 1 to"},
  };
  for (const auto& [line, expected] : cases) {
    BOOST_TEST_INFO(line << " gives: " << refusal(line));
    BOOST_TEST(refusal(line).starts_with(expected));
  }
  BOOST_TEST(refusal("ic3ih8oc4kh3_ih8") == "");  // repeating an entry is no contradiction
}

BOOST_AUTO_TEST_CASE(what_is_missing_is_named) {
  BOOST_TEST(contains(refusal(""), "expected an entry ic"));
  BOOST_TEST(contains(refusal("ic3ih8kh3"), "expected an entry oc"));
  BOOST_TEST(contains(refusal("ic3oc4"), "no spatial sizes"));
  BOOST_TEST(contains(refusal("ic3oc4kh3"), "expected an entry ih"));
  BOOST_TEST(contains(refusal("ic3ih8oc4"), "expected an entry kh"));
  BOOST_TEST(contains(refusal("ic3id8oc4kh3"), "expected an entry kd"));
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_named) {
  BOOST_TEST(contains(refusal("g2ic3ih8oc4kh3"), "ic is 3; expected a multiple of the 2 groups"));
  BOOST_TEST(contains(refusal("g3ic3ih8oc4kh3"), "oc is 4; expected a multiple of the 3 groups"));
  const std::string large = refusal("ic3ih8iw4oc4kh3kw5dw1");
  BOOST_TEST(contains(large, "the filter spans 9 in width (kw5, dw1)"));
  BOOST_TEST(contains(large, "expected at most 4"));
}

BOOST_AUTO_TEST_CASE(products_that_overflow_are_refused) {
  BOOST_TEST(contains(refusal("ic1oc1iw1ow1099511627776kw1sw1099511627776"), "too large"));
  BOOST_TEST(contains(refusal("ic1oc1iw1ow1kw1099511627776dw1099511627775"), "too large"));
  BOOST_TEST(contains(refusal("ic1oc1iw1ow1048576kw1sw1099511627776"), "padding in width"));
  const ConvolutionLine huge =
      parse_convolution_line("mb1099511627776ic1099511627776ih1099511627776oc1kh1");
  BOOST_CHECK_THROW(make_convolution(huge, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, KILN_CONVOLUTION),
                    kiln::Error);
}

BOOST_AUTO_TEST_CASE(batch_text) {
  const auto lines = kiln::problem_lines(
      "# a comment\n--dir=FWD_B\n\nic3ih8oc4kh3\r\n   \n  # another\n\t--batch=x\n  "
      "ic1ih2oc3kh1n\"#\"");
  BOOST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(lines[0].number == 4);
  BOOST_TEST(lines[0].text == "ic3ih8oc4kh3");
  BOOST_TEST(lines[1].number == 8);
  BOOST_TEST(parse_convolution_line(lines[1].text).name == "#");
  BOOST_TEST(kiln::problem_lines("").empty());
  BOOST_TEST(kiln::problem_lines("\n\n").empty());
}

BOOST_AUTO_TEST_CASE(makes_the_problem) {
  const ConvolutionLine line = parse_convolution_line("g2mb3ic4ih6iw5oc8kh3kw2ph1pw0dh1");
  const kiln::ConvolutionProblem nchw =
      make_convolution(line, KILN_DATA_HALF, KILN_TENSOR_NCHW, KILN_CONVOLUTION);
  BOOST_TEST(nchw.type() == KILN_DATA_HALF);
  BOOST_TEST(nchw.rank == 2);
  BOOST_TEST(nchw.mode == KILN_CONVOLUTION);
  BOOST_TEST((nchw.out == Spatial{1, 4, 4}));
  BOOST_TEST((nchw.dilation == Spatial{1, 2, 1}));
  BOOST_TEST((nchw.x_strides == std::array<std::int64_t, 5>{120, 30, 0, 5, 1}));
  BOOST_TEST((nchw.w_strides == std::array<std::int64_t, 5>{12, 6, 0, 2, 1}));
  const kiln::ConvolutionProblem nhwc =
      make_convolution(line, KILN_DATA_HALF, KILN_TENSOR_NHWC, KILN_CONVOLUTION);
  BOOST_TEST((nhwc.x_strides == std::array<std::int64_t, 5>{120, 1, 0, 20, 4}));
}

// Every line of the lists is legal, is the same after printing, and is the line of its problem.
BOOST_AUTO_TEST_CASE(the_problem_lists) {
  int small = 0;
  // The lists of convolutions whose lines have no flags.
  for (const std::string name : {"small.txt", "paper.txt", "alexnet.txt", "resnet50.txt"}) {
    std::ostringstream text;
    text << std::ifstream(problem_list_path(name)).rdbuf();
    const bool is_small = name == "small.txt";
    for (const auto& [number, line] : kiln::problem_lines(text.str())) {
      BOOST_TEST_INFO(name << ":" << number << ": " << line);
      ConvolutionLine parsed = parse_convolution_line(line);
      BOOST_TEST((parse_convolution_line(print_convolution_line(parsed)) == parsed));
      const kiln::ConvolutionProblem problem =
          make_convolution(parsed, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
      parsed.name.clear();
      BOOST_TEST(to_line(problem) == print_convolution_line(parsed));
      if (is_small) {
        ++small;
        BOOST_TEST(problem.flops() <= 2e6);
      }
    }
  }
  BOOST_TEST(small >= 150);
}

BOOST_AUTO_TEST_SUITE_END()
