// Stand-ins (kernels for every shape): their results are right and have the same bits as those of
// the kernel for the shape with the same tile. One kernel serves all shapes, also at the same time.
#include <boost/test/unit_test.hpp>
#include <set>
#include <thread>

#include "engines/stand_in/stand_in.hpp"
#include "engines/stand_in/stand_in_dense.hpp"
#include "engines/stand_in/stand_in_direct.hpp"
#include "engines/stand_in/stand_in_gemm.hpp"
#include "engines/stand_in/stand_in_kernels.hpp"
#include "ops/conv/tensor_core_case.hpp"
#include "plan/kernel_cache.hpp"

BOOST_AUTO_TEST_SUITE(stand_ins)

namespace {

using namespace test;

constexpr Arithmetic f32 = arithmetics[0], tf32 = arithmetics[1], f16 = arithmetics[2],
                     bf16 = arithmetics[3];
constexpr ConvolutionPass all_passes[] = {ConvolutionPass::fprop, ConvolutionPass::dgrad,
                                          ConvolutionPass::wgrad};

const StandInDirectEngine direct;
const StandInWgradDirectEngine direct_wgrad;
const StandInDenseEngine dense;
const StandInGemmEngine gemm;
const StandInWgradGemmEngine wgrad_gemm;
const StandInWgradDenseEngine wgrad_dense;

std::vector<Candidate> candidates_of(const Engine& tested, const Problem& problem) {
  auto answer = tested.candidates(problem, device()->description());
  const auto* const refusal = std::get_if<Refusal>(&answer);
  BOOST_TEST_REQUIRE((refusal == nullptr),
                     text_of(problem) << ": " << (refusal == nullptr ? "" : refusal->reason));
  return std::get<std::vector<Candidate>>(std::move(answer));
}

// Compares a candidate's result with the reference and with that of the other engine's candidate.
void check_bits(const Engine& tested, const Engine& exact, const OperationCase& item,
                const Candidate& candidate) {
  const DeviceDescription& on = device()->description();
  const HostTensor got = run_proposal(item, tested.make(item.problem, on, candidate));
  const std::string fault = item.fault(got);
  BOOST_TEST(fault.empty(), text_of(item.problem) << ": " << fault);
  const HostTensor want = run_proposal(item, exact.make(item.problem, on, candidate));
  const std::string unlike = difference(got, want);
  BOOST_TEST(unlike.empty(), text_of(item.problem)
                                 << " is not what " << exact.name() << " computes: " << unlike);
}

OperationCase uniform_of(const ConvolutionProblem& problem) {
  OperationCase item(problem);
  item.scalars = {.alpha = 0.5, .beta = -2};
  item.fill_uniform(3);
  return item;
}

std::vector<KernelSpec> kernels_of(const Proposal& proposal) {
  std::vector<KernelSpec> kernels;
  for (const Step& step : proposal.steps) kernels.push_back(step.kernel);
  return kernels;
}

// The number of different kernels that all these shapes have together.
template <class Lines>
std::size_t kernels_of(const Engine& tested, const Arithmetic& arithmetic, ConvolutionPass pass,
                       kilnTensorFormat_t layout, const Lines& lines) {
  std::vector<KernelSpec> kernels;
  for (const char* line : lines) {
    const Problem problem = problem_in(line, arithmetic, layout, pass);
    for (const KernelSpec& kernel : kernels_of(
             tested.make(problem, device()->description(), candidates_of(tested, problem).front())))
      if (std::ranges::find(kernels, kernel) == kernels.end()) kernels.push_back(kernel);
  }
  return kernels.size();
}

}  // namespace

