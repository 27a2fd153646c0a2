// Convolutions that are computed on copies of some of the channels at a time, because the workspace
// that is granted has no room for the copies of all images or of the filter, or for sums of several
// chunks.
#include <iterator>
#include <set>
#include <sstream>

#include "ops/conv/rewrite/rewrite_case.hpp"

BOOST_AUTO_TEST_SUITE(slices_of_channels)

namespace {

using namespace test;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT},
    bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}, tf32{KILN_DATA_FLOAT, KILN_MATH_TF32},
    f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};

struct Case {
  const char* line;
  const Arithmetic& arithmetic;
  kilnTensorFormat_t layout = KILN_TENSOR_NCHW;
};

// The tiles, a line each, of the proposals for slices of this variant, of every number of slices
// that some workspace leads to. Each is run and checked.
std::string check_slices(const OperationCase& item, RelayoutVariant variant, bool exact = true) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  std::set<std::string> seen;
  std::string tiles;
  for (variant.budget = 2048; variant.budget < most_workspace;
       variant.budget += variant.budget / 3) {
    const auto answer = engine_for(problem).propose(problem, chooser(), variant);
    if (std::holds_alternative<Refusal>(answer)) continue;
    const Proposal& proposal = std::get<RelayoutRewrite::Result>(answer).proposal;
    const std::string& tile = proposal.first().kernel.tile;
    if (tile.find(" channels of ") == std::string::npos) continue;
    BOOST_TEST(proposal.workspace <= variant.budget);
    if (!seen.insert(tile.substr(0, tile.find(" for "))).second) continue;
    tiles += tile + "\n";
    const HostTensor got = run_proposal(item, proposal);
    const std::string fault = exact ? item.exact_fault(got) : item.fault(got);
    BOOST_TEST(fault.empty(), text_of(item.problem) << ", " << tile << ", " << proposal.steps.size()
                                                    << " steps: " << fault);
  }
  return tiles;
}

constexpr RelayoutVariant stored{.budget = 0, .copy_results = false, .slices = true},
    dy_as_it_lies{.budget = 0, .copy_results = false, .copy_dy = false, .slices = true},
    sums{.budget = 0, .copy_results = true, .slices = true},
    copied{.budget = 0, .copy_results = false, .copy_dw = true, .slices = true};

}  // namespace

// Of input channels and of output channels, whichever tensor is the larger; strides, several
// dimensions, and a tensor whose channels are padded, which is never the one that is sliced.
BOOST_AUTO_TEST_CASE(layers) {
  if (!has_warpgroups()) return;
  const struct {
    Case layer;
    RelayoutVariant variant;
    const char* sliced;
  } all[] = {
      {{"mb2ic32ih9iw7oc24kh3ph1", f16}, stored, " channels of x "},
      {{"mb2ic64ih6iw5oc24kh3ph1", f16}, copied, " channels of x "},
      {{"mb2ic24ih5iw5oc64kh3ph1", bf16}, copied, " channels of dy "},
      {{"mb2ic16ih11iw9oc32kh3sh2ph1", bf16}, sums, " channels of "},
      {{"mb1ic48id3ih4iw5oc16kd3kh3kw3pd1ph1pw1", tf32}, stored, " channels of x "},
      {{"mb2ic48ih10iw9oc40kh1sh2", f16}, stored, " channels of "},
      {{"mb2ic64ih8iw8oc24kh3ph1", f16}, dy_as_it_lies, " channels of x "},
      {{"mb2ic32ih9iw7oc13kh3ph1", f16}, stored, " channels of x "},
      {{"mb2ic11ih9iw7oc32kh3ph1", f32}, sums, " channels of dy "},
      {{"mb2ic32ih9iw7oc13kh3ph1", f16, KILN_TENSOR_NHWC}, sums, " channels of x "},
  };
  std::size_t turn = 0;
  for (const auto& [layer, variant, sliced] : all) {
    OperationCase item =
        integers_of(problem_in(layer.line, layer.arithmetic, layer.layout, ConvolutionPass::wgrad));
    if (turn++ % 2 == 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    const std::string tiles = check_slices(item, variant);
    BOOST_TEST(tiles.find(sliced) != std::string::npos, text_of(item.problem) << ": " << tiles);
  }
}

// Forward and data gradients, whose filter is sliced with their results: also a filter that is
// turned (TF32), a stride, an input of padded channels, and a layout in which only these are
// copied.
BOOST_AUTO_TEST_CASE(results_of_gathers) {
  if (!has_warpgroups()) return;
  constexpr ConvolutionPass fprop = ConvolutionPass::fprop, dgrad = ConvolutionPass::dgrad;
  const struct {
    Case layer;
    ConvolutionPass pass;
  } all[] = {
      {{"mb2ic40ih4iw5oc64kh3ph1", f16}, fprop},
      {{"mb2ic64ih4iw5oc40kh3ph1", bf16}, dgrad},
      {{"mb2ic32ih5iw4oc48kh3ph1", tf32}, fprop},
      {{"mb2ic48ih5iw4oc32kh3ph1", tf32}, dgrad},
      {{"mb2ic64ih6iw7oc40kh3sh2ph1", f16}, dgrad},
      {{"mb2ic40id3ih3iw3oc64kd3kh3kw3pd1ph1pw1", bf16}, fprop},
      {{"mb2ic11ih4iw5oc64kh3ph1", f16}, fprop},
      {{"mb2ic11ih4iw5oc64kh5ph2", f16, KILN_TENSOR_NHWC}, fprop},
  };
  std::size_t turn = 0;
  for (const auto& [layer, pass] : all) {
    OperationCase item = integers_of(problem_in(layer.line, layer.arithmetic, layer.layout, pass));
    if (turn++ % 2 == 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    const std::string tiles = check_slices(item, stored);
    BOOST_TEST(
        tiles.find(pass == fprop ? " channels of y " : " channels of dx ") != std::string::npos,
        text_of(item.problem) << ": " << tiles);
  }
}

// Where neither the filter's copy nor that of all images fits: slices, each in parts of images,
// rows of all planes among them.
BOOST_AUTO_TEST_CASE(slices_in_chunks) {
  if (!has_warpgroups()) return;
  constexpr ConvolutionPass fprop = ConvolutionPass::fprop, dgrad = ConvolutionPass::dgrad;
  const struct {
    Case layer;
    ConvolutionPass pass;
    const char* part;
  } all[] = {
      {{"mb2ic24ih19iw7oc64kh3ph1", f16}, fprop, " at a time, "},
      {{"mb1ic64ih19iw7oc24kh3ph1", bf16}, dgrad, " at a time, "},
      {{"mb1ic64ih64iw7oc32kh3sh2ph1", f16}, dgrad, " at a time, "},
      {{"mb2ic16id3ih20iw7oc48kd3kh3kw3pd1ph1pw1", tf32}, fprop, " of all planes at a time, "},
      {{"mb1ic48id3ih20iw7oc16od3oh20ow7kd3kh3kw3pd2ph1pw1", tf32},
       dgrad,
       " of all planes at a time, "},
  };
  std::size_t turn = 0;
  for (const auto& [layer, pass, part] : all) {
    OperationCase item = integers_of(problem_in(layer.line, layer.arithmetic, layer.layout, pass));
    if (turn++ % 2 == 1) {
      item.scalars = {.alpha = -2, .beta = 3};
      item.fill_integers(7, 2);
    }
    const std::string tiles = check_slices(item, stored);
    bool found = false;
    std::istringstream lines(tiles);
    for (std::string line; std::getline(lines, line);)
      if (const std::size_t row = line.find(" row"); row != std::string::npos)
        found = found || (line.find(" channels of ") < row && line.find(part, row) != line.npos);
    BOOST_TEST(found, text_of(item.problem) << ": " << tiles);
  }
}

// Bias, activation and a residual, of which each slice has its own channels.
BOOST_AUTO_TEST_CASE(epilogue) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, tf32}) {
    OperationCase fused(
        fused_in("mb2ic40ih4iw5oc64kh3ph1", arithmetic, KILN_TENSOR_NCHW, KILN_TENSOR_NCHW));
    fused.scalars = {.alpha = 2, .beta = -1};
    fused.fill_integers(5, 2);
    BOOST_TEST(check_slices(fused, stored) != "");
  }
}

