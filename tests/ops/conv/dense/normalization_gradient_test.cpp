// Convolutions whose epilogue takes the gradient of an activation behind a normalization: in the
// epilogue of dense_wgmma's tiles, and by a pass over the result, which any other convolution has.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/choice.hpp"
#include "ops/conv/dense/dense_case.hpp"
#include "ops/conv/tensor_core_case.hpp"
#include "ops/conv/written_results.hpp"
#include "problem/result_pass.hpp"

BOOST_AUTO_TEST_SUITE(normalization_gradient)

namespace {

using namespace test;
using Kind = EpilogueOperation::Kind;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT},
    bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}, f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
    f64{KILN_DATA_DOUBLE, KILN_MATH_DEFAULT};

struct Asked {
  const char* line;
  Arithmetic arithmetic;
  kilnTensorFormat_t layout;
  ConvolutionPass pass = ConvolutionPass::dgrad;
  Activation activation{KILN_ACTIVATION_RELU, 0};
  bool affine = true;
  bool residual = false;  // the normalization's
  bool shortcut = false;  // a residual before the gradient
};

ConvolutionProblem problem_of(const Asked& asked) {
  ConvolutionOperands o =
      describe_convolution(parse_convolution_line(asked.line), asked.arithmetic.type, asked.layout,
                           KILN_CROSS_CORRELATION);
  o.spec.math = asked.arithmetic.math;
  const bool forward = asked.pass == ConvolutionPass::fprop;
  const Tensor& result = forward ? o.y : o.x;
  EpilogueOperation gradient{.kind = Kind::gradient,
                             .tensor = result,
                             .activation = asked.activation,
                             .affine = asked.affine};
  if (asked.residual) gradient.residual = result;
  EpilogueList list;
  if (asked.shortcut) list.push_back({.kind = Kind::residual, .tensor = result});
  list.push_back(gradient);
  return forward ? make_convolution(o.spec, o.x, o.w, o.y, list)
                 : make_convolution_transposed(o.spec, o.y, o.w, o.x, list);
}

const RecipeEngine dense(::kiln::dense_nhwc_wgmma);

// The result by the plain tile and then a pass over it.
HostTensor by_plain_tile(const OperationCase& item, const DenseTile& tile,
                         const DeviceDescription& on) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  ConvolutionProblem without = problem;
  without.epilogue.gradient.reset();
  OperationCase plain(without), pass(gradient_of_result(problem));
  plain.scalars = item.scalars;
  const auto take = [&](HostTensor& tensor, const std::string& name) {
    for (const HostTensor& same : item.tensors)
      if (same.operand.name == name) tensor.values = same.values;
  };
  for (HostTensor& tensor : plain.tensors) take(tensor, tensor.operand.name);
  for (HostTensor& tensor : pass.tensors) take(tensor, cat("norm_", tensor.operand.name));
  pass["dy"].values = run_proposal(plain, dense.propose(tile, without, on)).values;
  return run_all(pass, FinalizeOptions{}).last();
}

// Checks a tile's results, the stored one bit by bit against the plain tile's.
void check_tile(const OperationCase& item, const DenseTile& tile, const DeviceDescription& on) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  const Proposal proposal = dense.propose(tile, problem, on);
  const WrittenResults results = run_all(item, proposal);
  const std::string where = cat(text_of(problem), ", ", describe(tile));
  const std::string fault = fault_of(item, results);
  BOOST_TEST(fault.empty(), where << ": " << fault);
  BOOST_TEST((run_all(item, proposal).bytes == results.bytes),
             where << ": other bits the next time");
  if (turns(0, 1) == 0) return;  // one kernel a tile in the quick tier
  const std::string apart = difference(results.last(), by_plain_tile(item, tile, on));
  BOOST_TEST(apart.empty(), where << ", unlike a pass over the plain tile's: " << apart);
}

}  // namespace

