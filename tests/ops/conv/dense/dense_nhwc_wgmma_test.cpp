// The dense engine for channels-last tensors: every tile, tails in all dimensions, strides by
// tensor maps and by phases, the epilogue through shared memory.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "ops/conv/dense/dense_case.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(dense_nhwc_wgmma)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::dense_nhwc_wgmma);
constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};
constexpr Arithmetic tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};

ConvolutionProblem nhwc(const char* line, const Arithmetic& arithmetic = f16,
                        ConvolutionPass pass = ConvolutionPass::fprop,
                        kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, KILN_TENSOR_NHWC, pass, mode);
}

std::string reason(const ConvolutionProblem& problem) { return refusal_of(engine, problem); }

void check_tile(const DenseTile& tile, const OperationCase& item, const HostTensor& want) {
  const Proposal proposal =
      engine.propose(tile, std::get<ConvolutionProblem>(item.problem), device()->description());
  const std::string fault = difference(run_proposal(item, proposal), want);
  BOOST_TEST(fault.empty(), text_of(item.problem) << ", " << describe(tile) << ": " << fault);
}

// Checks one tile with pixels as operand A and one with filters, which take turns from call to
// call.
void check(const OperationCase& item, std::size_t turn) {
  const HostTensor want = item.expected();
  const std::vector<DenseTile> tiles = all_laid(false, std::get<ConvolutionProblem>(item.problem));
  constexpr std::size_t small[] = {6, 15, 4, 12, 2, 17};  // indices of small, quick tiles
  for (std::size_t i = 0; i < 2; ++i)
    check_tile(tiles[small[(2 * turn + i) % std::size(small)]], item, want);
}

// Checks some of the engine's tiles for the problem, which take turns from call to call.
void check_own(const OperationCase& item, std::size_t turn, std::size_t most = 2) {
  const auto answer = engine.candidates(item.problem, device()->description());
  const auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
  BOOST_TEST_REQUIRE((candidates != nullptr), text_of(item.problem));
  const HostTensor want = item.expected();
  for (std::size_t i = 0; i < std::min(most, candidates->size()); ++i) {
    const Candidate& candidate = (*candidates)[(turn * most + i) % candidates->size()];
    check_tile(tile_of(engine, candidate, item.problem), item, want);
  }
}

// Names the engine and grants all the workspace that it may need.
FinalizeOptions by_name() {
  return {.grant = {.only_engine = engine.name(), .workspace = most_workspace}};
}

}  // namespace

// Pixels, channels and rows that end within a tile, more tiles than blocks.
BOOST_AUTO_TEST_CASE(every_tile) {
  if (!has_warpgroups()) return;
  kiln_test::ShareOfCases share = share_of_cases();
  for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
    const ConvolutionProblem problem =
        nhwc("mb2ic72ih13iw11oc136kh1kw3pw1", pass == ConvolutionPass::fprop ? f16 : bf16, pass);
    const OperationCase item = integers_of(problem);
    const HostTensor want = item.expected();
    for (const DenseTile& tile : all_laid(false, problem))
      if (!tile.joined && share.takes(describe(tile), pass)) check_tile(tile, item, want);
  }
}

// Padding smaller than the filter, as large, larger, and on one side only; dilations, flipped
// filters, images of one pixel, filters of one tap, one row, one column.
BOOST_AUTO_TEST_CASE(edges) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic40ih9iw7oc24kh3ph1", "mb2ic48ih5iw11oc56kh3kw1",
                           "mb1ic72ih7iw9oc48kh5kw3ph2pw2", "mb20ic16ih1iw1oc40kh3ph1",
                           "mb1ic16ih5iw30oc24kh4kw3ph3pw1dh1dw2", "mb70ic136ih1iw1oc72kh1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      check(integers_of(nhwc(line, turn % 2 == 0 ? f16 : bf16, pass,
                             turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION)),
            turn);
      ++turn;
    }
}

// Forward by the maps' traversal strides; the data gradient by phases, some of which have no tap.
BOOST_AUTO_TEST_CASE(strides) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line : {"mb3ic40ih9iw8oc24kh3ph1sh2sw2", "mb2ic24ih9iw8oc40kh1sh2sw2",
                           "mb2ic16ih11iw12oc24kh5ph2sh2sw3", "mb1ic24ih8iw14oc16kh2sh2sw2",
                           "mb1ic16ih13iw9oc24kh3sh4sw1dh2"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item = integers_of(nhwc(line, turn % 2 == 0 ? bf16 : f16, pass));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check(item, turn++);
    }
}

