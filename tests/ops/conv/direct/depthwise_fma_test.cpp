// Channels-first depthwise layers: data gradients with strides, whose phases' pixels alternate in a
// row of dx and are stored together; threads that have two rows.
#include <boost/test/unit_test.hpp>
#include <string_view>

#include "ops/conv/channels_last_case.hpp"

BOOST_AUTO_TEST_SUITE(depthwise_fma)

namespace {

using namespace test;

constexpr const char* engine = "depthwise_fma";

ConvolutionProblem gradient(const char* line, DataType type, kilnTensorFormat_t layout,
                            kilnConvolutionMode_t mode) {
  return problem_in(line, {type, KILN_MATH_DEFAULT}, layout, ConvolutionPass::dgrad, mode);
}

}  // namespace

// Rows that leave by 16 bytes, by fewer, and by single elements; an odd width, with a phase that
// has a pixel less; phases without taps; strides along one dimension alone; pairs of threads whose
// rows or images differ; several rows a group.
BOOST_AUTO_TEST_CASE(phases_side_by_side) {
  std::size_t turn = 0;
  for (const char* line :
       {"g3mb2ic3ih28iw112oc3oh14ow56kh3ph1sh2", "g5mb3ic5ih14oc5kh3ph1sh2",
        "g5mb3ic5ih15iw31oc5kh3ph1sh2", "g3mb2ic3ih10iw48oc3kh1sh2", "g2mb3ic2iw200oc2kw5sw4pw2",
        "g2mb2ic2ih9iw40oc2kh5ph2sh1sw2", "g2mb2ic2ih18iw16oc2kh3ph1sh2sw1",
        "g2mb2ic4ih20oc4kh3ph1sh2", "g3mb5ic3ih16iw24oc3kh7ph3sh2"})
    for (DataType type : all_types) {
      if (type == KILN_DATA_DOUBLE && std::string_view(line).find("ic4") != std::string_view::npos)
        continue;  // the sums do not fit in registers
      const kilnTensorFormat_t layout = turn % 5 == 4 ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
      const OperationCase item =
          integers_in_turn(gradient(line, type, layout, mode_in_turn(turn)), turn);
      check_integers(item, engine);
      ++turn;
    }
}

// Two rows of pixels a thread, and one where few rows would be left over: several images a block,
// filters of dilation, of one column and of several channels, tiles that end within a thread.
BOOST_AUTO_TEST_CASE(two_rows_a_thread) {
  std::size_t turn = 0;
  for (const char* line :
       {"g5mb3ic5ih14oc5kh3ph1", "g3mb2ic3ih13iw40oc3kh5ph2", "g2mb3ic2ih20iw56oc2kh7ph3",
        "g2mb2ic2ih18iw30oc2kh3ph2dh1", "g3mb2ic3ih16iw24oc3kh3kw2pw0ph1", "g2mb2ic10ih16oc2kh3ph1",
        "g2mb1ic2ih90iw72oc2kh3ph1", "g4mb7ic4ih7oc4kh3ph1"})
    for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF}) {
      const kilnTensorFormat_t layout = turn % 4 == 3 ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
      check_integers(integers_in_turn(problem_in(line, {type, KILN_MATH_DEFAULT}, layout,
                                                 ConvolutionPass::fprop, mode_in_turn(turn)),
                                      turn),
                     engine);
      ++turn;
    }
}

// Two threads that swap what they store may have different biases.
BOOST_AUTO_TEST_CASE(fused_operations) {
  for (const char* line : {"g6mb3ic6ih5iw8oc6kh3ph1", "g3mb2ic3ih20iw72oc6kh5ph2"})
    check_integers(integers_of(fused_in(line, {KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
                                        KILN_TENSOR_NCHW, KILN_TENSOR_NCHW)),
                   engine);
}

BOOST_AUTO_TEST_CASE(random_numbers_of_every_type) {
  for (DataType type : all_types)
    check_uniform(gradient("g3mb2ic3ih28iw56oc3oh14ow28kh5ph2sh2", type, KILN_TENSOR_NCHW,
                           KILN_CROSS_CORRELATION),
                  engine, 3);
}

BOOST_AUTO_TEST_SUITE_END()
