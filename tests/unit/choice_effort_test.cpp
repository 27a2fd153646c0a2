// The work of a choice on the host, counted.
#include <malloc.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "core/error.hpp"
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

// However large the batch is: chunks that are alike are counted, and there are not too many.
BOOST_AUTO_TEST_CASE(a_choice_does_not_grow_with_the_batch) {
  const DeviceDescription device = known_architecture("h200");
  const Grant grant{.workspace = most_workspace};
  struct Cost {
    int answers = 0, steps = 0;
    std::size_t bytes = 0;
    bool refused = false;
  };
  const auto cost_of = [&](const ConvolutionProblem& problem) {
    Cost cost;
    const Effort before = effort_so_far();
    const std::size_t bytes = test::allocated_bytes();
    try {
      BOOST_TEST(Chooser(device).estimate(problem, grant).seconds > 0);
    } catch (const Error& error) {
      BOOST_TEST(error.status() == KILN_STATUS_NOT_SUPPORTED);
      cost.refused = true;
    }
    cost.answers = effort_so_far().answers - before.answers;
    cost.bytes = test::allocated_bytes() - bytes;
    std::vector<EngineRefusal> refusals;
    if (!cost.refused)
      cost.steps = static_cast<int>(choose(problem, device, grant, refusals).steps.size());
    return cost;
  };
  int in_chunks = 0, many_chunks = 0, taken = 0;
  for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
    for (const char* line :
         {"ic64ih57oc64kh3ph1", "ic72ih28oc136kh3ph1", "ic64ih1000oc64kh3ph1", "ic8ih2oc24kh1"}) {
      const auto problems = [&](const char* batch) {
        const ConvolutionOperands o =
            describe_convolution(parse_convolution_line(std::string("mb") + batch + line),
                                 KILN_DATA_HALF, layout, KILN_CROSS_CORRELATION);
        return std::array{make_convolution(o.spec, o.x, o.w, o.y),
                          make_convolution_dgrad(o.spec, o.w, o.y, o.x),
                          make_convolution_wgrad(o.spec, o.x, o.y, o.w)};
      };
      for (std::size_t pass = 0; pass < 3; ++pass) {
        const Cost thousand = cost_of(problems("1000")[pass]);
        in_chunks += thousand.steps > 20;
        for (const char* batch : {"200000", "10000000", "1000000000"}) {
          const Cost cost = cost_of(problems(batch)[pass]);
          many_chunks += cost.steps > 1000;
          taken += !cost.refused;
          BOOST_TEST_CONTEXT(line << ", pass " << pass << ", batch " << batch) {
            BOOST_TEST(cost.answers <= thousand.answers);
            BOOST_TEST(cost.bytes <= thousand.bytes);
            BOOST_TEST(cost.steps <= 2 * 4096 + 3);
          }
        }
      }
    }
  BOOST_TEST(in_chunks >= 3);
  BOOST_TEST(many_chunks >= 1);
  BOOST_TEST(taken >= 24);
}

// Choices are remembered, but not those of thousands of steps, which would take gigabytes.
BOOST_AUTO_TEST_CASE(choices_of_many_steps_are_not_kept) {
  if (!test::counts_allocations) return;  // another allocator, which mallinfo2 does not know
  const DeviceDescription device = known_architecture("h200");
  const auto steps_of = [&](const char* batch) {
    const ConvolutionOperands o = describe_convolution(
        parse_convolution_line(std::string("mb") + batch + "ic64ih28oc64kh3ph1"), KILN_DATA_HALF,
        KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
    std::vector<EngineRefusal> refusals;
    return choose(make_convolution(o.spec, o.x, o.w, o.y), device, {.workspace = most_workspace},
                  refusals)
        .steps.size();
  };
  steps_of("64");
  const std::size_t before = mallinfo2().uordblks;
  for (const char* batch : {"90000", "100000", "110000"}) BOOST_TEST(steps_of(batch) > 1000u);
  BOOST_TEST(mallinfo2().uordblks < before + (std::size_t{2} << 20));  // of 7 MiB each
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
