// The choice among candidates, and the table of remembered choices.
#include "engines/choice.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/core/demangle.hpp>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <typeinfo>

#include "core/error.hpp"
#include "device/device.hpp"
#include "problem/line/problem_line.hpp"

using namespace kiln;

namespace {

ConvolutionProblem problem_of(const char* line) {
  const ConvolutionOperands o = describe_convolution(parse_convolution_line(line), KILN_DATA_FLOAT,
                                                     KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
  return make_convolution(o.spec, o.x, o.w, o.y);
}

struct Answer {
  std::string engine, tile;
  std::uint32_t parts;
  double seconds;
  std::vector<std::string> refusals;
  bool operator==(const Answer&) const = default;
};

Answer answer(const Problem& problem, const DeviceDescription& device,
              const std::string& only = "") {
  std::vector<EngineRefusal> refusals;
  const Choice choice = choose(problem, device, {.only_engine = only}, refusals, nullptr);
  Answer out{choice.proposal.first().kernel.engine,
             choice.proposal.first().kernel.tile,
             choice.proposal.first().launch.shape.cluster,
             choice.seconds,
             {}};
  for (const EngineRefusal& refusal : refusals)
    out.refusals.push_back(refusal.engine + ": " + refusal.reason);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(choice)

// Recipes are values of one class.
BOOST_AUTO_TEST_CASE(classes_are_named_as_their_engines_and_rewrites) {
  for (const Method* method : methods()) {
    std::string expected = "kiln::";
    bool capital = true;
    for (const char c : std::string(method->name())) {
      if (c != '_') expected += capital ? static_cast<char>(std::toupper(c)) : c;
      capital = c == '_';
    }
    if (method->engine() != nullptr) expected += "Engine";
    const std::string own = boost::core::demangle(typeid(*method).name());
    if (!own.starts_with("kiln::RecipeEngine<")) BOOST_TEST(own == expected);
  }
}

BOOST_AUTO_TEST_CASE(remembered_choices_are_those_of_their_own_question) {
  const ConvolutionProblem problem = problem_of("mb4ic64ih14oc96kh3ph1");
  const DeviceDescription hopper = known_architecture("sm_90a"),
                          turing = known_architecture("sm_75");
  const Answer first = answer(problem, hopper);
  BOOST_TEST(!first.refusals.empty());
  BOOST_TEST((answer(problem, hopper) == first));
  // A difference in any property gives a separate entry.
  BOOST_TEST(answer(problem, turing).engine != first.engine);
  BOOST_TEST(answer(problem, hopper, "direct").engine == "direct");
  DeviceDescription narrow = hopper;
  narrow.multiprocessors = 4;
  BOOST_TEST(answer(problem, narrow).seconds > first.seconds);
  ConvolutionProblem larger = problem;
  larger.batch = 128;
  BOOST_TEST(answer(larger, hopper).seconds > first.seconds);
  ConvolutionProblem strict = problem;
  strict.math = KILN_MATH_STRICT;
  BOOST_TEST(answer(strict, hopper).engine == "implicit_gemm_fma");
  BOOST_TEST((answer(problem, hopper) == first));
}

// More problems than the table keeps, so that the first choice is made again.
BOOST_AUTO_TEST_CASE(a_forgotten_choice_is_made_again) {
  const DeviceDescription device = known_architecture("sm_90a");
  ConvolutionProblem problem = problem_of("mb1ic16ih5oc16kh3");
  const Answer first = answer(problem, device);
  for (int batch = 2; batch < 140; ++batch) {
    ConvolutionProblem other = problem;
    other.batch = batch;
    answer(other, device);
  }
  BOOST_TEST((answer(problem, device) == first));
}

// A layer's kernel that is compiled for one batch size of a range serves the whole range.
BOOST_AUTO_TEST_CASE(a_range_of_batches_has_one_kernel) {
  const DeviceDescription device = known_architecture("sm_90a");
  const auto chosen = [&](ConvolutionProblem problem, std::int64_t batch) {
    problem.batch = batch;
    std::vector<EngineRefusal> refusals;
    return choose(problem, device, {}, refusals, nullptr).proposal;
  };
  int alone = 0, shared = 0;
  for (const char* line : {"mb1ic64ih14oc96kh3ph1", "mb1ic128ih13oc384oh11kh3",
                           "mb1ic96ih64oc128kh9", "mb1ic256ih14oc256kh1", "mb1ic16ih5oc16kh3"}) {
    const ConvolutionProblem problem = problem_of(line);
    std::int64_t least = 1;
    for (const BatchRange& range : batch_ranges) {
      const std::int64_t most = std::min<std::int64_t>(range.most, 400);
      const Proposal reference = chosen(problem, range.reference);
      for (std::int64_t batch = least; batch <= most; batch += most > 24 ? 7 : 1) {
        BOOST_TEST_CONTEXT(line << " of " << batch << " images") {
          const Proposal proposal = chosen(problem, batch);
          BOOST_TEST((proposal.first().kernel == reference.first().kernel));
          const bool clustered = proposal.first().kernel.clustered;
          BOOST_TEST((clustered || proposal.first().launch.shape.cluster == 1));
          ++(clustered ? shared : alone);
        }
      }
      least = most + 1;
    }
  }
  BOOST_TEST(alone > 0);
  BOOST_TEST(shared > 0);
}

// wgrad_direct reads one element per sector of channels-last tensors. It took 18 times as long as
// the kernel that should have been chosen.
BOOST_AUTO_TEST_CASE(depthwise_filter_gradients_are_not_for_the_last_resort) {
  const DeviceDescription device = known_architecture("h200");
  for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
    for (const char* line : {"g96mb64ic96ih112oc96kh3sh2ph1", "g144mb64ic144ih56oc144kh3ph1",
                             "g384mb64ic384ih14oc384kh7ph3", "g672mb64ic672ih14oc672kh5ph2"}) {
      const ConvolutionOperands o = describe_convolution(parse_convolution_line(line), type,
                                                         KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
      std::vector<EngineRefusal> refusals;
      const Proposal chosen = choose(make_convolution_wgrad(o.spec, o.x, o.y, o.w), device,
                                     {.workspace = most_workspace}, refusals);
      BOOST_TEST(chosen.first().kernel.engine != "wgrad_direct", line);
    }
}

// An engine whose candidates all need workspace says how much.
BOOST_AUTO_TEST_CASE(too_little_workspace_is_told) {
  ConvolutionOperands o =
      describe_convolution(parse_convolution_line("mb4ic64ih14oc96kh3ph1"), KILN_DATA_FLOAT,
                           KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
  o.spec.math = KILN_MATH_TF32;
  const ConvolutionProblem problem = make_convolution_dgrad(o.spec, o.w, o.y, o.x);
  const DeviceDescription device = known_architecture("h100");
  constexpr std::size_t bytes = 64 * 96 * 9 * sizeof(float);
  const auto choose_with = [&](std::size_t workspace) {
    std::vector<EngineRefusal> refusals;
    return choose(problem, device, {.only_engine = "dense_nhwc_wgmma", .workspace = workspace},
                  refusals);
  };
  BOOST_TEST(choose_with(bytes).workspace == bytes);
  BOOST_CHECK_EXCEPTION(choose_with(bytes - 1), Error, [&](const Error& error) {
    return std::string_view(error.what())
        .ends_with(cat("dense_nhwc_wgmma: a workspace of ", bytes - 1, " bytes; expected at least ",
                       bytes));
  });
}

BOOST_AUTO_TEST_CASE(a_forked_child_chooses_alike) {
  const ConvolutionProblem problem = problem_of("mb4ic64ih14oc96kh3ph1");
  const DeviceDescription device = known_architecture("sm_90a");
  const Answer first = answer(problem, device);
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) _exit(answer(problem, device) == first ? 0 : 1);
  int status = -1;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
}

BOOST_AUTO_TEST_SUITE_END()
