// Depthwise convolutions that make the moments of their result, or go on through a normalization's
// gradient, in the epilogue of depthwise_halo's tiles.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/direct/depthwise_halo_nhwc_fma.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/channels_last_case.hpp"
#include "ops/conv/written_results.hpp"

namespace {

using namespace test;
using Kind = EpilogueOperation::Kind;

const RecipeEngine halo_tiles(depthwise_halo_nhwc_fma);

ConvolutionProblem problem_with(const char* line, DataType type, ConvolutionPass pass,
                                const EpilogueOperation& operation, bool shortcut = false) {
  ConvolutionOperands o = describe_convolution(parse_convolution_line(line), type, KILN_TENSOR_NHWC,
                                               KILN_CROSS_CORRELATION);
  const bool forward = pass == ConvolutionPass::fprop;
  const Tensor& result = forward ? o.y : o.x;
  EpilogueOperation last = operation;
  if (last.kind == Kind::gradient) last.tensor = result;
  if (last.residual) last.residual = result;
  EpilogueList list;
  if (shortcut) list.push_back({.kind = Kind::residual, .tensor = result});
  list.push_back(last);
  return forward ? make_convolution(o.spec, o.x, o.w, o.y, list)
                 : make_convolution_transposed(o.spec, o.y, o.w, o.x, list);
}

OperationCase uniform_case(const ConvolutionProblem& problem, unsigned seed) {
  OperationCase item(problem);
  for (HostTensor& each : item.tensors) {
    if (each.operand.positive)
      each.fill_uniform(++seed, 0.5, 2);
    else
      each.fill_uniform(++seed, -1, 1);
  }
  return item;
}

// Every tile, by a few blocks that take several tiles in turn.
void check_tiles(const ConvolutionProblem& problem, unsigned seed, std::size_t every = 1) {
  OperationCase item = uniform_case(problem, seed);
  if (problem.epilogue.residual) item.scalars = {.alpha = 2, .beta = -1};
  const DeviceDescription on = device_of(3);
  BOOST_TEST(refusal_of(halo_tiles, problem) == "");
  const std::vector<DepthwiseHaloTile> tiles = halo_tiles.tiles(problem, on);
  BOOST_TEST_REQUIRE(!tiles.empty());
  for (std::size_t i = seed % every; i < tiles.size(); i += every) {
    const Proposal proposal = halo_tiles.propose(tiles[i], problem, on);
    const WrittenResults results = run_all(item, proposal);
    const std::string where = cat(text_of(problem), ", ", proposal.first().kernel.tile);
    const std::string fault = fault_of(item, results);
    BOOST_TEST(fault.empty(), where << ": " << fault);
    BOOST_TEST((run_all(item, proposal).bytes == results.bytes),
               where << ": other bits the next time");
  }
}

const EpilogueOperation moments{.kind = Kind::moments};
EpilogueOperation gradient_of(const Activation& activation, bool affine = true,
                              bool residual = false) {
  EpilogueOperation out{.kind = Kind::gradient, .activation = activation, .affine = affine};
  if (residual) out.residual.emplace();
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(depthwise_sums, *boost::unit_test::precondition(has_copy_engine))

// Pixels that end within a thread, threads without pixels, a partial tile of channels, strides.
BOOST_AUTO_TEST_CASE(moments_of_every_tile) {
  constexpr auto fprop = ConvolutionPass::fprop;
  const std::size_t every = turns(5, 1);
  check_tiles(problem_with("g72mb3ic72ih9iw11oc72kh3ph1", KILN_DATA_HALF, fprop, moments), 1,
              every);
  check_tiles(problem_with("g8mb5ic8ih15iw16oc8kh5ph2sh2sw2", KILN_DATA_BFLOAT16, fprop, moments),
              2, every);
  check_tiles(problem_with("g24mb2ic24ih7iw5oc24kh3ph1", KILN_DATA_FLOAT, fprop, moments), 3,
              every);
}

BOOST_AUTO_TEST_CASE(gradient_of_every_tile) {
  constexpr auto dgrad = ConvolutionPass::dgrad, fprop = ConvolutionPass::fprop;
  const std::size_t every = turns(5, 1);
  const Activation relu{KILN_ACTIVATION_RELU, 0}, none{KILN_ACTIVATION_IDENTITY, 0},
      relu6{KILN_ACTIVATION_CLIPPED_RELU, 0.5},
      silu = make_activation({KILN_ACTIVATION_SILU}),
      hard = make_activation({KILN_ACTIVATION_HARD_SWISH});
  check_tiles(problem_with("g72mb3ic72ih9iw11oc72kh3ph1", KILN_DATA_HALF, dgrad, gradient_of(relu)),
              1, every);
  check_tiles(problem_with("g16mb3ic16ih8iw9oc16kh5ph2", KILN_DATA_BFLOAT16, dgrad,
                           gradient_of(silu, true, true), true),
              2, every);
  check_tiles(problem_with("g8mb2ic8ih15iw6oc8kh3ph1", KILN_DATA_HALF, dgrad,
                           gradient_of(none, false, true), true),
              3, every);
  check_tiles(
      problem_with("g40mb2ic40ih8iw8oc40kh3ph1", KILN_DATA_HALF, fprop, gradient_of(relu6, false)),
      4, every);
  check_tiles(problem_with("g8mb2ic8ih6iw6oc8kh3ph1", KILN_DATA_HALF, dgrad, gradient_of(hard)), 5,
              every);
}

// Blocks that have no tile, and channels far from 0 relative to their deviations.
BOOST_AUTO_TEST_CASE(means_of_many_deviations) {
  const ConvolutionProblem problem =
      problem_with("g16mb2ic16ih6iw5oc16kh1", KILN_DATA_FLOAT, ConvolutionPass::fprop, moments);
  OperationCase item = uniform_case(problem, 1);
  HostTensor& x = item["x"];
  for (std::int64_t i = 0; i < x.operand.count(); ++i) x.at(i) = 1e4 + x.at(i);
  x.at(3) = std::numeric_limits<double>::infinity();  // of channel 0
  for (std::int64_t c = 0; c < 16; ++c) item["w"].at(c) = 1;
  x.read(x.bytes());
  const DeviceDescription on = device_of(50);
  const WrittenResults results =
      run_all(item, halo_tiles.propose(halo_tiles.tiles(problem, on)[0], problem, on));
  BOOST_TEST(fault_of(item, results) == "");
  BOOST_TEST(std::isnan(results["moments"].at(16)));
  BOOST_TEST(results["moments"].at(2 * 16 + 1) < 60);
}

BOOST_AUTO_TEST_CASE(refusals) {
  const Activation relu{KILN_ACTIVATION_RELU, 0};
  BOOST_TEST(refusal_of(halo_tiles, problem_with("g8mb0ic8ih6oc8kh3ph1", KILN_DATA_HALF,
                                                 ConvolutionPass::fprop, moments)) ==
             "the sums of an empty batch");
  BOOST_TEST(refusal_of(halo_tiles, problem_with("g8mb1ic8ih6oc8kh3ph1", KILN_DATA_FLOAT,
                                                 ConvolutionPass::dgrad, gradient_of(relu))) ==
             "a normalization's gradient of f32; expected tensors of 16 bits");
  ConvolutionProblem other = problem_with("g8mb2ic8ih6iw4oc8kh3ph1", KILN_DATA_HALF,
                                          ConvolutionPass::dgrad, gradient_of(relu));
  other.norm_x_strides = dense_operand_strides(KILN_TENSOR_NCHW, {2, 8, 1, 6, 4});
  BOOST_TEST(refusal_of(halo_tiles, other) ==
             "a normalization's tensors with other strides than the result");
}

BOOST_AUTO_TEST_SUITE_END()
