// The work of a choice on the host, counted.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "codegen/loops.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "device/device.hpp"
#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "problem/line/problem_line.hpp"
#include "support/allocation_count.hpp"

using namespace kiln;

BOOST_AUTO_TEST_SUITE(choice_effort)

// Every engine is asked once for each batch size, also for channels-last copies with any number of
// chunks, and proposals are made only of candidates that win.
BOOST_AUTO_TEST_CASE(a_choice_makes_few_proposals) {
  const DeviceDescription device = known_architecture("h200");
  int of_copies = 0;
  for (const DataType type : {KILN_DATA_HALF, KILN_DATA_FLOAT})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (const char* line : {"mb32ic64ih57oc64kh3ph1", "mb30ic256ih29oc512kh1sh2",
                               "mb100ic72ih28oc136kh3ph1", "mb16ic32iw32768oc32kw7pw9dw2",
                               "mb3ic64id9ih17oc48kd3kh3pd1ph1", "mb30ic36ih29oc230kh3ph1sh2"}) {
        ConvolutionOperands o = describe_convolution(parse_convolution_line(line), type, layout,
                                                     KILN_CROSS_CORRELATION);
        o.spec.math = type == KILN_DATA_FLOAT ? KILN_MATH_TF32 : KILN_MATH_DEFAULT;
        for (const ConvolutionProblem& problem : {make_convolution(o.spec, o.x, o.w, o.y),
                                                  make_convolution_dgrad(o.spec, o.w, o.y, o.x),
                                                  make_convolution_wgrad(o.spec, o.x, o.y, o.w)})
          for (const std::size_t workspace : {std::size_t{0}, most_workspace}) {
            const Effort before = effort_so_far();
            std::vector<EngineRefusal> refusals;
            const Proposal chosen = choose(problem, device, {.workspace = workspace}, refusals);
            const Effort after = effort_so_far();
            of_copies += chosen.steps.size() > 4;
            BOOST_TEST(after.proposals - before.proposals <= 6,
                       text_of(Problem(problem))
                           << ": " << after.proposals - before.proposals << " proposals");
            BOOST_TEST(after.answers - before.answers <= 170,
                       text_of(Problem(problem))
                           << ": " << after.answers - before.answers << " answers");
            choose(problem, device, {.workspace = workspace}, refusals);
            BOOST_TEST(effort_so_far().answers == after.answers);
          }
      }
  BOOST_TEST(of_copies >= 8);
}

// What a choice and its proposal cost.
struct Cost {
  int answers = 0;
  std::size_t steps = 0;      // that are listed; 0 if every engine refuses
  std::int64_t launches = 0;  // of an execution
  std::size_t bytes = 0;      // allocated in all
};
Cost cost_of(const ConvolutionProblem& problem) {
  const DeviceDescription device = known_architecture("h200");
  const Effort before = effort_so_far();
  const std::size_t bytes = test::allocated_bytes();
  Cost cost;
  try {
    std::vector<EngineRefusal> refusals;
    const Proposal chosen = choose(problem, device, {.workspace = most_workspace}, refusals);
    cost.steps = chosen.steps.size();
    cost.launches = launch_count(chosen);
  } catch (const Error& error) {
    BOOST_TEST(error.status() == KILN_STATUS_NOT_SUPPORTED);
  }
  cost.answers = effort_so_far().answers - before.answers;
  cost.bytes = test::allocated_bytes() - bytes;
  return cost;
}

constexpr const char* sized_passes[] = {"forward", "data gradient", "filter gradient"};
std::array<ConvolutionProblem, 3> problems_of(const std::string& line, kilnTensorFormat_t layout) {
  const ConvolutionOperands o = describe_convolution(parse_convolution_line(line), KILN_DATA_HALF,
                                                     layout, KILN_CROSS_CORRELATION);
  return {make_convolution(o.spec, o.x, o.w, o.y), make_convolution_dgrad(o.spec, o.w, o.y, o.x),
          make_convolution_wgrad(o.spec, o.x, o.y, o.w)};
}