// Pixels, and rows, that end within a tile; several tiles of a block, several blocks of the same
// rows, as many blocks as there are tiles; one to three further steps of the ring.
BOOST_AUTO_TEST_CASE(in_the_epilogue_of_every_tile) {
  if (!has_warpgroups()) return;
  constexpr auto nhwc = KILN_TENSOR_NHWC;
  constexpr auto fprop = ConvolutionPass::fprop, dgrad = ConvolutionPass::dgrad;
  const Activation relu{KILN_ACTIVATION_RELU, 0}, leaky{KILN_ACTIVATION_LEAKY_RELU, 0.25},
      clip{KILN_ACTIVATION_CLIP, -0.5, 0.5}, none{KILN_ACTIVATION_IDENTITY, 0};
  struct Case {
    Asked asked;
    int blocks;
  };
  kiln_test::ShareOfCases share = share_of_cases(3);
  unsigned seed = 1;
  for (const Case& of :
       {Case{{"mb5ic264ih13iw11oc64kh1", f16, nhwc, dgrad, relu, true, false, true}, 6},
        {{"mb3ic72ih9iw7oc128kh3ph1", bf16, nhwc, dgrad, relu, true, true, true}, 4},
        {{"mb3ic64ih9iw10oc136kh1", f16, nhwc, fprop, leaky, false, true}, 3},
        {{"g2mb2ic128ih9iw10oc128kh1", f16, nhwc, dgrad, clip}, 3},
        {{"mb2ic64id3ih5iw6oc64kd2kh1kw1", f16, nhwc, dgrad, none}, 200}}) {
    const ConvolutionProblem problem = problem_of(of.asked);
    const DeviceDescription on = device_of(of.blocks);
    const auto answer = dense.candidates(problem, on);
    const auto* const candidates = std::get_if<std::vector<Candidate>>(&answer);
    BOOST_TEST_REQUIRE((candidates != nullptr), text_of(problem)
                                                    << ": " << refusal_of(dense, problem));
    for (const Candidate& candidate : *candidates) {
      const DenseTile tile = tile_of(dense, candidate, problem, on);
      BOOST_TEST(candidate.workspace > 0);
      BOOST_TEST(candidate.workspace <= 600 * 1024);
      ++seed;
      if (!share.takes(tile.rows(), tile.consumers, of.asked.arithmetic.type)) continue;
      const Scalars scalars = of.asked.shortcut ? Scalars{.alpha = -2, .beta = 0.5} : Scalars{};
      check_tile(uniform(problem, seed, scalars), tile, on);
    }
  }
  // beta scales what dx held.
  const Asked plain{"mb3ic64ih9iw7oc64kh1", f16, nhwc};
  if (share.takes("in place"))
    check_tile(uniform(problem_of(plain), 7, {.alpha = 1, .beta = 2}),
               all_laid(false, problem_of(plain))[2], device_of(3));
}

// Every pass, type and layout, activations with and without parameters, with and without workspace.
BOOST_AUTO_TEST_CASE(by_a_pass_over_the_result) {
  constexpr auto nchw = KILN_TENSOR_NCHW, nhwc = KILN_TENSOR_NHWC;
  constexpr auto fprop = ConvolutionPass::fprop, dgrad = ConvolutionPass::dgrad;
  const Activation silu{KILN_ACTIVATION_SILU, 0}, tanh{KILN_ACTIVATION_TANH, 0},
      none{KILN_ACTIVATION_IDENTITY, 0}, relu{KILN_ACTIVATION_RELU, 0},
      clipped{KILN_ACTIVATION_CLIPPED_RELU, 0.75};
  kiln_test::ShareOfCases share = share_of_cases();
  for (const Asked& of :
       {Asked{"mb4ic5ih7iw6oc6kh3ph1", f32, nchw},
        {"mb3ic8ih7iw6oc12kh3ph1sh2sw2", f16, nhwc, dgrad, relu, true, false, true},
        {"g4mb2ic4ih9iw8oc4kh3ph1", bf16, nhwc, dgrad, silu, false, true},
        {"mb2ic3iw40oc5kw3", f64, nchw, fprop, tanh, true, true, true},
        {"mb2ic4id3ih5iw4oc3kd2kh1", f32, nhwc, dgrad, none, true, true},
        {"mb3ic7ih6oc7kh1", f16, nchw, dgrad, clipped},
        {"mb0ic4ih3iw3oc3kh1", f32, nhwc}})
    for (const std::size_t workspace : {std::size_t{0}, most_workspace}) {
      if (!share.takes(of.line, workspace)) continue;
      const ConvolutionProblem problem = problem_of(of);
      const Scalars scalars = of.shortcut ? Scalars{.alpha = -2, .beta = 0.5} : Scalars{};
      const OperationCase item = uniform(problem, 5, scalars);
      const FinalizeOptions options{
          .grant = {.only_engine = "gradient_pass", .workspace = workspace}};
      const WrittenResults results = run_all(item, options);
      BOOST_TEST(fault_of(item, results) == "");
      BOOST_TEST((run_all(item, options).bytes == results.bytes), "other bits the next time");
      if (problem.batch == 0)
        for (const double sum : results["norm_dscale"].values) BOOST_TEST(sum == 0);
    }
}

