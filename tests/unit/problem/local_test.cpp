// The canonical locally connected problem and its line.
#include "problem/local.hpp"

#include <boost/test/unit_test.hpp>

#include "problem/problem.hpp"
#include "problem_support.hpp"

namespace {

using namespace kiln;
using namespace test;

ConvolutionSpec spec_of(std::int64_t groups = 1) {
  ConvolutionSpec spec;
  spec.spatial = 2;
  spec.pad_before = spec.pad_after = {1, 1};
  spec.groups = groups;
  return spec;
}

const Tensor x = tensor(4, {2, 6, 5, 7}), y = tensor(4, {2, 4, 5, 7}),
             w = tensor(6, {5, 7, 4, 6, 3, 3}), own = tensor(7, {2, 5, 7, 4, 6, 3, 3});

}  // namespace

BOOST_AUTO_TEST_SUITE(local_problems)

BOOST_AUTO_TEST_CASE(weights_of_all_images) {
  const LocalProblem problem = make_local(spec_of(), x, w, nullptr, y);
  BOOST_TEST(!problem.per_image());
  BOOST_TEST((problem.outer_strides == OuterDims{0, 0, 7 * 216, 216}));
  BOOST_TEST((problem.conv.w_strides == Dims{54, 9, 0, 3, 1}));
  BOOST_TEST(problem.conv.flops() == 2.0 * 2 * 4 * 35 * 6 * 9);
  BOOST_TEST(text_of(Problem(problem)) ==
             "local g1mb2_ic6ih5iw7_oc4oh5ow7_kh3kw3_sh1sw1_ph1pw1_dh0dw0");
  const std::vector<Operand> operands = operands_of(problem);
  BOOST_TEST(names_of(operands) == "x w y!");
  BOOST_TEST(operands[1].count() == 35 * 216);
  BOOST_TEST(operands[1].span() == 35 * 216);
  BOOST_TEST(operands[1].contiguous());
  BOOST_TEST(operands[1].offset(216 * 8 + 5) == 216 * 8 + 5);
  BOOST_TEST(operands[1].coordinates(216 * 8 + 5) == "0,0,1,1,0,0,0,1,2");
  // With one image, its own weights and shared weights are the same.
  const Tensor one = tensor(7, {1, 5, 7, 4, 6, 3, 3});
  BOOST_TEST((make_local(spec_of(), x, one, nullptr, y) == problem));
}

BOOST_AUTO_TEST_CASE(weights_of_each_image) {
  const LocalProblem problem = make_local(spec_of(), x, own, nullptr, y);
  BOOST_TEST(problem.per_image());
  BOOST_TEST(problem.outer_strides[0] == 35 * 216);
  BOOST_TEST(to_line(problem).starts_with("--weights npkct g1mb2"));
  Tensor shared = own;
  shared.strides[0] = 0;
  BOOST_TEST(
      (make_local(spec_of(), x, shared, nullptr, y) == make_local(spec_of(), x, w, nullptr, y)));
}

BOOST_AUTO_TEST_CASE(orders_of_weights) {
  const Tensor filter = tensor(4, {4, 6, 3, 3});
  for (const char* order : {"ptck", "kctp", "pktc", "tkcp", "npkct", "nctkp", "tpnck"}) {
    const LocalProblem problem =
        make_local(spec_of(), x, local_weights(filter, y, order, "--weights"), nullptr, y);
    BOOST_TEST(to_line(problem).starts_with(cat("--weights ", order, " ")), to_line(problem));
  }
  BOOST_TEST(fault_of([&] { local_weights(filter, y, "pkc", "--weights"); }) ==
             "--weights is pkc; expected p, k, c and t in any order, and n where each image has "
             "weights of its own");
  BOOST_TEST(fault_of([&] {
               local_weights(tensor(5, {4, 6, 1, 3, 3}), tensor(5, {2, 4, 1, 5, 7}), "npkct", "it");
             }).starts_with("it is npkct with 3 dimensions of space; a tensor has at most 8"));
}