// However large the batch or an image is: launches that are alike are counted, not listed.
BOOST_AUTO_TEST_CASE(a_choice_does_not_grow_with_the_launches) {
  struct Layer {
    const char *few, *many, *most;  // words of the line
    kilnTensorFormat_t layout = KILN_TENSOR_NCHW;
  };
  // Chunks of images; parts of one image, and of several; padding that many parts meet; planes.
  constexpr Layer layers[] = {
      {"mb1000ic64ih57oc64kh3ph1", "mb1000000ic64ih57oc64kh3ph1", "mb1000000000ic64ih57oc64kh3ph1"},
      {"mb1000ic72ih28oc136kh3ph1", "mb60000ic72ih28oc136kh3ph1",
       "mb1000000000ic72ih28oc136kh3ph1"},
      {"mb1000ic36ih29oc230kh3sh2ph1", "mb60000ic36ih29oc230kh3sh2ph1",
       "mb1000000000ic36ih29oc230kh3sh2ph1", KILN_TENSOR_NHWC},
      {"mb1000ic8ih2oc24kh1", "mb1000000ic8ih2oc24kh1", "mb1000000000ic8ih2oc24kh1"},
      {"mb1ic64ih1000oc64kh3ph1", "mb1ic64ih8000oc64kh3ph1", "mb1ic64ih16000iw8000oc64kh3ph1"},
      {"mb4ic64ih1000oc64kh3ph1", "mb100ic64ih1000oc64kh3ph1", "mb3ic64ih8000oc64kh3ph1"},
      {"mb2ic64ih900iw4000oc64kh9ph400pw4", "mb4ic64ih900iw8000oc64kh9ph400pw4",
       "mb4ic64ih900iw8000oc64kh9dh20ph400pw4dw0"},
      {"mb1ic32id64ih128oc32kd3kh3pd1ph1", "mb8ic32id64ih128oc32kd3kh3pd1ph1",
       "mb8ic32id256ih128oc32kd3kh3pd1ph1"},
  };
  constexpr std::size_t most_steps = 32, most_bytes = std::size_t{6} << 20;
  int many_launches = 0, in_loops = 0;
  std::int64_t most_launches = 0;
  for (const auto& [few, many, most, layout] : layers)
    for (std::size_t pass = 0; pass < 3; ++pass) {
      const Cost least = cost_of(problems_of(few, layout)[pass]);
      for (const char* const line : {many, most}) {
        const Cost cost = cost_of(problems_of(line, layout)[pass]);
        many_launches += cost.launches > 1000;
        most_launches = std::max(most_launches, cost.launches);
        in_loops += cost.launches > static_cast<std::int64_t>(cost.steps);
        BOOST_TEST_CONTEXT(line << ", " << sized_passes[pass] << ": " << cost.launches
                                << " launches") {
          BOOST_TEST(cost.answers <= least.answers);
          BOOST_TEST(cost.steps <= most_steps);
          BOOST_TEST(cost.bytes <= most_bytes);
        }
      }
    }
  BOOST_TEST(many_launches >= 8);
  BOOST_TEST(most_launches > 40000);  // of a batch of a million
  BOOST_TEST(in_loops >= 12);
}

// Choices are remembered, also those of thousands of launches.
BOOST_AUTO_TEST_CASE(choices_of_many_launches_take_little_memory) {
  if (!test::counts_allocations) return;  // another allocator, which mallinfo2 does not know
  const auto launches_of = [&](const char* batch) {
    return cost_of(problems_of(cat("mb", batch, "ic64ih28oc64kh3ph1"), KILN_TENSOR_NCHW)[0])
        .launches;
  };
  launches_of("64");
  const std::size_t before = mallinfo2().uordblks;
  for (const char* batch : {"90000", "100000", "110000"}) BOOST_TEST(launches_of(batch) > 1000);
  BOOST_TEST(mallinfo2().uordblks < before + (std::size_t{2} << 20));
}

// A proposal with copies needs as many bytes of workspace as its estimate said.
BOOST_AUTO_TEST_CASE(proposals_need_the_workspace_of_their_candidates) {
  const DeviceDescription device = known_architecture("h200");
  int some = 0;
  for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
    for (const char* line :
         {"mb32ic64ih57oc64kh3ph1", "mb30ic256ih29oc512kh1sh2", "mb30ic36ih29oc230kh3ph1"}) {
      const ConvolutionOperands o = describe_convolution(
          parse_convolution_line(line), KILN_DATA_HALF, layout, KILN_CROSS_CORRELATION);
      for (const Problem& problem : {Problem(make_convolution(o.spec, o.x, o.w, o.y)),
                                     Problem(make_convolution_wgrad(o.spec, o.x, o.y, o.w))})
        for (const Method* method : methods()) {
          if (!method->is_for(problem)) continue;
          const auto answer = ask_once(*method, problem, Chooser(device));
          for (const Estimate& each : answer->estimates) {
            const Proposal made = make_proposal(*method, problem, Chooser(device), each);
            BOOST_TEST(made.workspace == each.workspace, method->name()
                                                             << made.first().kernel.tile);
            some += made.workspace > 0;
          }
        }
    }
  BOOST_TEST(some > 10);
}

BOOST_AUTO_TEST_SUITE_END()
