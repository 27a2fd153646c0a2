// The engines for outputs with few channels: every shape, strips and rows of tiles at the edges,
// columns that belong to no output, and the epilogue after the sums over a row of taps.
#include "engines/conv/few_output_channels/few_output_channels.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <iterator>
#include <limits>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"
#include "ops/placed_case.hpp"

BOOST_AUTO_TEST_SUITE(few_output_channels)

namespace {

using namespace test;

constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};
constexpr ConvolutionPass passes[] = {ConvolutionPass::fprop, ConvolutionPass::dgrad};

const RecipeEngine on_warps(few_output_channels_mma);
const RecipeEngine on_warpgroups(few_output_channels_wgmma);

// The engines that the device supports for a type.
std::vector<const RecipeEngine<FewOutputChannelsTile>*> engines_of(DataType type) {
  std::vector<const RecipeEngine<FewOutputChannelsTile>*> all = {&on_warps};
  if (has_warpgroups() && type != KILN_DATA_DOUBLE) all.push_back(&on_warpgroups);
  return all;
}

void check_exact(const OperationCase& item) {
  const DataType type = std::get<ConvolutionProblem>(item.problem).type();
  for (const auto* engine : engines_of(type)) check_integers(item, engine->name());
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(on_warps, problem); }

}  // namespace

// 15, 21, 33 and 55 columns of the product. On a chip with a single multiprocessor, blocks compute
// several tiles each, and the last block fewer.
BOOST_AUTO_TEST_CASE(every_shape_and_every_share) {
  kiln_test::ShareOfCases share = share_of_cases();
  for (const char* line : {"mb2ic3ih19iw22oc40kh5ph2", "mb2ic3ih14iw33oc40kh7ph1",
                           "mb2ic3ih14iw21oc24kh11ph0", "mb1ic5ih15iw41oc24kh11ph3"})
    for (const Arithmetic& arithmetic : with_f64)
      for (const kilnTensorFormat_t layout : layouts) {
        if (arithmetic.type == KILN_DATA_BFLOAT16) continue;  // takes the same paths as f16
        const ConvolutionProblem problem =
            problem_in(line, arithmetic, layout, ConvolutionPass::dgrad);
        const OperationCase item = integers_of(problem);
        const HostTensor want = item.expected();
        DeviceDescription description = device()->description();
        for (const auto* engine : engines_of(arithmetic.type)) {
          const std::vector<FewOutputChannelsTile> tiles = engine->tiles(problem, description);
          BOOST_TEST(tiles.size() >= 2);
          for (const FewOutputChannelsTile& tile : tiles)
            for (const int multiprocessors : {132, 1}) {
              if (!share.takes(cat(engine->name(), " ", describe(tile)), line, text_of(arithmetic),
                               layout, multiprocessors))
                continue;
              description.multiprocessors = multiprocessors;
              const Proposal proposal = engine->propose(tile, problem, description);
              const std::string fault = difference(run_proposal(item, proposal), want);
              BOOST_TEST(fault.empty(), engine->name()
                                            << ", " << line << ", " << describe(tile) << ", "
                                            << proposal.first().launch.shape.grid[0]
                                            << " blocks: " << fault);
            }
        }
      }
}

// The gradient of the image of the paper's first layer.
BOOST_AUTO_TEST_CASE(gradient_of_an_image) {
  kiln_test::ShareOfCases share = share_of_cases();
  int turn = 0;
  for (const Arithmetic& arithmetic : with_f64)
    for (const kilnTensorFormat_t layout : layouts) {
      const char* line = turn++ % 3 == 0 ? "mb1ic3ih128oc96kh11ph0" : "mb2ic3ih128oc16kh11ph0";
      if (!share.takes(text_of(arithmetic), layout)) continue;
      check_exact(integers_of(problem_in(line, arithmetic, layout, ConvolutionPass::dgrad)));
    }
}

