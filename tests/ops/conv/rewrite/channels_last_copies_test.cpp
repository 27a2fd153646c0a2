// Channels-first convolutions that are computed on channels-last copies: planes with any alignment,
// chunks of images, pixels that a stride skips, filters in either layout.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(channels_last_copies)

namespace {

using namespace test;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT},
    bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}, tf32{KILN_DATA_FLOAT, KILN_MATH_TF32},
    f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
constexpr Arithmetic in_turns[] = {f16, tf32, bf16, f32};
ConvolutionProblem nchw(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop) {
  return problem_in(line, arithmetic, KILN_TENSOR_NCHW, pass);
}

// Checks all passes. Every second result is scaled and added to its previous content.
void check_all(std::initializer_list<Layer> layers) {
  std::size_t turn = 0;
  for (const Layer& layer : layers)
    for (const ConvolutionPass pass : all_passes) {
      OperationCase item =
          integers_of(nchw(layer.line, in_turns[turn % std::size(in_turns)], pass));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check_copies(item, layer.budget);
      ++turn;
    }
}

}  // namespace

// Odd planes such as 7 x 7 and 13 x 13, of which only every eighth begins at a multiple of 16
// bytes; channels and pixels that end within a tile of copies; last chunks with fewer images.
BOOST_AUTO_TEST_CASE(planes_and_chunks) {
  if (!has_warpgroups()) return;
  check_all({{"mb5ic72ih7oc136kh3ph1", 460 << 10},
             {"mb3ic40ih13oc24kh3ph1", 100 << 10},
             {"mb7ic64ih14oc64kh1", 400 << 10},
             {"mb2ic16ih16oc16kh3ph1", std::size_t{16} << 20},
             {"mb5ic72ih8oc136kh3ph1", 460 << 10}});
}

BOOST_AUTO_TEST_CASE(lines_and_volumes) {
  if (!has_warpgroups()) return;
  check_all({{"mb4ic48iw101oc80kw5pw2", 140 << 10},
             {"mb2ic16id5ih6iw7oc24kd3kh3kw3pd1ph1pw1", 90 << 10}});
}

// If the filter has one tap, pixels that the stride skips are not copied; otherwise all are.
BOOST_AUTO_TEST_CASE(strides_and_dilation) {
  if (!has_warpgroups()) return;
  check_all({{"mb3ic72ih14oc40kh1sh2", 90 << 10},
             {"mb3ic32ih9iw16oc40kh1sh3sw1", 90 << 10},
             {"mb2ic16id5ih6iw7oc24kd1kh1kw1sd2sh2sw2", 50 << 10},
             {"mb3ic32ih15oc40kh3sh2ph1", 140 << 10},
             {"mb3ic32ih15oc40kh3ph2dh1", 190 << 10},
             {"mb3ic32ih15oc40kh1ph1sh2", 140 << 10}});
}

BOOST_AUTO_TEST_CASE(groups) {
  if (!has_warpgroups()) return;
  check_all({{"g2mb3ic64ih9oc128kh3ph1", 500 << 10}, {"g24mb3ic24ih9oc24kh3ph1", 30 << 10}});
}

// Channels that are no multiple of 16 bytes, such as those of images.
BOOST_AUTO_TEST_CASE(few_channels) {
  if (!has_warpgroups()) return;
  check_all({{"mb3ic3ih25oc32kh3ph1sh2", 100 << 10}, {"mb2ic24ih12oc5kh1", 40 << 10}});
}

// Bias, activation, and a separate residual or the output's previous content.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : in_turns)
    for (const char* line : {"mb5ic24ih7oc72kh3ph1", "mb3ic24ih10oc40kh1sh2"}) {
      OperationCase fused(fused_in(line, arithmetic, KILN_TENSOR_NCHW, KILN_TENSOR_NCHW));
      fused.scalars = {.alpha = 2, .beta = -1};
      fused.fill_integers(5, 2);
      check_copies(fused, 200 << 10);
      fused.scalars = {.alpha = 1, .beta = 0};
      check_copies(fused, 200 << 10);
    }
}