// There is one kernel for each pass, whatever the sizes, strides, groups and layout; for data
// gradients there is one for each range of numbers of phases.
BOOST_AUTO_TEST_CASE(direct_serves_every_shape) {
  constexpr const char* lines[] = {"mb2ic5ih9oc7kh3ph1", "g3mb1ic6ih8iw12oc9kh3kw1sh2dh1",
                                   "mb3ic4iw17oc3kw5pw2", "mb1ic3id4ih5oc2kd2kh3ph1"};
  for (const kilnTensorFormat_t layout : {KILN_TENSOR_NHWC, KILN_TENSOR_NCHW})
    for (const char* line : lines)
      for (const ConvolutionPass pass : all_passes) {
        const bool wgrad = pass == ConvolutionPass::wgrad;
        const OperationCase item = uniform_of(problem_in(line, f32, layout, pass));
        const Engine& tested = wgrad ? static_cast<const Engine&>(direct_wgrad) : direct;
        const RecipeEngine exact(direct_gather);
        const RecipeEngine exact_wgrad(::kiln::wgrad_direct);
        check_bits(tested, wgrad ? static_cast<const Engine&>(exact_wgrad) : exact, item,
                   candidates_of(tested, item.problem).front());
      }
  BOOST_TEST(kernels_of(direct, f32, ConvolutionPass::fprop, KILN_TENSOR_NHWC, lines) == 1);
  BOOST_TEST(kernels_of(direct, f32, ConvolutionPass::dgrad, KILN_TENSOR_NCHW, lines) == 2);
  BOOST_TEST(kernels_of(direct_wgrad, f32, ConvolutionPass::wgrad, KILN_TENSOR_NHWC, lines) == 1);
}

// One kernel serves problems with and without a bias. Strides have any number of phases up to the
// limit.
BOOST_AUTO_TEST_CASE(direct_epilogues_and_phases) {
  OperationCase fused(fused_in("mb2ic5ih9oc7kh3ph1", f32, KILN_TENSOR_NHWC, KILN_TENSOR_NCHW));
  fused.fill_uniform(5);
  const RecipeEngine exact(direct_gather);
  check_bits(direct, exact, fused, candidates_of(direct, fused.problem).front());
  for (const char* line :
       {"mb1ic4ih11oc3kh4sh3ph1", "mb1ic4id7ih7oc3kd4kh3sd2sh4ph1", "mb2ic3ih6oc2kh1sh3"}) {
    const OperationCase item =
        uniform_of(problem_in(line, f16, KILN_TENSOR_NCHW, ConvolutionPass::dgrad));
    check_bits(direct, exact, item, candidates_of(direct, item.problem).front());
  }
  const ConvolutionProblem many =
      problem_in("mb1ic4ih40oc3kh7sh6ph1", f32, KILN_TENSOR_NCHW, ConvolutionPass::dgrad);
  BOOST_TEST(refusal_of(direct, many).find("36 phases") != std::string::npos);
}