// Sizes that are no multiples of tiles; strides along the height, dilations, groups; padding larger
// than the filter, so that some outputs have no tap inside the source, and its gradients; sources
// that are narrow, wider than a strip, or narrower than a dilation; filters of one tap, one row and
// one column.
BOOST_AUTO_TEST_CASE(edges) {
  kiln_test::ShareOfCases share = share_of_cases();
  int turn = 0, checked = 0;
  for (const char* line :
       {"mb3_ic24ih17iw18_oc3_kh5kw5_ph2pw2_sh2sw1", "mb2_ic3ih9iw13_oc40_kh3kw3_ph1pw1",
        "mb1_ic8ih5iw700_oc2_kh3kw7_ph1pw3", "mb2_ic16ih3iw1300_oc8_kh2kw3_ph1pw1",
        "mb2_ic8ih11iw12_oc8_kh3kw5_ph2pw4_dh2dw1", "mb1_ic16ih7iw300_oc4_kh1kw15_pw20_dw3",
        "mb2_ic16ih3iw5_oc2_kh3kw5_ph4pw9", "mb2_ic8ih20iw21_oc16_kh3kw3_ph5pw5",
        "mb3_ic8ih9iw3_oc8_kh2kw3_ph1pw6_dw5", "mb2_ic32ih13iw1_oc8_kh4kw1_ph3",
        "g2mb2_ic16ih9iw10_oc16_kh3kw3_ph1pw1", "g3mb2_ic9ih7iw11_oc9_kh3kw4_pw2",
        "mb2_ic7ih8iw9_oc1_kh6kw6_ph3pw3", "mb2_ic48ih6iw7_oc64_kh1kw1",
        "mb5_ic64ih1iw520_oc4_kh1kw9_pw4", "mb1_ic8ih40iw9_oc24_kh17kw2_ph16pw1",
        "mb1_ic16ih14iw12_oc16_kh3kw3_ph0pw0_sh3sw1_dh1", "mb1_ic8ih6iw540_oc8_kh3kw5_ph1pw300"})
    for (const kilnTensorFormat_t layout : layouts)
      for (const ConvolutionPass pass : passes)
        for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION})
          for (int i = 0; i < 2; ++i) {
            const Arithmetic& arithmetic = in_turn(turn++ / 2);
            const ConvolutionProblem problem = problem_in(line, arithmetic, layout, pass, mode);
            // Refused: too many taps, too few products, phases, or channels that cannot be copied
            // as vectors.
            if (!reason(problem).empty()) continue;
            ++checked;
            if (share.takes(line, layout, pass, mode, text_of(arithmetic)))
              check_exact(integers_of(problem));
          }
  BOOST_TEST(checked >= 150);
}

// Gradients with strides: phases with fewer taps than others, or none; filters no larger or smaller
// than the stride; sizes that are not multiples of the stride, or below it; dilations that the
// stride divides; more columns than a tile has; padding larger than the filter; strips.
BOOST_AUTO_TEST_CASE(phases) {
  kiln_test::ShareOfCases share = share_of_cases();
  int turn = 0, checked = 0;
  for (const char* line :
       {"mb2_ic3ih17iw18_oc24_kh7kw7_ph3pw3_sh2sw2", "mb2_ic3ih16iw19_oc32_kh3kw3_ph1pw1_sh2sw2",
        "mb1_ic3ih33iw40_oc40_kh16kw16_sh16sw16", "mb2_ic3ih18iw22_oc24_kh4kw4_sh4sw4",
        "mb2_ic3ih23iw29_oc16_kh11kw11_ph2pw2_sh4sw4", "mb2_ic4ih15iw14_oc16_kh1kw1_sh2sw2",
        "mb2_ic3ih19iw20_oc16_kh2kw2_sh3sw3", "mb2_ic2ih19iw18_oc16_kh4kw4_ph1pw1_sh2sw2",
        "mb1_ic3ih9iw1101_oc16_kh5kw5_ph2pw2_sh1sw2", "mb2_ic5ih20iw9_oc16_kh6kw3_ph8pw7_sh3sw1",
        "mb2_ic3ih2iw15_oc16_kh4kw5_ph1pw2_sh3sw2",
        "mb1_ic3ih21iw23_oc16_kh3kw5_ph2pw4_sh2sw2_dh1dw1",
        "g2mb2_ic6ih15iw16_oc32_kh5kw5_ph2pw2_sh2sw2", "mb1_ic40ih12iw12_oc16_kh3kw3_ph1pw1_sh2sw2",
        "mb1_ic64ih10iw11_oc16_kh2kw2_sh2sw2"})
    for (const kilnTensorFormat_t layout : layouts)
      for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION})
        for (int i = 0; i < 2; ++i) {
          const Arithmetic& arithmetic = in_turn(turn++);
          const ConvolutionProblem problem =
              problem_in(line, arithmetic, layout, ConvolutionPass::dgrad, mode);
          if (!reason(problem).empty()) continue;
          ++checked;
          OperationCase item = integers_of(problem);
          item.scalars = {.alpha = 2, .beta = -1};
          if (share.takes(line, layout, mode, text_of(arithmetic))) check_exact(item);
        }
  BOOST_TEST(checked >= 45);
}

