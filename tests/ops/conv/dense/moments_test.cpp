// Convolutions that make the moments of their result: in the epilogue of dense_wgmma's tiles, and
// by a pass over the result, which any other convolution has.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <span>

#include "engines/choice.hpp"
#include "ops/conv/dense/dense_case.hpp"
#include "ops/conv/tensor_core_case.hpp"
#include "ops/conv/written_results.hpp"

BOOST_AUTO_TEST_SUITE(moments)

namespace {

using namespace test;

constexpr Arithmetic f16{KILN_DATA_HALF, KILN_MATH_DEFAULT};
constexpr Arithmetic bf16{KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT};
constexpr Arithmetic tf32{KILN_DATA_FLOAT, KILN_MATH_TF32};

const RecipeEngine dense(::kiln::dense_nhwc_wgmma);

ConvolutionProblem with_moments(ConvolutionProblem problem) {
  problem.epilogue.moments = true;
  return problem;
}

// Checks a tile's result bit by bit against the plain tile's, and the moments of it.
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
  ConvolutionProblem without = problem;
  without.epilogue.moments = false;
  OperationCase plain(without);
  plain.scalars = item.scalars;
  for (HostTensor& tensor : plain.tensors)
    for (const HostTensor& same : item.tensors)
      if (std::string_view(same.operand.name) == tensor.operand.name) tensor = same;
  const std::string apart =
      difference(results.last(), run_proposal(plain, dense.propose(tile, without, on)));
  BOOST_TEST(apart.empty(), where << ", unlike without moments: " << apart);
}

}  // namespace