// Sizes that end within a tile; strides, dilation, flipped filters; lines and volumes; a bias.
BOOST_AUTO_TEST_CASE(dense_serves_every_shape) {
  if (!has_warpgroups()) return;
  const RecipeEngine exact(dense_nhwc_wgmma);
  std::size_t turn = 0;
  for (const char* line :
       {"mb3ic72ih13iw9oc88kh3ph1", "mb2ic136ih10oc72kh1", "mb1ic16ih12oc64kh3dh1",
        "mb2ic64ih9oc96kh3sh2ph1", "mb2ic24iw33oc72kw3pw1", "mb1ic40id4ih6oc64kd3kh3pd1ph1",
        "mb2ic64id4ih6oc64kd2kh3sd2sh2ph1"})
    for (const ConvolutionPass pass : {ConvolutionPass::fprop, ConvolutionPass::dgrad}) {
      const bool single = pass == ConvolutionPass::fprop && turn % 3 == 2;
      const ConvolutionProblem problem = problem_in(
          line,
          single          ? tf32
          : turn % 2 == 0 ? f16
                          : bf16,
          KILN_TENSOR_NHWC, pass, turn % 4 == 1 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
      const OperationCase item = uniform_of(problem);
      const std::vector<Candidate> candidates = candidates_of(dense, problem);
      check_bits(dense, exact, item, candidates[turn++ % candidates.size()]);
    }
  OperationCase fused(
      fused_in("mb2ic24ih14iw15oc72kh3ph1", f16, KILN_TENSOR_NHWC, KILN_TENSOR_NHWC));
  fused.fill_uniform(5);
  check_bits(dense, exact, fused, candidates_of(dense, fused.problem).front());
}

// Data gradients in TF32, whose first step transposes the filter.
BOOST_AUTO_TEST_CASE(dense_turns_filters) {
  if (!has_warpgroups()) return;
  const RecipeEngine exact(dense_nhwc_wgmma);
  std::size_t turn = 0;
  for (const char* line : {"mb3ic72ih13iw9oc88kh3ph1", "mb2ic136ih10oc72kh1",
                           "mb2ic64ih9oc96kh3sh2ph1", "mb2ic64id4ih6oc64kd2kh3sd2sh2ph1"}) {
    const OperationCase item =
        uniform_of(problem_in(line, tf32, KILN_TENSOR_NHWC, ConvolutionPass::dgrad,
                              turn % 2 == 1 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
    const std::vector<Candidate> candidates = candidates_of(dense, item.problem);
    const Candidate& candidate = candidates[turn++ % candidates.size()];
    BOOST_TEST(dense.make(item.problem, device()->description(), candidate).steps.size() == 2u);
    check_bits(dense, exact, item, candidate);
  }
  constexpr const char* lines[] = {"mb3ic72ih13iw9oc88kh3ph1", "mb2ic136ih10oc72kh1"};
  BOOST_TEST(kernels_of(dense, tf32, ConvolutionPass::dgrad, KILN_TENSOR_NHWC, lines) == 2);
}

// Sums so long that they are promoted.
BOOST_AUTO_TEST_CASE(dense_long_sums) {
  if (!has_warpgroups()) return;
  const OperationCase item =
      uniform_of(problem_in("mb1ic2048ih3oc64kh3ph1", f16, KILN_TENSOR_NHWC));
  check_bits(dense, RecipeEngine(dense_nhwc_wgmma), item,
             candidates_of(dense, item.problem).front());
}

BOOST_AUTO_TEST_CASE(wgrad_dense_serves_every_shape) {
  if (!has_warpgroups()) return;
  const RecipeEngine exact(::kiln::wgrad_dense_nhwc_wgmma);
  std::size_t turn = 0;
  for (const char* line :
       {"mb3ic72ih13iw9oc88kh3ph1", "mb2ic136ih10oc72kh1", "mb1ic16ih12oc64kh3dh1",
        "mb2ic64ih9oc96kh3sh2ph1", "mb2ic24iw33oc72kw3pw1", "mb1ic40id4ih6oc64kd3kh3pd1ph1"}) {
    const OperationCase item =
        uniform_of(problem_in(line,
                              turn % 3 == 2   ? tf32
                              : turn % 2 == 0 ? f16
                                              : bf16,
                              KILN_TENSOR_NHWC, ConvolutionPass::wgrad,
                              turn % 4 == 1 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
    const std::vector<Candidate> candidates = candidates_of(wgrad_dense, item.problem);
    check_bits(wgrad_dense, exact, item, candidates[(5 * turn++) % candidates.size()]);
  }
}

// Any layout, groups, strides and dilation; 3xTF32; a bias. These kernels visit taps in another
// order than kernels of one phase, so results may have other bits.
BOOST_AUTO_TEST_CASE(gemm_serves_every_shape) {
  std::size_t turn = 0;
  constexpr const char* lines[] = {"mb3ic33ih9iw11oc20kh3ph1", "g2mb2ic34ih12oc48kh3sh2ph1",
                                   "mb2ic16iw40oc17kw5pw2dw1", "mb1ic20id3ih6oc18kd2kh3ph1",
                                   "mb5ic24ih5oc16kh5ph2"};
  for (const char* line : lines)
    for (const ConvolutionPass pass : all_passes) {
      const Engine& tested =
          pass == ConvolutionPass::wgrad ? static_cast<const Engine&>(wgrad_gemm) : gemm;
      const OperationCase item = uniform_of(problem_in(
          line, arithmetics[turn % 4], turn % 2 == 0 ? KILN_TENSOR_NCHW : KILN_TENSOR_NHWC, pass,
          turn % 5 == 1 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION));
      ++turn;
      const auto answer = tested.candidates(item.problem, device()->description());
      const auto* const candidates = std::get_if<std::vector<Candidate>>(&answer);
      if (candidates == nullptr) continue;  // refused: few rows or products
      const Candidate& candidate = (*candidates)[turn % candidates->size()];
      const std::string fault = item.fault(
          run_proposal(item, tested.make(item.problem, device()->description(), candidate)));
      BOOST_TEST(fault.empty(), text_of(item.problem) << ": " << fault);
    }
  OperationCase fused(
      fused_in("mb2ic24ih14iw15oc72kh3ph1", f16, KILN_TENSOR_NCHW, KILN_TENSOR_NCHW));
  fused.fill_uniform(5);
  const std::string fault =
      fused.fault(run_proposal(fused, gemm.make(fused.problem, device()->description(),
                                                candidates_of(gemm, fused.problem).front())));
  BOOST_TEST(fault.empty(), text_of(fused.problem) << ": " << fault);
  BOOST_TEST(kernels_of(gemm, f16, ConvolutionPass::fprop, KILN_TENSOR_NCHW, lines) == 1);
  BOOST_TEST(kernels_of(gemm, f16, ConvolutionPass::dgrad, KILN_TENSOR_NCHW, lines) == 2);
  BOOST_TEST(kernels_of(wgrad_gemm, f16, ConvolutionPass::wgrad, KILN_TENSOR_NCHW, lines) == 1);
}

// Plans of two shapes share a loaded kernel, which is compiled once, and execute it at the same
// time from two threads.
BOOST_AUTO_TEST_CASE(one_kernel_at_once) {
  const OperationCase items[] = {
      integers_of(problem_in("mb2ic5ih9oc7kh3ph1", f32, KILN_TENSOR_NCHW)),
      integers_of(problem_in("mb1ic8ih6oc4kh1", f32, KILN_TENSOR_NHWC))};
  std::vector<std::unique_ptr<Plan>> plans;
  for (const OperationCase& item : items) {
    const std::uint64_t compiled = cache_counters().compiled;
    plans.push_back(std::make_unique<Plan>(device(), item.problem));
    plans.back()->finalize({.grant = {.only_engine = direct.name()}});
    if (plans.size() > 1) BOOST_TEST(cache_counters().compiled == compiled);
  }
  BOOST_TEST(&plans[0]->kernel() == &plans[1]->kernel());
  BOOST_TEST(plans[1]->origin() == KILN_KERNEL_MEMORY);
  std::string faults[2];
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        const std::vector<reference::Expected> want = items[i].expected_elements();
        for (int turn = 0; turn < 20 && faults[i].empty(); ++turn) {
          HostTensor got = items[i].result();
          got.read(items[i].run(*device(), [&](std::span<void* const> operands) {
            plans[i]->execute(operands, items[i].scalars, nullptr);
          }));
          faults[i] = items[i].exact_fault(got, want);
        }
      });
  }
  for (const std::string& fault : faults) BOOST_TEST(fault.empty(), fault);
}

// The kernels of stand-ins for plain problems are among those that are compiled ahead.
BOOST_AUTO_TEST_CASE(kernels_ahead) {
  const DeviceDescription target = known_architecture("h100");
  const std::vector<KernelSpec> kernels = stand_in_kernels(target);
  for (const KernelSpec& kernel : stand_in_kernels(known_architecture("a100")))
    BOOST_TEST(!kernel.clustered, kernel.engine << ": that chip has no clusters");
  BOOST_TEST(kernels.size() > 60);
  BOOST_TEST(kernels.size() < 330);
  for (const Arithmetic& arithmetic : with_f64)
    for (const char* line :
         {"mb128ic64ih56oc64kh3ph1", "mb2ic40ih19oc72kh5sh2ph2", "mb64ic24ih28oc24kh3ph1",
          "mb1ic3ih224oc64kh7sh2ph3", "mb32ic512ih7oc2048kh1", "g32mb8ic128ih28oc128kh3ph1",
          "mb4ic64id8ih28oc64kd3kh3pd1ph1"})
      for (const kilnTensorFormat_t layout : {KILN_TENSOR_NHWC, KILN_TENSOR_NCHW})
        for (const ConvolutionPass pass : all_passes)
          for (const std::size_t workspace : {std::size_t{0}, most_workspace}) {
            const Problem problem = problem_in(line, arithmetic, layout, pass);
            const std::optional<StandIn> found =
                stand_in(problem, target, {.workspace = workspace});
            BOOST_TEST_REQUIRE(found.has_value());
            BOOST_TEST(found->for_every_shape);
            for (const KernelSpec& kernel : kernels_of(found->choice.proposal))
              BOOST_TEST((std::ranges::find(kernels, kernel) != kernels.end()),
                         text_of(problem) << ": " << kernel.engine << " " << kernel.tile);
          }
}

BOOST_AUTO_TEST_SUITE_END()