// Filters of several planes, which are walked like further channels.
BOOST_AUTO_TEST_CASE(volumes) {
  kiln_test::ShareOfCases share = share_of_cases();
  int turn = 0;
  for (const char* line : {"mb2_ic16id5ih9iw10_oc3_kd3kh3kw3_pd1ph1pw1",
                           "mb1_ic40id7ih6iw9_oc4_kd3kh2kw5_pd3ph1pw2_dd1",
                           "mb2_ic3id5ih14iw15_oc16_kd3kh7kw7_pd1ph3pw3_sd1sh2sw2",
                           "mb1_ic16id9ih7iw8_oc2_kd4kh3kw3_pd1ph1pw1_sd2sh1sw1",
                           // The only plane of taps meets padding alone at the last output.
                           "mb3_ic16id4ih3iw5_oc8od4oh1ow5_kd1kh1kw3_sd1sh2sw1_pd-1ph-1pw3_dw2"})
    for (const kilnTensorFormat_t layout : layouts)
      for (const ConvolutionPass pass : passes)
        for (const kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
          const Arithmetic& arithmetic = in_turn(turn++);
          const ConvolutionProblem problem = problem_in(line, arithmetic, layout, pass, mode);
          if (reason(problem).empty() && share.takes(line, layout, pass, mode, text_of(arithmetic)))
            check_exact(integers_of(problem));
        }
}

// Rows and columns with gaps between them.
BOOST_AUTO_TEST_CASE(strides) {
  for (const Arithmetic& arithmetic : with_f64)
    for (const kilnTensorFormat_t layout : layouts) {
      ConvolutionProblem problem =
          fused_in("mb2ic24ih14iw15oc5kh5ph2", arithmetic, layout, layouts[layout == layouts[0]]);
      check_exact(integers_of(problem));
    }
}

// Sums so long that they are promoted through local memory.
BOOST_AUTO_TEST_CASE(long_sums) {
  for (const Arithmetic& arithmetic : with_f64)
    for (const kilnTensorFormat_t layout : layouts)
      check_exact(integers_of(problem_in("mb1_ic2784ih4iw5_oc2_kh3kw3", arithmetic, layout)));
}

// Operands that are only aligned to an element, and a residual in another layout.
BOOST_AUTO_TEST_CASE(epilogue_and_alignment) {
  for (const Arithmetic& arithmetic : with_f64)
    for (const kilnTensorFormat_t layout : layouts) {
      const ConvolutionOperands o =
          describe_convolution(parse_convolution_line("mb2ic24ih14iw15oc5kh5ph2"), arithmetic.type,
                               layout, KILN_CROSS_CORRELATION);
      Tensor z = o.y;
      z.strides = dense_strides(layouts[layout == layouts[0]], 4, z.dims);
      Tensor bias = o.y;
      bias.dims = {1, o.y.dims[1], 1, 1};
      bias.strides = dense_strides(layout, 4, bias.dims);
      ConvolutionProblem problem = make_convolution(
          o.spec, o.x, o.w, o.y, bias_activation_epilogue(&z, &bias, {KILN_ACTIVATION_RELU, 0}));
      problem.math = arithmetic.math;
      OperationCase item = integers_of(problem);
      item.scalars = {.alpha = 2, .beta = -1};
      check_exact(item);

      ConvolutionProblem gradient =
          problem_in("mb2ic3ih14iw15oc24kh5ph2", arithmetic, layout, ConvolutionPass::dgrad);
      OperationCase accumulated(gradient);
      accumulated.scalars = {.alpha = -2, .beta = 3};
      accumulated.fill_integers(7, 2);
      check_exact(accumulated);

      problem.alignment = static_cast<std::int64_t>(size_of(problem.type()));
      if (layout == KILN_TENSOR_NHWC) {
        BOOST_TEST(reason(problem) ==
                   "neither the pixels of a row are contiguous in the input, nor channels, in "
                   "multiples of 16 bytes");
        continue;
      }
      item = integers_of(problem);
      item.scalars = {.alpha = 2, .beta = -1};
      for (const auto* engine : engines_of(arithmetic.type))
        BOOST_TEST(difference(run_shifted(item, 1, engine->name()), item.expected()) == "");
    }
}

