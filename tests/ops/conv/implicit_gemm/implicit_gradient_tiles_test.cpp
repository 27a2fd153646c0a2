// The implicit matrix products of gradients with every tile and split count.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "engines/conv/implicit_gemm/implicit_gemm.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/wgrad/wgrad_implicit_gemm.hpp"
#include "engines/conv/wgrad/wgrad_nhwc_mma.hpp"
#include "ops/conv/forward_case.hpp"

BOOST_AUTO_TEST_SUITE(implicit_gradient_tiles)

namespace {

using namespace test;

const RecipeEngine channels_last(::kiln::wgrad_nhwc_mma);

}  // namespace

// On small integers, sums are exact in every order.
BOOST_AUTO_TEST_CASE(every_tile_and_every_split) {
  kiln_test::ShareOfCases share = share_of_cases();
  const std::shared_ptr<Device> on = device();
  const int largest = on->description().largest_cluster;
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      const ConvolutionOperands o = describe_convolution(
          parse_convolution_line("mb3ic38ih9iw10oc70kh3ph0"), type, layout, KILN_CROSS_CORRELATION);
      const ConvolutionProblem dgrad = make_convolution_dgrad(o.spec, o.w, o.y, o.x);
      const ConvolutionProblem wgrad = make_convolution_wgrad(o.spec, o.x, o.y, o.w);
      for (const ConvolutionProblem& problem : {dgrad, wgrad}) {
        const bool is_wgrad = problem.pass == ConvolutionPass::wgrad;
        OperationCase item(problem);
        item.fill_integers(5, 2);
        const HostTensor want = item.expected();
        std::vector<GemmTile> tiles = all_tiles(problem);
        if (is_wgrad)
          for (const GemmTile& tile :
               RecipeEngine(::kiln::wgrad_implicit_gemm_fma).tiles(problem, on->description()))
            tiles.push_back(tile);
        for (const GemmTile& tile : tiles)
          for (int parts : {1, 2, 3, 8, 16}) {
            if (parts > largest ||
                !share.takes(cat(is_wgrad, " ", describe(tile)), type, layout, parts))
              continue;
            const HostTensor got =
                run_proposal(item, propose_gemm(problem, tile, on->description(), parts));
            BOOST_TEST(difference(got, want) == "", describe(tile) << ", " << parts << " parts");
          }
      }
    }
}

// Wide rows with much padding: a tile has several columns of a row, over more images than fit in a
// tile, over fewer, and over a number that does not divide the tile.
BOOST_AUTO_TEST_CASE(columns_of_a_row_stay_together) {
  kiln_test::ShareOfCases share = share_of_cases();
  const std::shared_ptr<Device> on = device();
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF})
    for (const char* line : {"mb3ic5ih5iw64oc20kh3kw9ph0pw0", "mb37ic4ih5iw64oc17kh3kw9ph0pw0"}) {
      const ConvolutionOperands o = describe_convolution(parse_convolution_line(line), type,
                                                         KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
      const ConvolutionProblem problem = make_convolution_dgrad(o.spec, o.w, o.y, o.x);
      OperationCase item(problem);
      item.fill_integers(7, 2);
      const HostTensor want = item.expected();
      for (const GemmTile& tile : all_tiles(problem)) {
        if (!share.takes(describe(tile), type, line)) continue;
        const Proposal proposal = propose_gemm(problem, tile, on->description(), 1);
        const auto together = std::find_if(
            proposal.first().kernel.constants.begin(), proposal.first().kernel.constants.end(),
            [](const Constant& each) { return each.name == "COLUMNS_TOGETHER"; });
        BOOST_REQUIRE(together != proposal.first().kernel.constants.end());
        BOOST_TEST(std::get<std::int64_t>(together->value) > 1);
        BOOST_TEST(difference(run_proposal(item, proposal), want) == "", describe(tile));
      }
    }
}

// Numbers of filters, columns and pixels that no tile divides; split counts above the number of
// steps; padding on all sides, large dilations, several groups.
BOOST_AUTO_TEST_CASE(every_channels_last_tile) {
  kiln_test::ShareOfCases share = share_of_cases();
  const std::shared_ptr<Device> on = device();
  const DeviceDescription& description = on->description();
  for (const char* line : {"mb3ic40ih9iw10oc72kh3ph0", "g2mb2ic16ih7iw9oc48kh3kw2ph3pw1dh1sw2"})
    for (const auto& [type, math] : {std::pair{KILN_DATA_HALF, KILN_MATH_DEFAULT},
                                     {KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT},
                                     {KILN_DATA_FLOAT, KILN_MATH_TF32},
                                     {KILN_DATA_FLOAT, KILN_MATH_DEFAULT}}) {
      ConvolutionOperands o = describe_convolution(parse_convolution_line(line), type,
                                                   KILN_TENSOR_NHWC, KILN_CONVOLUTION);
      o.spec.math = math;
      const ConvolutionProblem problem = make_convolution_wgrad(o.spec, o.x, o.y, o.w);
      OperationCase item(problem);
      item.fill_integers(5, 2);
      const HostTensor want = item.expected();
      const std::vector<WgradTile> tiles = channels_last.tiles(problem, description);
      if (description.kind == KILN_DEVICE_HOST) BOOST_TEST(!tiles.empty());
      for (const WgradTile& tile : tiles)
        for (int parts : {1, 4, 16}) {
          if (parts > description.largest_cluster ||
              !share.takes(describe(tile), line, type, math, parts))
            continue;
          const HostTensor got =
              run_proposal(item, channels_last.propose(tile, problem, description, {parts}));
          BOOST_TEST(difference(got, want) == "",
                     line << ", " << describe(tile) << ", " << parts << " parts");
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