// Pixels, and rows, that end within a tile; several tiles of a block, several blocks of the same
// rows, as many blocks as there are tiles; a residual, which is loaded into the slab.
BOOST_AUTO_TEST_CASE(in_the_epilogue_of_every_tile) {
  if (!has_warpgroups()) return;
  struct Case {
    const char* line;
    const Arithmetic& arithmetic;
    int blocks;
  };
  kiln_test::ShareOfCases share = share_of_cases(4);
  unsigned seed = 1;
  for (const Case& of : {Case{"mb5ic40ih13iw11oc264kh1", f16, 6},
                         {"mb3ic24ih9iw7oc72kh3ph1", bf16, 4},
                         {"mb2ic36ih13iw11oc136kh1kw3pw1sh2", tf32, 5},
                         {"g2mb2ic32ih9iw10oc256kh1", f16, 3},
                         {"mb2ic16id3ih5iw6oc64kd2kh1kw1", f16, 200}}) {
    const ConvolutionProblem problem =
        with_moments(problem_in(of.line, of.arithmetic, KILN_TENSOR_NHWC));
    const DeviceDescription on = device_of(of.blocks);
    const auto answer = dense.candidates(problem, on);
    const auto* const candidates = std::get_if<std::vector<Candidate>>(&answer);
    BOOST_TEST_REQUIRE((candidates != nullptr), text_of(problem));
    for (const Candidate& candidate : *candidates) {
      const DenseTile tile = tile_of(dense, candidate, problem, on);
      BOOST_TEST(candidate.workspace > 0);
      BOOST_TEST(candidate.workspace <= 600 * 1024);
      ++seed;
      if (!share.takes(tile.pixels_left, tile.rows(), tile.consumers, of.arithmetic.type)) continue;
      const Scalars scalars = seed % 3 == 0 ? Scalars{.alpha = -2, .beta = 3} : Scalars{};
      check_tile(uniform(problem, seed, scalars), tile, on);
    }
  }
  // A bias, a residual of its own and an activation.
  ConvolutionProblem fused =
      with_moments(fused_in("mb3ic40ih9iw7oc72kh1", f16, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
  for (const std::size_t tile : {std::size_t{6}, std::size_t{15}})
    if (share.takes("fused", tile < 7))
      check_tile(uniform(fused, 7, {.alpha = 1, .beta = 0.5}), all_laid(false, fused)[tile],
                 device_of(3));
}

// Far from 0 relative to its deviations, a channel's variance is lost to sums of squares. A
// constant channel has none at all.
BOOST_AUTO_TEST_CASE(means_of_many_deviations_and_constant_channels) {
  if (!has_warpgroups()) return;
  const ConvolutionOperands o =
      describe_convolution(parse_convolution_line("mb7ic32ih9oc64kh1"), KILN_DATA_FLOAT,
                           KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
  Tensor bias = o.y;
  bias.dims = {1, 64, 1, 1};
  ConvolutionProblem problem = with_moments(
      make_convolution(o.spec, o.x, o.w, o.y, bias_activation_epilogue(nullptr, &bias, {})));
  problem.math = KILN_MATH_TF32;
  OperationCase item = uniform(problem, 3);
  for (std::int64_t k = 0; k < 64; ++k) {
    item["bias"].at(k) = k == 5 ? 0.1f : 1e4;
    for (std::int64_t c = 0; c < 32 && k == 5; ++c) item["w"].at(k * 32 + c) = 0;
  }
  item["bias"].at(9) = std::numeric_limits<double>::infinity();
  item["bias"].at(10) = std::nan("");
  constexpr std::size_t tiles[] = {6, 12};  // with pixels as operand A, with filters
  for (const std::size_t tile : std::span(tiles).first(static_cast<std::size_t>(turns(1, 2)))) {
    const WrittenResults results =
        run_all(item, dense.propose(all_laid(false, problem)[tile], problem, device_of(4)));
    BOOST_TEST(fault_of(item, results) == "");
    BOOST_TEST(results["moments"].at(64 + 5) == static_cast<double>(0.1f));
    BOOST_TEST(results["moments"].at(128 + 5) == 0);
    for (const std::int64_t k : {9, 10})
      for (const std::int64_t which : {64, 128})
        BOOST_TEST(std::isnan(results["moments"].at(which + k)), "channel " << k);
    BOOST_TEST(std::isfinite(results["moments"].at(128 + 11)));
  }
}

// Every pass, type and layout that the epilogue does not serve: with and without workspace.
BOOST_AUTO_TEST_CASE(by_a_pass_over_the_result) {
  struct Case {
    const char* line;
    Arithmetic arithmetic;
    kilnTensorFormat_t layout;
    ConvolutionPass pass;
  };
  const Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT}, f64{KILN_DATA_DOUBLE, f32.math};
  kiln_test::ShareOfCases share = share_of_cases();
  for (const Case& of :
       {Case{"mb4ic5ih7iw6oc6kh3ph1", f32, KILN_TENSOR_NCHW, ConvolutionPass::fprop},
        {"mb3ic8ih7iw6oc12kh3ph1sh2sw2", f16, KILN_TENSOR_NHWC, ConvolutionPass::dgrad},
        {"g4mb2ic4ih9iw8oc4kh3ph1", bf16, KILN_TENSOR_NHWC, ConvolutionPass::fprop},
        {"mb2ic3iw40oc5kw3", f64, KILN_TENSOR_NCHW, ConvolutionPass::dgrad},
        {"mb1ic4ih1iw1oc3kh1", f32, KILN_TENSOR_NHWC, ConvolutionPass::fprop},
        {"mb0ic4ih3iw3oc3kh1", f32, KILN_TENSOR_NHWC, ConvolutionPass::fprop}})
    for (const std::size_t workspace : {std::size_t{0}, most_workspace}) {
      if (!share.takes(of.line, workspace)) continue;
      const OperationCase item =
          uniform(with_moments(problem_in(of.line, of.arithmetic, of.layout, of.pass)), 5);
      const WrittenResults results =
          run_all(item, {.grant = {.only_engine = "moments_pass", .workspace = workspace}});
      BOOST_TEST(fault_of(item, results) == "");
      if (std::get<ConvolutionProblem>(item.problem).batch == 0)
        for (const double moment : results["moments"].values) BOOST_TEST(moment == 0);
    }
}

// ResNet-50's layers of one tap: with workspace the epilogue makes the moments, as that is
// estimated to be faster; without, and of other layers, a pass does. The plan says which.
BOOST_AUTO_TEST_CASE(the_faster_way_is_chosen) {
  const DeviceDescription h100 = known_architecture("h100");
  const auto chosen = [&](const ConvolutionProblem& problem, std::size_t workspace) {
    std::vector<EngineRefusal> refusals;
    const Proposal proposal =
        choose(with_moments(problem), h100, Grant{.workspace = workspace}, refusals);
    BOOST_TEST(proposal.workspace <= workspace);
    return cat(proposal.first().kernel.engine, " ", proposal.first().kernel.tile);
  };
  for (const char* line :
       {"mb128ic64ih56oc256kh1", "mb128ic256ih56oc64kh1", "mb128ic128ih28oc512kh1",
        "mb128ic256ih14oc1024kh1", "mb128ic512ih7oc2048kh1", "mb128ic2048ih7oc512kh1"}) {
    const ConvolutionProblem problem = problem_in(line, f16, KILN_TENSOR_NHWC);
    const std::string with = chosen(problem, most_workspace), without = chosen(problem, 0);
    BOOST_TEST(with.starts_with("dense_nhwc_wgmma "), with);
    BOOST_TEST(with.ends_with(", moments in the epilogue"), with);
    BOOST_TEST(without.starts_with("moments_pass dense_nhwc_wgmma "), without);
    BOOST_TEST(without.find("moments by a pass over the result") != std::string::npos, without);
  }
  const std::string other =
      chosen(problem_in("mb128ic64ih56oc64kh1", f16, KILN_TENSOR_NCHW), most_workspace);
  BOOST_TEST(other.starts_with("moments_pass "), other);
}

BOOST_AUTO_TEST_SUITE_END()
