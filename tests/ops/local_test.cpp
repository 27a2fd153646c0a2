// Locally connected layers in all passes, types, orders of weights and sizes, by every engine that
// takes them.
#include <boost/test/unit_test.hpp>

#include "engines/choice.hpp"
#include "placed_case.hpp"
#include "problem/line/problem_line.hpp"

BOOST_AUTO_TEST_SUITE(local)

namespace {

using namespace test;

enum class Bias { none, element, channel };

struct Layer {
  ConvolutionPass pass = ConvolutionPass::fprop;
  const char* line = "";
  DataType type = KILN_DATA_FLOAT;
  kilnTensorFormat_t layout = KILN_TENSOR_NCHW;
  const char* order = "pkct";
  Bias bias = Bias::none;
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
};

struct Operands {
  ConvolutionSpec spec;
  Tensor x, w, y;
};
Operands operands_of(const Layer& layer) {
  const ConvolutionOperands o = describe_convolution(parse_convolution_line(layer.line), layer.type,
                                                     layer.layout, layer.mode);
  return {o.spec, o.x, local_weights(o.w, o.y, layer.order, "the order"), o.y};
}

Problem problem_of(ConvolutionPass pass, const Operands& o, const Tensor* bias = nullptr) {
  switch (pass) {
    case ConvolutionPass::dgrad: return make_local_dgrad(o.spec, o.w, o.y, o.x);
    case ConvolutionPass::wgrad: return make_local_wgrad(o.spec, o.x, o.y, o.w);
    case ConvolutionPass::fprop: break;
  }
  return make_local(o.spec, o.x, o.w, bias, o.y);
}
Problem problem_of(const Layer& layer) {
  const Operands o = operands_of(layer);
  if (layer.bias == Bias::none) return problem_of(layer.pass, o);
  Tensor bias = o.y;
  bias.dims[0] = 1;
  if (layer.bias == Bias::channel) std::fill(bias.dims.begin() + 2, bias.dims.end(), 1);
  bias.strides = dense_strides(layer.layout, bias.rank, bias.dims);
  return problem_of(layer.pass, o, &bias);
}

// The engines that take a problem on the device under test.
std::vector<std::string> engines_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const EngineRefusal& answer : ask_engines(problem, device()->description()))
    if (answer.reason.empty()) names.push_back(answer.engine);
  return names;
}

// Checks integers that are so small that all sums are exact, in f16 and bf16 too.
void check_exactly(const Layer& layer, const Scalars& scalars = {}) {
  OperationCase item(problem_of(layer));
  item.scalars = scalars;
  item.fill_integers(3, 1);
  const auto elements = item.expected_elements();
  for (const std::string& engine : engines_of(item.problem))
    BOOST_TEST(item.exact_fault(item.run_plan(engine), elements) == "",
               engine << ": " << text_of(item.problem));
}

void check_within_bounds(const Layer& layer) {
  OperationCase item(problem_of(layer));
  item.fill_uniform(7);
  for (const std::string& engine : engines_of(item.problem))
    BOOST_TEST(check(item, engine) == "", engine);
}

constexpr ConvolutionPass passes[] = {ConvolutionPass::fprop, ConvolutionPass::dgrad,
                                      ConvolutionPass::wgrad};
constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};
constexpr const char* orders[] = {"pkct", "pktc", "ptck", "kctp", "npkct", "nctkp"};

}  // namespace

BOOST_AUTO_TEST_CASE(every_pass_and_order_of_weights) {
  auto share = share_of_cases();
  for (const ConvolutionPass pass : passes)
    for (const char* order : orders)
      for (const DataType type : all_types)
        for (const kilnTensorFormat_t layout : layouts) {
          if (!share.takes(static_cast<int>(pass), order, type, layout)) continue;
          check_exactly({pass, "mb3ic8ih6iw9oc8kh3ph1", type, layout, order});
          check_exactly({pass, "g2mb2ic4ih7iw5oc6kh3kw2sh2pw1dh1", type, layout, order, Bias::none,
                         KILN_CONVOLUTION},
                        {.alpha = -2, .beta = 1});
        }
}

BOOST_AUTO_TEST_CASE(random_data) {
  for (const ConvolutionPass pass : passes)
    for (const char* order : {"pkct", "pktc", "ptck"})
      for (const DataType type : all_types)
        check_within_bounds({pass, "mb5ic16ih8oc8kh5ph1", type, KILN_TENSOR_NHWC, order});
}

