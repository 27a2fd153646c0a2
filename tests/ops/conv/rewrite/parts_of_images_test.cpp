// Convolutions that are computed on copies of parts of images, rows or planes of depth, because the
// workspace that is granted has no room for the copies of one image.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "codegen/loops.hpp"
#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(parts_of_images)

namespace {

using namespace test;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT},
    bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}, tf32{KILN_DATA_FLOAT, KILN_MATH_TF32},
    f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
constexpr Arithmetic in_turns[] = {f16, tf32, bf16, f32};

struct Case {
  const char* line;
  kilnTensorFormat_t layout = KILN_TENSOR_NCHW;
};

// Rows, planes of depth and pixels of a line, which begin at any element; strides, also ones that
// leave rows out; dilation; padding wider than the filter, on one side, and of more rows than a
// part has; groups; channels that are padded. The last parts of an image have fewer rows.
constexpr Case cases[] = {
    {"mb2ic16ih13iw9oc24kh3ph1"},
    {"mb2ic16id7ih5iw6oc24kd3kh3kw3pd1ph1pw1"},
    {"mb2ic16id9ih1iw6oc24od9oh1ow6kd3kh1kw3pd1ph0pw1"},
    {"mb1ic16iw101oc24kw5pw2"},
    {"mb2ic16ih15iw8oc24kh3sh2ph1"},
    {"mb1ic16ih14iw9oc24oh6ow4kh3kw3sh2sw2"},
    {"mb1ic16ih17iw9oc24oh5ow8kh2kw2sh4sw1ph2pw0"},
    {"mb1ic16ih13iw9oc24kh3ph4pw1"},
    {"mb1ic16ih14iw9oc24kh3dh2ph3pw1dw0"},
    {"mb1ic16ih12iw9oc24oh12kh4kw1ph1pw0"},
    {"mb2ic24ih14iw9oc40kh1sh2"},
    {"mb1ic24id7ih6iw5oc40kd1kh1kw1sd2sh2sw2"},
    {"mb1ic24ih13iw9oc40kh1ph1sh2"},
    {"mb2ic40ih12iw16oc24kh1"},
    {"g2mb1ic32ih9iw9oc48kh3ph1"},
    {"mb2ic11ih13iw9oc13kh3ph1"},
    {"mb2ic11ih13iw9oc13kh3ph1", KILN_TENSOR_NHWC},
    {"mb2ic10ih13iw9oc13kh3sh2ph1", KILN_TENSOR_NHWC},
    {"mb2ic11id7ih5iw6oc18kd3kh3kw3pd1ph1pw1", KILN_TENSOR_NHWC},
    {"mb2ic16ih13iw8oc13kh1", KILN_TENSOR_NHWC},
};

}  // namespace

// In every second case the result is scaled and added to its previous content. Workspace for larger
// parts, too, and parts of which neither the results nor dy are copied.
BOOST_AUTO_TEST_CASE(layers) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases(3);
  std::size_t turn = 0;
  for (const auto& [line, layout] : cases)
    for (const ConvolutionPass pass : all_passes) {
      const Arithmetic& arithmetic = in_turns[turn++ % std::size(in_turns)];
      if (!share.takes(line, layout, pass)) continue;
      OperationCase item = integers_of(problem_in(line, arithmetic, layout, pass));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      std::string tiles = check_parts(item, turn / 2 % 2 * 2);
      if (tiles.empty()) tiles = check_parts(item);  // more workspace has room for an image
      BOOST_TEST(!tiles.empty(), text_of(item.problem));
    }
}

// Rows of all planes of depth, where the copies of one plane do not fit: strides, dilation, padding
// wider than the filter and on one side, a stride of depth, groups, a filter that reaches over all
// planes. Equally many rows in every part, as many as divide the height.
BOOST_AUTO_TEST_CASE(rows_of_all_planes) {
  if (!has_warpgroups()) return;
  constexpr const char* lines[] = {
      "mb2ic16id3ih8iw7oc24kd3kh3kw3pd1ph1pw1",
      "mb1ic24id4ih8iw5oc16od2oh4ow5kd3kh3kw1sd2sh2sw1pd1ph1pw0",
      "mb1ic16id3ih9iw6oc24od3oh9ow6kd3kh3kw3pd2ph1pw1",
      "mb1ic16id3ih10iw6oc24kd2kh3kw3dd0dh1dw0pd1ph4pw1",
      "g2mb1ic32id3ih6iw8oc48kd3kh3kw3pd1ph1pw1",
      "mb1ic11id4ih6iw9oc13kd4kh2kw1pd0ph1pw0",
  };
  kiln_test::ShareOfCases share = share_of_cases(2);
  std::size_t turn = 0;
  for (const char* line : lines)
    for (const ConvolutionPass pass : all_passes) {
      const Arithmetic& arithmetic = in_turns[turn++ % std::size(in_turns)];
      if (!share.takes(line, KILN_TENSOR_NCHW, pass)) continue;
      OperationCase item = integers_of(problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      const std::string tiles = check_parts(item);
      BOOST_TEST(tiles.find(" of all planes at a time") != std::string::npos, text_of(item.problem)
                                                                                  << ": " << tiles);
    }
}

// Bias, activation, and a residual or the output's previous content, of which the last part has
// fewer rows.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, tf32})
    for (const char* line : {"mb2ic24ih11iw7oc40kh3ph1", "mb1ic16ih9iw10oc24kh1sh2"}) {
      OperationCase fused(fused_in(line, arithmetic, KILN_TENSOR_NCHW, KILN_TENSOR_NCHW));
      fused.scalars = {.alpha = 2, .beta = -1};
      fused.fill_integers(5, 2);
      BOOST_TEST(check_parts(fused) != "");
    }
}