BOOST_AUTO_TEST_CASE(a_bias_has_the_sizes_of_the_output_or_ones) {
  const Tensor element = tensor(4, {1, 4, 5, 7}), channel = tensor(4, {1, 4, 1, 1}),
               row = tensor(4, {1, 1, 5, 1}), image = tensor(4, {2, 4, 5, 7});
  const LocalProblem problem = make_local(spec_of(), x, w, &element, y);
  BOOST_TEST(names_of(operands_of(problem)) == "x w bias y!");
  BOOST_TEST(to_line(problem).starts_with("--bias element g1"));
  BOOST_TEST(to_line(make_local(spec_of(), x, w, &channel, y)).starts_with("--bias channel g1"));
  const LocalProblem rows = make_local(spec_of(), x, w, &row, y);
  BOOST_TEST(to_line(rows).starts_with("--bias 1x1x5x1 g1"));
  BOOST_TEST((rows.bias_stride(1) == 0 && rows.bias_stride(3) == 1 && rows.bias_stride(4) == 0));
  BOOST_TEST(fault_of([&] { make_local(spec_of(), x, w, &image, y); }) ==
             "biasDesc: dims[0] is 2; expected 1, for all images share it");
}

BOOST_AUTO_TEST_CASE(gradients) {
  BOOST_TEST(names_of(operands_of(make_local_dgrad(spec_of(), w, y, x))) == "w dy dx!");
  const LocalProblem wgrad = make_local_wgrad(spec_of(), x, y, w);
  BOOST_TEST(names_of(operands_of(wgrad)) == "x dy dw!");
  BOOST_TEST(operands_of(wgrad).back().count() == 35 * 216);
}

BOOST_AUTO_TEST_CASE(faults_name_the_field) {
  const auto fault = [](const Tensor& weights, std::int64_t groups = 1) {
    return fault_of([&] { make_local(spec_of(groups), x, weights, nullptr, y); });
  };
  BOOST_TEST(fault(w) == "no fault");
  BOOST_TEST(fault(tensor(4, {4, 6, 3, 3})) ==
             "wDesc has 4 dimensions; expected 6, the output's 2 of space, K, C a group and the "
             "filter's, or 7 with the batch before them");
  BOOST_TEST(fault(tensor(6, {5, 6, 4, 6, 3, 3})) ==
             "wDesc: dims[1] is 6; expected 7, as dims[3] of yDesc");
  BOOST_TEST(fault(tensor(7, {3, 5, 7, 4, 6, 3, 3})) ==
             "wDesc: dims[0] is 3; expected 2, the images of yDesc, or 1 for weights that they "
             "share");
  BOOST_TEST(fault(tensor(6, {5, 7, 4, 5, 3, 3})) ==
             "wDesc has 5 input channels (dims[3]); expected 6, the 6 channels of xDesc over "
             "groupCount 1");
  BOOST_TEST(fault(tensor(7, {2, 5, 7, 4, 2, 3, 3}), 3) ==
             "wDesc has 4 output channels (dims[3]); expected a multiple of groupCount 3");
  BOOST_TEST(fault(tensor(6, {5, 7, 4, 6, 9, 3}))
                 .starts_with("wDesc: dims[4] is 9 with dilation[0] 1; expected a filter that"));
  BOOST_TEST(fault(Tensor{}).starts_with("wDesc was created but never set"));
  Tensor broadcast = w;
  broadcast.strides[0] = 0;
  BOOST_TEST(fault(broadcast) == "no fault");
  BOOST_TEST(fault_of([&] {
               make_local_wgrad(spec_of(), x, y, broadcast);
             }).starts_with("dwDesc: strides are 0:216:54:9:3:1 for sizes 5x7x4x6x3x3"));
}

BOOST_AUTO_TEST_SUITE_END()