// NaN and infinities reach the outputs that read them, and no others.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, tf32}) {
    OperationCase item = integers_of(nchw("mb3ic24ih9oc24kh3ph1", arithmetic), 5);
    item["x"].at(20) = std::nan("");
    item["x"].at(800) = std::numeric_limits<double>::infinity();
    item["x"].at(item["x"].values.size() - 1) = -std::numeric_limits<double>::infinity();
    replace_zeros(item);
    check_copies(item, 60 << 10);
  }
}

// Random numbers against sums in double precision. Sums of filter gradients have several chunks.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : in_turns)
    for (const ConvolutionPass pass : all_passes) {
      OperationCase item(nchw("mb5ic40ih11oc72kh3ph1", arithmetic, pass));
      item.fill_uniform(3);
      check_copies(item, 400 << 10, false);
    }
}

// The workspace that is granted decides: none, too little, some, and the most that is used.
BOOST_AUTO_TEST_CASE(workspace) {
  if (!has_warpgroups()) return;
  const ConvolutionProblem problem = nchw("mb64ic64ih56oc64kh3ph1");
  const auto needed = [&](std::size_t granted) {
    Grant grant{.only_engine = gathers.name(), .workspace = granted};
    std::vector<EngineRefusal> refusals;
    return choose(problem, known_architecture("h200"), grant, refusals).workspace;
  };
  static constexpr std::size_t least = 3284992;
  BOOST_CHECK_EXCEPTION(needed(0), Error, [](const Error& error) {
    return std::string(error.what())
               .find(cat("a workspace of 0 bytes; expected at least ", least)) != std::string::npos;
  });
  BOOST_CHECK_THROW(needed(least - 1), Error);
  BOOST_TEST(needed(5000000) == least);
  BOOST_TEST(needed(most_workspace) == 12918784u);
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  const auto reason = [](const ConvolutionProblem& problem) {
    return refusal_of(engine_for(problem), problem);
  };
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh3ph1")) == "");
  BOOST_TEST(reason(nchw("mb4ic32ih28oc64kh3ph1", {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT})) ==
             "the data type is f64; this engine takes f16, bf16 and f32");
  BOOST_TEST(reason(problem_in("mb4ic32ih28oc64kh3ph1", f16, KILN_TENSOR_NHWC)) ==
             "the channels of x are contiguous already, and none are to be padded to a multiple of "
             "16 bytes");
  BOOST_TEST(reason(nchw("mb4ic1ih28oc6kh3ph1")) ==
             "x has one channel, so channels-last layout would be the same as the layout it has");
  BOOST_TEST(reason(nchw("mb4ic6ih28oc1kh3ph1", f16, ConvolutionPass::dgrad)) ==
             "dy has one channel, so channels-last layout would be the same as the layout it has");
  BOOST_TEST(reason(nchw("mb4ic1ih28oc6kh3ph1", f16, ConvolutionPass::wgrad)) ==
             "x has one channel, so channels-last layout would be the same as the layout it has");
  BOOST_TEST(reason(nchw("mb1ic512ih224oc64kh1", f16, ConvolutionPass::wgrad)) == "");
  BOOST_TEST(reason(nchw("mb1ic1280ih8oc1280kh3ph1", tf32)) == "");  // in slices
  BOOST_TEST(reason(nchw("g2mb1ic2560ih8oc2560kh3ph1", tf32)) ==
             "what is copied of a filter and of 1 row of an image has 118210560 bytes; expected at "
             "most the workspace, 16777216");
  BOOST_TEST(reason(nchw("mb1ic1024id3ih1iw9216oc24od1oh1ow9216kd3kh1kw1")) ==
             "what is copied of a filter and of one image has 56770560 bytes; expected at most the "
             "workspace, 16777216, because the image cannot be cut: an image has one row");
  ConvolutionProblem apart = nchw("mb4ic32ih28oc64kh3ph1");
  apart.x_strides[4] = 2;
  BOOST_TEST(
      reason(apart) ==
      "the width stride of x is 2; expected 1, as channels-first layout without gaps has it");
  apart = nchw("mb4ic32ih28oc64kh3ph1");
  apart.alignment = 4;
  BOOST_TEST(reason(apart) == "the alignment is 4 bytes; expected 16, in which copies are made");
}

BOOST_AUTO_TEST_SUITE_END()