// Rows of zeros that are copied as padding, and rows that two parts read.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::size_t turn = 0;
  for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
    for (const ConvolutionPass pass : all_passes) {
      OperationCase item = integers_of(
          problem_in("mb1ic11ih9iw8oc13kh3ph1", turn++ % 2 == 0 ? f16 : tf32, layout, pass), 5);
      replace_zeros(item);
      for (std::size_t i = 0; i < 2; ++i) {
        item.tensors[i].at(20) = i == 0 ? infinity : std::nan("");
        item.tensors[i].at(item.tensors[i].values.size() - 1) = -infinity;
      }
      BOOST_TEST(check_parts(item) != "");
    }
}

// Random numbers against sums in double precision, with the same bits every time. The last filter
// gradient's blocks leave their sums in the workspace from part to part.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  const auto check = [](const char* line, const Arithmetic& arithmetic, ConvolutionPass pass) {
    OperationCase item(problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass));
    item.fill_uniform(3);
    return check_parts(item, 0, false);
  };
  for (const ConvolutionPass pass : all_passes)
    BOOST_TEST(check("mb2ic40ih11iw9oc72kh3ph1", tf32, pass) != "");
  const std::string tiles = check("mb1ic64ih32iw32oc64kh3kw1ph1pw0", f16, ConvolutionPass::wgrad);
  BOOST_TEST(tiles.find("sums of all images") != std::string::npos, tiles);
}

// Images, and parts of each, in loops: what differs at an image's edges is listed, all else
// counted.
BOOST_AUTO_TEST_CASE(parts_of_several_images_are_counted) {
  if (!has_warpgroups()) return;
  for (const ConvolutionPass pass : all_passes) {
    const ConvolutionProblem problem =
        problem_in("mb5ic16ih29iw9oc24kh3ph1", tf32, KILN_TENSOR_NCHW, pass);
    std::size_t budget = 2048;
    const auto propose = [&] {
      return engine_for(problem).propose(problem, chooser(),
                                         {.budget = budget, .copy_results = true});
    };
    while (budget < most_workspace && std::holds_alternative<Refusal>(propose()))
      budget += budget / 8;
    const Proposal proposal = std::get<RelayoutRewrite::Result>(propose()).proposal;
    const auto steps = static_cast<std::int64_t>(proposal.steps.size());
    BOOST_TEST(launch_count(proposal) > 2 * steps, proposal.first().kernel.tile);
    BOOST_TEST(
        std::ranges::any_of(proposal.loops, [](const Loop& loop) { return loop.level > 0; }));
    const OperationCase item = integers_of(problem);
    BOOST_TEST(item.exact_fault(run_proposal(item, proposal)) == "");
  }
}

// With the workspace that plans grant at most, layers of which an image's copies do not fit in it,
// and whose rows, of no multiple of 16 bytes, are not read as they lie.
BOOST_AUTO_TEST_CASE(chosen_by_estimate) {
  for (const char* line : {"mb2ic32id64ih64iw62oc32od64oh64ow62kd3kh3kw3pd1ph1pw1",
                           "mb1ic128ih512iw508oc128oh512ow508kh3kw3ph1pw1",
                           "mb1ic96id5ih240iw413oc96od5oh240ow413kd3kh3kw3pd2ph1pw1"})
    for (const ConvolutionPass pass : all_passes) {
      std::vector<EngineRefusal> refusals;
      const std::string tile =
          choose(problem_in(line, f16, KILN_TENSOR_NCHW, pass), known_architecture("h200"),
                 {.workspace = most_workspace}, refusals)
              .first()
              .kernel.tile;
      BOOST_TEST(tile.find(" at a time, for ") != std::string::npos, tile);
    }
}

BOOST_AUTO_TEST_SUITE_END()