// An infinity of the source is multiplied by lo parts that are zero. An infinity of the filter is
// multiplied by columns beyond the source and by the padding of tiles. Both must reach only the
// outputs that read them.
BOOST_AUTO_TEST_CASE(nan_and_infinity_go_where_they_are_read) {
  for (const char* line :
       {"mb2_ic16ih12iw13_oc3_kh5kw5_ph0pw2", "mb1_ic24ih6iw530_oc4_kh3kw5_ph0pw4"})
    for (const Arithmetic& arithmetic : with_f64)
      for (const kilnTensorFormat_t layout : layouts) {
        OperationCase item = integers_of(problem_in(line, arithmetic, layout), 5);
        replace_zeros(item);
        item["x"].at(20) = std::nan("");
        item["x"].at(501) = std::numeric_limits<double>::infinity();
        item["x"].at(1333) = -std::numeric_limits<double>::infinity();
        item["w"].at(205) = std::numeric_limits<double>::infinity();  // at a row's first tap
        item["w"].at(209) = std::numeric_limits<double>::infinity();  // at its last tap
        check_exact(item);
      }
}

// Rows of taps that a phase lacks are multiplied as zeros; an infinity there must not change the
// phase.
BOOST_AUTO_TEST_CASE(nan_and_infinity_stay_in_their_phases) {
  for (const char* line :
       {"mb2_ic3ih17iw18_oc24_kh7kw7_ph3pw3_sh2sw2", "mb2_ic3ih16iw19_oc32_kh3kw3_ph1pw1_sh2sw2",
        "mb2_ic3ih19iw20_oc16_kh2kw2_sh3sw3"})
    for (const Arithmetic& arithmetic : with_f64)
      for (const kilnTensorFormat_t layout : layouts) {
        const ConvolutionProblem problem =
            problem_in(line, arithmetic, layout, ConvolutionPass::dgrad);
        if (!reason(problem).empty()) continue;
        OperationCase item = integers_of(problem, 5);
        replace_zeros(item);
        item["dy"].at(20) = std::nan("");
        item["dy"].at(501) = std::numeric_limits<double>::infinity();
        item["dy"].at(733) = -std::numeric_limits<double>::infinity();
        check_exact(item);
      }
}

BOOST_AUTO_TEST_CASE(three_products_err_no_more_than_f32) {
  for (const auto* engine : engines_of(KILN_DATA_FLOAT))
    check_error_of_three_products(engine->name(),
                                  {.channels = 48, .size = 18, .filters = 3, .taps = 5});
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  const Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
  const auto nchw = [&](const char* line) { return problem_in(line, f32, KILN_TENSOR_NCHW); };
  BOOST_TEST(reason(nchw("mb4ic32ih29oc3kh7ph1")) == "");
  BOOST_TEST(
      reason(nchw("mb4ic32ih29oc10kh7ph1")) ==
      "10 output channels a group, each with 7 taps in a row of the filter; expected at most 64 "
      "taps together");
  BOOST_TEST(reason(nchw("mb4ic32ih29oc3kh7ph1sh2sw2")) ==
             "the stride along the width is 2; expected 1");
  BOOST_TEST(reason(problem_in("mb4ic3id9ih29oc32kd3kh7sd2", f32, KILN_TENSOR_NCHW,
                               ConvolutionPass::dgrad)) ==
             "a data gradient of 2 phases along the depth; expected 1");
  BOOST_TEST(reason(problem_in("mb4ic3ih29oc32kh7sh2dh2", f32, KILN_TENSOR_NCHW,
                               ConvolutionPass::dgrad)) ==
             "the taps of a phase lie 3 pixels apart along the height; expected 1");
  BOOST_TEST(reason(nchw("mb1ic32ih900oc3kh3dh700ph700")).find("do not fit into shared memory") !=
             std::string::npos);
  // Sizes in bytes beyond 32 bits.
  BOOST_TEST(reason(nchw("mb1ic9000000ih16oc3kh3")).find("do not fit into shared memory") !=
             std::string::npos);
  BOOST_TEST(reason(problem_in("mb4ic30ih29oc3kh7ph1", f32, KILN_TENSOR_NHWC)) ==
             "neither the pixels of a row are contiguous in the input, nor channels, in multiples "
             "of 16 bytes");
  const ConvolutionProblem f64 =
      problem_in("mb4ic32ih29oc3kh7ph1", {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT}, KILN_TENSOR_NCHW);
  BOOST_TEST(reason(f64) == "");
  BOOST_TEST(refusal_of(on_warpgroups, f64) ==
             "the data type is f64; this engine takes f32, f16 and bf16");
}

BOOST_AUTO_TEST_SUITE_END()