// Data gradients whose filters meet every pixel once: all phases as rows of one product, by every
// tile. Results in lines of 128, 64 and 32 bytes, of which a phase has one or more; two to eight
// phases; the last tile ends beyond the rows of all phases.
BOOST_AUTO_TEST_CASE(joined_phases) {
  if (!has_warpgroups()) return;
  struct Case {
    const char* line;
    const Arithmetic& arithmetic;
  };
  kiln_test::ShareOfCases share = share_of_cases();
  std::size_t turn = 0;
  for (const Case& of : {Case{"mb3ic48ih12iw10oc72kh2sh2", f16},
                         {"mb2ic64ih8iw12oc24kh2kw4sh2sw4", bf16},
                         {"mb2ic32id6ih5iw7oc40kd6kh1kw1sd6sh1sw1", f16},
                         {"mb2ic96ih10iw9oc40kh2kw1sh2sw1", tf32},
                         {"mb2ic16ih8iw6oc136kh2sh2", tf32},
                         {"mb2ic8id3ih5iw70oc12kd3kh1kw1sd3sh1sw1", tf32}}) {
    OperationCase item = integers_of(nhwc(of.line, of.arithmetic, ConvolutionPass::dgrad));
    if (turn++ % 2 == 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    const HostTensor want = item.expected();
    int joined = 0;
    const auto answer = engine.candidates(item.problem, device()->description());
    for (const Candidate& candidate : std::get<std::vector<Candidate>>(answer)) {
      const DenseTile tile = tile_of(engine, candidate, item.problem);
      if (!tile.joined) continue;
      ++joined;
      if (share.takes(of.line, describe(tile))) check_tile(tile, item, want);
    }
    BOOST_TEST(joined > 0, of.line);
  }
  // Filters that overlap, whose phases have different taps, or that follow each other backwards.
  for (const ConvolutionProblem& problem :
       {nhwc("mb2ic32ih8oc40kh3ph1sh2", f16, ConvolutionPass::dgrad),
        nhwc("mb2ic32ih8oc40kh1sh2", f16, ConvolutionPass::dgrad),
        nhwc("mb2ic32ih8oc40kh2sh2", f16, ConvolutionPass::dgrad, KILN_CONVOLUTION)}) {
    const auto answer = engine.candidates(problem, device()->description());
    for (const Candidate& candidate : std::get<std::vector<Candidate>>(answer))
      BOOST_TEST(!tile_of(engine, candidate, problem).joined);
  }
}

// Outputs in another layout, which threads store: planes that allow 8, 4, 2 and 1 pixels at a time;
// phases; with a residual.
BOOST_AUTO_TEST_CASE(results_in_another_order) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  constexpr Arithmetic in_turns[] = {f16, tf32, bf16};
  for (const char* line :
       {"mb2ic40ih8iw9oc136kh3ph1", "mb3ic40ih10oc72kh3ph1", "mb2ic48ih6iw7oc40kh3ph1",
        "mb3ic40ih7oc72kh3ph1", "mb3ic40ih9iw8oc24kh3ph1sh2", "mb2ic16id3ih4iw5oc24kd3kh1kw1pd1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      ConvolutionProblem problem = nhwc(line, in_turns[turn % 3], pass);
      (pass == ConvolutionPass::fprop ? problem.y_strides : problem.x_strides) =
          dense_operand_strides(KILN_TENSOR_NCHW, problem.result_dims());
      OperationCase item = integers_of(problem);
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check_own(item, turn++);
    }
  for (const kilnTensorFormat_t z_layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
    ConvolutionProblem problem = fused_in("mb2ic24ih10oc72kh3ph1", f16, KILN_TENSOR_NHWC, z_layout);
    problem.y_strides = dense_operand_strides(KILN_TENSOR_NCHW, problem.y_dims());
    OperationCase item(problem);
    item.scalars = {.alpha = 2, .beta = -1};
    item.fill_integers(5, 2);
    check_own(item, turn++);
  }
}

// One dimension of space; padding after the source that differs from the padding before it, also
// negative.
BOOST_AUTO_TEST_CASE(lines_and_uneven_padding) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb3ic40iw37oc24kw3pw1", "mb2ic16iw40oc24kw4pw5sw2dw2", "mb2ic24ih9iw7oh11ow6oc16kh3kw3ph1",
        "mb2ic24ih9iw8oh4ow7oc40kh3kw2sh2sw1ph2pw0"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      check(integers_of(nhwc(line, turn % 2 == 0 ? f16 : bf16, pass)), turn);
      ++turn;
    }
}

