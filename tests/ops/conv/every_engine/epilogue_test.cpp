// Epilogues in every order that a list may have, and results of another type than the operands, by
// every engine that takes them.
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "engines/choice.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(epilogue)

namespace {

using namespace test;
using Kind = EpilogueOperation::Kind;

// The engines that need no workspace.
std::set<std::string> engines_for(const Problem& problem) {
  std::set<std::string> names;
  for (const Option& option : all_candidates(problem, device()->description()))
    names.insert(option.name.engine);
  return names;
}

struct Line {
  const char* text;
  kilnTensorFormat_t layout;
  DataType type;
};

// A forward pass, or a transposed convolution, which has the sizes of the data gradient.
ConvolutionProblem problem_of(const Line& line, bool transposed, const EpilogueList& list) {
  const ConvolutionOperands o = describe_convolution(parse_convolution_line(line.text), line.type,
                                                     line.layout, KILN_CROSS_CORRELATION);
  return transposed ? make_convolution_transposed(o.spec, o.y, o.w, o.x, list)
                    : make_convolution(o.spec, o.x, o.w, o.y, list);
}

// Bias, residual and activation in the order that the letters of `order` give, such as "bra". A
// capital "R": beta scales the previous output instead of a residual.
EpilogueList list_of(const Line& line, bool transposed, std::string_view order) {
  const ConvolutionOperands o = describe_convolution(parse_convolution_line(line.text), line.type,
                                                     line.layout, KILN_CROSS_CORRELATION);
  const Tensor& result = transposed ? o.x : o.y;
  Tensor bias = result;
  for (int i = 0; i < bias.rank; ++i) bias.dims[i] = i == 1 ? result.dims[1] : 1;
  EpilogueList list;
  for (const char each : order) switch (each) {
      case 'b': list.push_back({.kind = Kind::bias, .tensor = bias}); break;
      case 'r': list.push_back({.kind = Kind::residual, .tensor = result}); break;
      case 'R': list.push_back({.kind = Kind::residual}); break;
      default:
        list.push_back({.kind = Kind::activation, .activation = {KILN_ACTIVATION_LEAKY_RELU, -2}});
    }
  return list;
}

}  // namespace

// Small integers, so that every engine's sums are exact, and an activation that maps integers to
// integers.
BOOST_AUTO_TEST_CASE(every_engine_in_every_order) {
  constexpr Line lines[] = {
      {"mb2ic32ih9oc32kh3ph1", KILN_TENSOR_NHWC, KILN_DATA_HALF},
      {"mb2ic16ih10oc24kh3ph1", KILN_TENSOR_NCHW, KILN_DATA_FLOAT},
      {"mb3ic64ih6oc64kh1", KILN_TENSOR_NHWC, KILN_DATA_BFLOAT16},
      {"g16mb2ic16ih9oc16kh3ph1", KILN_TENSOR_NHWC, KILN_DATA_FLOAT},
      {"mb1ic3ih20oc16kh5", KILN_TENSOR_NCHW, KILN_DATA_HALF},
      {"g2mb2ic6ih9iw8oc4kh3ph1sh2", KILN_TENSOR_NCHW, KILN_DATA_FLOAT},
      {"mb2ic16ih9oc16kh3ph1sh2sw2", KILN_TENSOR_NHWC, KILN_DATA_HALF},
  };
  kiln_test::ShareOfCases share = share_of_cases();
  for (const Line& line : lines)
    for (const bool transposed : {false, true})
      for (const char* order : {"bar", "bra", "rba", "aR"}) {
        const ConvolutionProblem problem =
            problem_of(line, transposed, list_of(line, transposed, order));
        BOOST_TEST(problem.epilogue.residual_last == (std::string_view(order).back() != 'a'));
        for (const std::string& engine : engines_for(problem)) {
          if (!share.takes(engine, order, transposed)) continue;
          OperationCase item = integers_of(problem);
          item.scalars = {.alpha = 2, .beta = -3};
          item.fill_integers(5, 2);
          check_integers(item, engine.c_str());
        }
      }
}

// f16 and bf16 operands with f32 results, whose sums do not fit into 16 bits.
BOOST_AUTO_TEST_CASE(results_in_f32) {
  kiln_test::ShareOfCases share = share_of_cases();
  for (const kilnTensorFormat_t layout : {KILN_TENSOR_NHWC, KILN_TENSOR_NCHW})
    for (const DataType type : {KILN_DATA_HALF, KILN_DATA_BFLOAT16})
      for (const ConvolutionPass pass :
           {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad}) {
        ConvolutionOperands o = describe_convolution(
            parse_convolution_line("mb3ic16ih14oc24kh3ph1"), type, layout, KILN_CROSS_CORRELATION);
        Problem problem;
        switch (pass) {
          case ConvolutionPass::fprop:
            o.y.type = KILN_DATA_FLOAT;
            problem = make_convolution(o.spec, o.x, o.w, o.y);
            break;
          case ConvolutionPass::dgrad:
            o.x.type = KILN_DATA_FLOAT;
            problem = make_convolution_dgrad(o.spec, o.w, o.y, o.x);
            break;
          case ConvolutionPass::wgrad:
            o.w.type = KILN_DATA_FLOAT;
            problem = make_convolution_wgrad(o.spec, o.x, o.y, o.w);
            break;
        }
        const std::set<std::string> engines = engines_for(problem);
        BOOST_TEST(engines.size() >= 3);
        for (const std::string& engine : engines) {
          if (!share.takes(engine, type, layout)) continue;
          OperationCase item = integers_of(std::get<ConvolutionProblem>(problem));
          item.scalars = {.alpha = 3, .beta = 0.5};
          item.fill_integers(9, 7);
          check_integers(item, engine.c_str());
        }
      }
}

BOOST_AUTO_TEST_SUITE_END()