// Random numbers against sums in double precision.
BOOST_AUTO_TEST_CASE(random_numbers) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, tf32}) {
    OperationCase item(problem_in("mb3ic64ih9iw7oc24kh3ph1", arithmetic, KILN_TENSOR_NCHW,
                                  ConvolutionPass::wgrad));
    item.fill_uniform(3);
    BOOST_TEST(check_slices(item, stored, false) != "");
  }
}

// A dw that is copied in its own type, of all channels at once.
BOOST_AUTO_TEST_CASE(copied_results) {
  if (!has_warpgroups()) return;
  for (const Arithmetic& arithmetic : {f16, bf16}) {
    OperationCase item = integers_of(problem_in("mb2ic24ih6iw5oc40kh3ph1", arithmetic,
                                                KILN_TENSOR_NCHW, ConvolutionPass::wgrad));
    item.scalars = {.alpha = 2, .beta = -1};
    item.fill_integers(5, 2);
    const auto answer =
        gradients.propose(std::get<ConvolutionProblem>(item.problem), chooser(),
                          {.budget = most_workspace, .copy_results = false, .copy_dw = true});
    BOOST_REQUIRE(std::holds_alternative<RelayoutRewrite::Result>(answer));
    const Proposal& proposal = std::get<RelayoutRewrite::Result>(answer).proposal;
    BOOST_TEST(proposal.first().kernel.tile.find(" and 16-bit dw for ") != std::string::npos);
    BOOST_TEST(item.exact_fault(run_proposal(item, proposal)) == "");
  }
}

// With groups, whose channels no slice may divide, and of channels that no slice of whole 16 bytes
// divides.
BOOST_AUTO_TEST_CASE(refused) {
  for (const char* line : {"g2mb2ic64ih9iw7oc64kh3ph1", "mb2ic8ih9iw7oc8kh3ph1"}) {
    const ConvolutionProblem problem =
        problem_in(line, f16, KILN_TENSOR_NCHW, ConvolutionPass::wgrad);
    for (const bool of_x : {true, false}) BOOST_TEST(slices_of(problem, of_x).empty());
  }
}

// With the workspace that plans grant at most, a layer whose sums do not fit in it.
BOOST_AUTO_TEST_CASE(chosen_by_estimate) {
  std::vector<EngineRefusal> refusals;
  const std::string tile =
      choose(problem_in("mb8ic2048ih33iw33oc256oh33ow33kh3kw3ph12pw12dh11dw11", f16,
                        KILN_TENSOR_NCHW, ConvolutionPass::wgrad),
             known_architecture("h200"), {.workspace = most_workspace}, refusals)
          .first()
          .kernel.tile;
  BOOST_TEST(tile.find(" channels of x at a time, for ") != std::string::npos, tile);
}

BOOST_AUTO_TEST_SUITE_END()