// Taps, strides, dilation and phases also along the depth; filters of one plane, and of one column
// of planes.
BOOST_AUTO_TEST_CASE(three_dimensions) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic40id5ih4iw7oc72kd3kh3kw3pd1ph1pw1", "mb1ic16id6ih5iw9oc24kd3kh1kw2pd2ph0pw0dd1dh0dw0",
        "mb3ic72id3ih6iw5oc16kd1kh3kw3pd0ph1pw1", "mb1ic16id7ih6iw9oc24kd3kh3kw3pd1ph1pw1sd2sh2sw2",
        "mb2ic24id6ih4iw5od2oc40kd2kh1kw1pd1ph0pw0sd3sh1sw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item =
          integers_of(nhwc(line, turn % 2 == 0 ? bf16 : f16, pass,
                           turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check(item, turn++);
    }
}

// Lines of 128, 64 and 32 bytes of channels, tiles with as many rows as a group; strides, phases, a
// w with contiguous filters.
BOOST_AUTO_TEST_CASE(groups) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"g2mb2ic128ih9iw7oc64kh3ph1", "g3mb1ic96ih5iw9oc48kh3ph1", "g5mb2ic80ih4iw5oc80kh1",
        "g2mb3ic96ih6iw5oc128kh3ph1sh2", "g2mb1ic64id3ih4iw5oc128kd2kh3kw3pd1ph1pw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item =
          integers_of(nhwc(line, turn % 2 == 0 ? bf16 : f16, pass,
                           turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check_own(item, turn++);
    }
  OperationCase fused(
      fused_in("g3mb2ic48ih7iw9oc96kh3ph1", f16, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
  fused.scalars = {.alpha = 2, .beta = -1};
  fused.fill_integers(5, 2);
  check_own(fused, 0);
}

// A NaN in one group reaches only that group's outputs.
BOOST_AUTO_TEST_CASE(nan_in_a_group) {
  if (!has_warpgroups()) return;
  for (const char* line : {"g3mb1ic48ih5iw6oc48kh3ph1", "g2mb1ic64ih5iw6oc64kh3ph1"}) {
    OperationCase item = integers_of(nhwc(line), 5);
    item["x"].at(20) = std::nan("");
    item["x"].at(400) = std::numeric_limits<double>::infinity();
    check_integers(item, engine.name());
  }
}

// f32 in TF32; for the data gradient a first step transposes the filter.
BOOST_AUTO_TEST_CASE(tf32_any_tile) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const char* line :
       {"mb2ic36ih9iw7oc68kh3ph1", "mb2ic132ih13iw11oc100kh1kw3pw1", "mb2ic20ih9iw8oc40kh3ph1sh2",
        "mb1ic16ih5iw30oc24kh4kw3ph3pw1dh1dw2", "g2mb1ic64ih5iw9oc32kh3ph1",
        "mb1ic20id4ih5iw6oc24kd2kh3kw3pd1ph1pw1sd2sh1sw1", "mb3ic40iw37oc24kw1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item = integers_of(
          nhwc(line, tf32, pass, turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      if (turn % 2 == 1) {
        item.scalars = {.alpha = -2, .beta = 3};
        item.fill_integers(7, 2);
      }
      check_own(item, turn++, 3);
    }
  OperationCase fused(
      fused_in("mb2ic24ih14iw9oc40kh3ph1", tf32, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
  fused.scalars = {.alpha = 2, .beta = -1};
  fused.fill_integers(5, 2);
  for (turn = 0; turn < 4; ++turn) check_own(fused, turn, 3);
}

// TF32 elements are truncated to 11 bits, subnormal ones, too; infinities and NaN stay.
BOOST_AUTO_TEST_CASE(tf32_operands_are_cut) {
  if (!has_warpgroups()) return;
  for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
    OperationCase item(nhwc("mb2ic136ih7iw9oc72kh3ph1", tf32, pass));
    item.fill_uniform(3);
    const std::string fault = item.fault(item.run_plan(by_name()));
    BOOST_TEST(fault.empty(), fault);
  }
  OperationCase item = integers_of(nhwc("mb1ic16ih4iw4oc16kh1", tf32));
  for (double& value : item["x"].values) value = 0;
  for (double& value : item["w"].values) value = 1;
  const double ulp = 0x1p-149;
  // Channel 0 of the first pixels.
  item["x"].at(0) = 1 + 0x1p-11;   // differs from 1 in a bit that is truncated
  item["x"].at(1) = 1 + 0x1p-10;   // differs from 1 in the last bit that stays
  item["x"].at(2) = ulp * 0x1fff;  // subnormal: all bits are truncated
  item["x"].at(3) = ulp * 0x3fff;  // one bit stays
  item["x"].at(4) = std::numeric_limits<double>::infinity();
  item["x"].at(5) = std::nan("");
  item["x"].at(6) = std::numeric_limits<float>::max();  // must not become infinity
  const HostTensor got = item.run_plan(by_name());
  const auto first_of = [&](std::size_t pixel) { return got.at(pixel); };
  BOOST_TEST(first_of(0) == 1);
  BOOST_TEST(first_of(1) == 1 + 0x1p-10);
  BOOST_TEST(first_of(2) == 0);
  BOOST_TEST(first_of(3) == ulp * 0x2000);
  BOOST_TEST(std::isinf(first_of(4)));
  BOOST_TEST(std::isnan(first_of(5)));
  BOOST_TEST(std::isfinite(first_of(6)));
}

// alpha, beta, bias, activation; beta scales a residual or the previous output.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  std::size_t turn = 0;
  for (const Arithmetic& arithmetic : {f16, bf16}) {
    OperationCase fused(
        fused_in("mb2ic24ih14iw9oc40kh3ph1", arithmetic, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
    fused.scalars = {.alpha = 2, .beta = -1};
    fused.fill_integers(5, 2);
    check(fused, turn++);
    fused.scalars = {.alpha = 1, .beta = 0};
    check(fused, turn++);
    OperationCase accumulated(nhwc("mb2ic40ih14iw9oc24kh3ph1", arithmetic, ConvolutionPass::dgrad));
    accumulated.scalars = {.alpha = -2, .beta = 3};
    accumulated.fill_integers(7, 2);
    check(accumulated, turn++);
  }
}

// Sums so long that they are promoted more than once.
BOOST_AUTO_TEST_CASE(long_sums) {
  if (!has_warpgroups()) return;
  check(integers_of(nhwc("mb1ic2056ih4iw5oc24kh3ph1")), 0);
  check(integers_of(nhwc("mb1ic24ih4iw5oc6000kh3ph1", bf16, ConvolutionPass::dgrad)), 2);
}

// NaN and infinities reach the outputs that read them, and no others: channels, pixels and filters
// beyond the end of a tensor are read as zeros.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  if (!has_warpgroups()) return;
  OperationCase item = integers_of(nhwc("mb3ic16ih6iw9oc24kh3ph1"), 5);
  item["x"].at(20) = std::nan("");
  item["x"].at(800) = std::numeric_limits<double>::infinity();
  item["x"].at(item["x"].values.size() - 1) = -std::numeric_limits<double>::infinity();
  replace_zeros(item);
  check_integers(item, engine.name());
}

// Random numbers against sums in double precision.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, bf16})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      OperationCase item(nhwc("mb2ic136ih7iw9oc72kh3ph1", arithmetic, pass));
      item.fill_uniform(3);
      const std::string fault = test::check(item, engine.name());
      BOOST_TEST(fault.empty(), fault);
    }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  if (!has_warpgroups()) return;
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1")) == "");
  BOOST_TEST(reason(nhwc("mb4ic32ih29oc64kh3ph1", {KILN_DATA_FLOAT, KILN_MATH_DEFAULT})) ==
             "the data type is f32; this engine takes f16, bf16 and, in TF32, f32");
  BOOST_TEST(reason(nhwc("mb1ic1024ih7oc1024kh3ph1", tf32, ConvolutionPass::dgrad)) ==
             "the turned filter has 37748736 bytes; expected at most the largest workspace, "
             "16777216");
  BOOST_TEST(reason(problem_in("mb4ic32ih29oc64kh3ph1", f16, KILN_TENSOR_NCHW)) ==
             "the channels of x are not contiguous (stride 1), as channels-last layout has them");
  BOOST_TEST(reason(nhwc("mb4ic36ih29oc64kh3ph1")) ==
             "36 input channels; expected a multiple of 8");
  BOOST_TEST(reason(nhwc("g2mb4ic32ih29oc64kh3ph1")) == "");
  BOOST_TEST(reason(nhwc("g2mb4ic48ih29oc64kh3ph1")) ==
             "24 input channels a group; expected a multiple of 16, which are multiplied at once");
  BOOST_TEST(reason(nhwc("g2mb4ic64ih29oc48kh3ph1")) ==
             "24 output channels a group; expected a multiple of 16, so that a tile ends with a "
             "group");
  BOOST_TEST(reason(nhwc("mb1ic8ih300oc8kh3ph128dh127")) ==
             "the filter reaches over 256 positions; expected at most 255");
  BOOST_TEST(reason(nhwc("mb1ic8id20oc8kd3dd7")) == "");
  BOOST_TEST(reason(nhwc("mb1ic8id40oc8kd3dd15")) ==
             "pixels begin or end 32 positions from an edge of the source; expected at most 15");
  const auto answer =
      engine.candidates(nhwc("mb4ic32ih29oc64kh3ph1"), known_architecture("sm_100"));
  BOOST_TEST(std::get<Refusal>(answer).reason ==
             "sm_100 lacks the wgmma instructions, which sm_90a alone has");
}

BOOST_AUTO_TEST_SUITE_END()