BOOST_AUTO_TEST_CASE(one_and_three_dimensions) {
  for (const ConvolutionPass pass : passes)
    for (const char* line : {"mb3ic4iw20oc6kw5pw2dw1", "mb3ic4iw20oc6kw3sw2",
                             "mb2ic3id5ih6iw4oc4kd3kh2kw3pd1ph1pw1sd2"})
      for (const char* order : {"pkct", "ptck", "kctp"})
        check_exactly({pass, line, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, order});
}

BOOST_AUTO_TEST_CASE(batches_of_all_sizes) {
  for (const ConvolutionPass pass : passes)
    for (const char* line : {"mb1ic5ih6oc7kh3", "mb7ic5ih6oc7kh3", "mb16ic5ih6oc7kh3",
                             "mb45ic5ih6oc7kh3", "mb0ic5ih6oc7kh3"})
      for (const char* order : {"pkct", "ptck"}) {
        if (std::string_view(line).starts_with("mb0") && pass == ConvolutionPass::wgrad) continue;
        check_exactly({pass, line, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, order});
      }
}

// Without images, dw is beta times its previous value, and 0 with beta 0.
BOOST_AUTO_TEST_CASE(filter_gradient_of_an_empty_batch) {
  const Layer layer{ConvolutionPass::wgrad, "mb0ic5ih6oc7kh3"};
  check_exactly(layer);
  check_exactly(layer, {.alpha = 1, .beta = -1});
}

BOOST_AUTO_TEST_CASE(bias_of_each_element_or_channel) {
  for (const Bias bias : {Bias::element, Bias::channel})
    for (const kilnTensorFormat_t layout : layouts)
      for (const char* order : {"pkct", "ptck", "kctp"})
        check_exactly(
            {ConvolutionPass::fprop, "mb2ic4ih6oc8kh3ph1", KILN_DATA_FLOAT, layout, order, bias},
            {.alpha = 2, .beta = -1});
}

// Operands that are only aligned to their elements, which the problem announces.
BOOST_AUTO_TEST_CASE(alignment_of_an_element) {
  for (const ConvolutionPass pass : passes)
    for (const char* order : {"pkct", "ptck"})
      for (const DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF}) {
        Operands o = operands_of({pass, "mb3ic8ih6oc8kh3", type, KILN_TENSOR_NHWC, order});
        o.spec.alignment = static_cast<std::int64_t>(size_of(type));
        OperationCase item(problem_of(pass, o));
        item.fill_integers(4, 1);
        for (const std::string& engine : engines_of(item.problem))
          BOOST_TEST(item.exact_fault(run_shifted(item, 1, engine)) == "", engine);
      }
}

BOOST_AUTO_TEST_CASE(elements_far_apart) {
  constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements
  for (const ConvolutionPass pass : passes)
    for (const char* order : {"pkct", "ptck"}) {
      const Operands near =
          operands_of({pass, "mb2ic2ih4oc2kh3", KILN_DATA_HALF, KILN_TENSOR_NCHW, order});
      OperationCase item(problem_of(pass, near));
      item.fill_integers(6, 1);
      const auto check_far = [&](Tensor Operands::*tensor, int axis) {
        Operands far = near;
        (far.*tensor).strides[axis] = beyond;
        const Problem wide = problem_of(pass, far);
        for (const std::string& engine : engines_of(wide))
          BOOST_TEST(item.exact_fault(run_wide(item, wide, engine)) == "",
                     engine << ": " << text_of(wide));
      };
      for (const int axis : {0, 1}) {
        check_far(&Operands::x, axis);
        check_far(&Operands::y, axis);
        check_far(&Operands::w, 2 * axis);  // output rows, filters
      }
    }
}

BOOST_AUTO_TEST_CASE(the_same_bits_every_time) {
  for (const ConvolutionPass pass : passes)
    for (const char* order : {"pkct", "ptck", "kctp"}) {
      OperationCase item(
          problem_of({pass, "mb4ic16ih9oc16kh5ph2", KILN_DATA_FLOAT, KILN_TENSOR_NCHW, order}));
      item.fill_uniform(5);
      for (const std::string& engine : engines_of(item.problem)) {
        const HostTensor first = item.run_plan(engine);
        for (int again = 0; again < 2; ++again)
          BOOST_TEST(difference(item.run_plan(engine), first) == "", engine);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