// relu stops what its argument is not above 0 for, whatever it is, and lets everything pass where
// its argument is no number.
BOOST_AUTO_TEST_CASE(what_is_no_number) {
  const double inf = std::numeric_limits<double>::infinity();
  OperationCase item(problem_of({"mb1ic2iw4oc1kw1", f32, KILN_TENSOR_NCHW}));
  item["w"].values = {1, 1};
  item["dy"].values = {3, inf, std::nan(""), 5};
  // p = 2 (x - 1) - 4: of channel 0 -6, -4, 0 and NaN, of channel 1 2, -6, -4 and 0.
  item["norm_x"].values = {0, 1, 3, std::nan(""), 4, 0, 1, 3};
  item["norm_scale"].values = {4, 4};
  item["norm_bias"].values = {-4, -4};
  item["norm_mean"].values = {1, 1};
  item["norm_deviation"].values = {0.5, 0.5};
  const WrittenResults results = run_all(item, {.grant = {.only_engine = "gradient_pass"}});
  BOOST_TEST(fault_of(item, results) == "");
  BOOST_TEST(results.last().values == (std::vector<double>{0, 0, 0, 5, 3, 0, 0, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(results["norm_dbias"].values == (std::vector<double>{5, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(std::isnan(results["norm_dscale"].at(0)));
  BOOST_TEST(results["norm_dscale"].at(1) == 3 * 3 * 0.5);
}

// Tensors with layouts of their own.
BOOST_AUTO_TEST_CASE(any_strides) {
  const ConvolutionOperands o =
      describe_convolution(parse_convolution_line("mb2ic6ih5iw4oc3kh3ph1"), KILN_DATA_HALF,
                           KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
  Tensor x = o.x, residual = o.x;
  x.strides = dense_strides(KILN_TENSOR_NCHW, 4, x.dims);
  residual.strides = {1000, 1, 7, 60};
  EpilogueOperation gradient{
      .kind = Kind::gradient, .tensor = x, .activation = {KILN_ACTIVATION_RELU, 0}};
  gradient.residual = residual;
  const OperationCase item =
      uniform(make_convolution_transposed(o.spec, o.y, o.w, o.x, {gradient}), 9);
  BOOST_TEST(fault_of(item, run_all(item, FinalizeOptions{})) == "");
}

// ResNet-50's layers of one tap: with workspace the epilogue takes the gradient; without, of f32,
// of strided gradients and of activations of many instructions, a pass does. The plan says which.
BOOST_AUTO_TEST_CASE(the_faster_way_is_chosen) {
  const DeviceDescription h100 = known_architecture("h100");
  const auto chosen = [&](const Asked& asked, std::size_t workspace) {
    std::vector<EngineRefusal> refusals;
    const Proposal proposal =
        choose(problem_of(asked), h100, Grant{.workspace = workspace}, refusals);
    BOOST_TEST(proposal.workspace <= workspace);
    return cat(proposal.first().kernel.engine, " ", proposal.first().kernel.tile);
  };
  for (const char* line : {"mb128ic64ih56oc256kh1", "mb128ic256ih56oc64kh1",
                           "mb128ic512ih28oc128kh1", "mb128ic2048ih7oc512kh1"}) {
    Asked asked{line, f16, KILN_TENSOR_NHWC};
    const std::string with = chosen(asked, most_workspace), without = chosen(asked, 0);
    BOOST_TEST(with.starts_with("dense_nhwc_wgmma "), with);
    BOOST_TEST(with.ends_with(", normalization's gradient in the epilogue"), with);
    BOOST_TEST(without.starts_with("gradient_pass dense_nhwc_wgmma "), without);
    BOOST_TEST(
        without.find("; normalization's gradient by a pass over the result") != std::string::npos,
        without);
    asked.activation = {KILN_ACTIVATION_SILU, 0};
    BOOST_TEST(chosen(asked, most_workspace).starts_with("gradient_pass "));
  }
  for (const Asked& asked : {Asked{"mb128ic64ih56oc64kh1", f32, KILN_TENSOR_NHWC},
                             {"mb128ic64ih56oc64kh1sh2", f16, KILN_TENSOR_NHWC},
                             {"mb128ic64ih56oc64kh1", f16, KILN_TENSOR_NCHW}})
    BOOST_TEST(chosen(asked, most_workspace).starts_with("gradient_pass "));
}

BOOST_AUTO_TEST_SUITE_END()
