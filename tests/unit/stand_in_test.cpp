// Stand-ins, which execute while the chosen kernel is being compiled.
#include "engines/stand_in/stand_in.hpp"

#include <boost/test/unit_test.hpp>

#include "problem/line/problem_line.hpp"
#include "unit/problem/problem_support.hpp"

using namespace kiln;

namespace {

ConvolutionOperands operands_of_line(const char* line, DataType type) {
  return describe_convolution(parse_convolution_line(line), type, KILN_TENSOR_NHWC,
                              KILN_CROSS_CORRELATION);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stand_ins)

// There is a stand-in for any granted workspace and any named engine.
BOOST_AUTO_TEST_CASE(every_convolution_has_one) {
  for (const char* arch : {"sm_75", "h100"})
    for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE, KILN_DATA_HALF})
      for (const char* line : {"mb4ic64ih14oc96kh3ph1", "g96mb2ic96ih12oc96kh3sh2ph1",
                               "mb1ic3ih17oc5kh5dh1", "mb0ic8ih5oc8kh1"}) {
        const ConvolutionOperands o = operands_of_line(line, type);
        const DeviceDescription device = known_architecture(arch);
        for (const Problem& problem : {Problem(make_convolution(o.spec, o.x, o.w, o.y)),
                                       Problem(make_convolution_dgrad(o.spec, o.w, o.y, o.x)),
                                       Problem(make_convolution_wgrad(o.spec, o.x, o.y, o.w))})
          for (const Grant& grant :
               {Grant{}, Grant{.only_engine = "implicit_gemm_mma", .workspace = most_workspace}}) {
            const std::optional<StandIn> found = stand_in(problem, device, grant);
            BOOST_TEST_REQUIRE(found.has_value(), text_of(problem));
            BOOST_TEST(found->choice.seconds > 0);
            BOOST_TEST(found->choice.proposal.workspace <= grant.workspace);
            BOOST_TEST(!found->choice.tuned);
          }
      }
}

BOOST_AUTO_TEST_CASE(locally_connected_layers_have_one) {
  ConvolutionSpec spec;
  spec.spatial = 2;
  const Tensor x = test::tensor(4, {2, 6, 5, 7}), y = test::tensor(4, {2, 4, 3, 5}),
               w = test::tensor(6, {3, 5, 4, 6, 3, 3});
  for (const LocalProblem& problem :
       {make_local(spec, x, w, nullptr, y), make_local_dgrad(spec, w, y, x),
        make_local_wgrad(spec, x, y, w)}) {
    const std::optional<StandIn> found = stand_in(problem, known_architecture("h100"), {});
    BOOST_TEST_REQUIRE(found.has_value(), text_of(Problem(problem)));
    BOOST_TEST(found->choice.proposal.first().kernel.engine == "local_direct");
    BOOST_TEST(!found->for_every_shape);
  }
}

BOOST_AUTO_TEST_CASE(an_operation_of_one_kernel_has_none) {
  BOOST_TEST(!stand_in(SoftmaxProblem(), known_architecture("h100"), {}).has_value());
}

BOOST_AUTO_TEST_CASE(what_no_engine_takes_has_none) {
  ConvolutionOperands o = operands_of_line("mb4ic64ih14oc96kh3ph1", KILN_DATA_FLOAT);
  ConvolutionProblem problem = make_convolution(o.spec, o.x, o.w, o.y);
  problem.batch = std::int64_t{1} << 47;
  BOOST_TEST(!stand_in(problem, known_architecture("h100"), {}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
