// The filter gradient of channels-first tensors with few channels a group: runs of 8, 7 and 4
// pixels, and runs in which a row ends; rows that are copied by 16 bytes, by fewer, and by single
// elements; one tile of several images and several tiles of one; volumes, strides, dilation,
// flipped filters, the filter's rows divided among blocks, channel multipliers, few channels a
// group; and infinities and NaN.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "engines/conv/direct/wgrad_depthwise_fma.hpp"
#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(wgrad_depthwise)

namespace {

using namespace test;

const RecipeEngine engine(::kiln::wgrad_depthwise_fma);

ConvolutionProblem gradient(const char* line, DataType type,
                            kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION,
                            kilnTensorFormat_t layout = KILN_TENSOR_NCHW) {
  return problem_in(line, {type, KILN_MATH_DEFAULT}, layout, ConvolutionPass::wgrad, mode);
}

}  // namespace

BOOST_AUTO_TEST_CASE(shapes) {
  std::size_t turn = 0;
  for (const char* line :
       {"g3mb5ic3ih9iw16oc3kh3ph1", "g2mb3ic2ih14oc2kh3ph1", "g2mb3ic2ih12iw12oc2kh5ph2",
        "g2mb3ic2ih9iw11oc4kh3ph1sh2sw2", "g1mb2ic1ih40iw200oc1kh3ph1", "g2mb2ic2iw1100oc2kw9pw4",
        "g2mb2ic2ih20iw24oc2kh7ph3sh2sw2", "g2mb2ic2ih20iw19oc2kh3ph2dh1dw1",
        "g2mb2ic2id5ih8iw10oc2kd3kh3kw3pd1ph1pw1sd2", "g2mb1ic2ih30iw40oc2kh13ph6",
        "g2mb3ic2ih7oc2kh3ph1sh3sw3", "g2mb3ic8ih9iw16oc6kh3ph1", "g3mb2ic6ih14oc9kh5ph2"})
    for (int i = 0; i < 2; ++i) {
      const OperationCase item = integers_in_turn(
          gradient(line, all_types[turn % std::size(all_types)], mode_in_turn(turn)), turn);
      const auto& problem = std::get<ConvolutionProblem>(item.problem);
      BOOST_TEST(refusal_of(engine, problem) == "", line);
      check_split(engine, item, split_in_turn(turn++));
    }
}

BOOST_AUTO_TEST_CASE(random_numbers_of_every_type) {
  for (DataType type : all_types)
    for (const char* line : {"g8mb5ic8ih14iw14oc8kh3ph1", "g4mb2ic4iw300oc4kw17pw8"})
      check_uniform(gradient(line, type), engine.name(), 4);
}

// NaN and infinities reach the sums of their products, and no others, also where a row of dy ends
// before the row of x.
BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (const char* line : {"g3mb2ic3ih9iw13oc3kh3ph0", "g3mb2ic3ih11iw23oc3kh2sh4sw4"})
    for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
      for (const bool of_dy : {false, true}) {
        OperationCase item = integers_of(gradient(line, type), 5);
        replace_zeros(item);
        HostTensor& tensor = item[of_dy ? "dy" : "x"];
        const auto& problem = std::get<ConvolutionProblem>(item.problem);
        tensor.at(static_cast<std::int64_t>(tensor.values.size()) / 3) = std::nan("");
        if (!of_dy)
          for (std::int64_t row = 0; row < problem.in[1]; ++row)
            tensor.at((row + 1) * problem.in[2] - 1) = std::numeric_limits<double>::infinity();
        check_integers(item, engine.name());
      }
}

BOOST_AUTO_TEST_CASE(refusals_name_their_reason) {
  BOOST_TEST(refusal_of(engine, gradient("g8mb4ic8ih9oc8kh3ph1", KILN_DATA_HALF)) == "");
  BOOST_TEST(refusal_of(engine, gradient("g2mb4ic32ih9oc8kh3ph1", KILN_DATA_HALF)) ==
             "16 input channels a group; expected at most 8");
  BOOST_TEST(refusal_of(engine, gradient("g8mb4ic8ih9oc8kh3ph1", KILN_DATA_HALF,
                                         KILN_CROSS_CORRELATION, KILN_TENSOR_NHWC)) ==
             "the width stride of x is 8; expected 1");
  BOOST_TEST(refusal_of(engine, gradient("g8mb4ic8ih99oc8kh3kw79ph1pw9", KILN_DATA_FLOAT)) ==
             "a row of the filter has 79 taps; expected at most 72");
  BOOST_TEST(refusal_of(engine, gradient("g8mb4ic8ih99oc8kh3kw63ph1pw9", KILN_DATA_FLOAT))
                 .ends_with("places of a row; expected at most 48"));
}

BOOST_AUTO_TEST_SUITE_END()
