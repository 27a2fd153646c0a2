// The canonical reduction problem and its line; the axes that kernels combine.
#include "problem/reduction.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "engines/common/block_layout.hpp"
#include "problem_support.hpp"

using namespace kiln;
using test::expected;
using test::fault_of;
using test::tensor;

namespace {

// The axes of the sum of a dense tensor over all dimensions except the channels.
Combining bias_combining(const TensorDims& dims, kilnTensorFormat_t format) {
  const ReductionProblem problem =
      make_bias_gradient(tensor(4, dims, format), tensor(4, {1, dims[1], 1, 1}));
  return make_combining(problem.dims, {problem.a_strides, problem.c_strides},
                        {false, false, true, true, true}, 0, 1, 4);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reduction_problems)

BOOST_AUTO_TEST_CASE(sizes_strides_and_line) {
  const ReductionProblem problem =
      make_reduction(KILN_REDUCE_MEAN, tensor(4, {16, 64, 28, 30}), tensor(4, {16, 64, 1, 1}));
  BOOST_TEST(problem.rank == 2);
  BOOST_TEST((problem.dims == Dims{16, 64, 1, 28, 30}));
  BOOST_TEST((problem.out_dims == Dims{16, 64, 1, 1, 1}));
  BOOST_TEST((problem.a_strides == Dims{53760, 840, 0, 30, 1}));
  BOOST_TEST((problem.c_strides == Dims{64, 1, 0, 0, 0}));
  BOOST_TEST(problem.reduced() == 840);
  BOOST_TEST(to_line(problem) == "--op reduce_mean 16x64x28x30:16x64x1x1");
}

BOOST_AUTO_TEST_CASE(lines_say_what_is_not_usual) {
  Tensor a = tensor(3, {4, 6, 8}, KILN_TENSOR_NHWC, KILN_DATA_BFLOAT16);
  const Tensor c = tensor(3, {4, 1, 8}, KILN_TENSOR_NHWC, KILN_DATA_BFLOAT16);
  BOOST_TEST(to_line(make_reduction(KILN_REDUCE_MAX, a, c)) ==
             "--op reduce_max --dt bf16 --layout nhwc:nchw 4x6x8:4x1x8");
  a.strides = {0, 1, 6};
  BOOST_TEST(to_line(make_reduction(KILN_REDUCE_MAX, a, c)) ==
             "--op reduce_max --dt bf16 --a-strides 0:1:6 4x6x8:4x1x8");
}

BOOST_AUTO_TEST_CASE(a_bias_gradient_is_a_sum) {
  const Tensor dy = tensor(4, {16, 64, 28, 28}), db = tensor(4, {1, 64, 1, 1});
  BOOST_TEST((make_bias_gradient(dy, db) == make_reduction(KILN_REDUCE_SUM, dy, db)));
  BOOST_TEST(make_bias_gradient(dy, db).reduced() == 16 * 784);
  BOOST_TEST(fault_of([&] {
               make_bias_gradient(dy, tensor(4, {16, 64, 1, 1}));
             }) ==
             "dbDesc has sizes 16x64x1x1; expected 1x64x1x1, one element a channel of dyDesc");
}

BOOST_AUTO_TEST_CASE(over_an_empty_batch) {
  const Tensor a = tensor(4, {0, 3, 4, 5}), c = tensor(4, {1, 3, 1, 1}),
               kept = tensor(4, {0, 3, 1, 1});
  BOOST_TEST(make_reduction(KILN_REDUCE_SUM, a, c).reduced() == 0);
  BOOST_TEST(make_reduction(KILN_REDUCE_MAX, a, kept).dims[0] == 0);
  BOOST_TEST(fault_of([&] { make_reduction(KILN_REDUCE_MIN, a, c); }) ==
             "aDesc: dims[0] is 0; expected at least 1, for reduce_min over nothing has no value");
}

BOOST_AUTO_TEST_CASE(faults_name_the_field) {
  const Tensor a = tensor(4, {2, 3, 4, 5});
  BOOST_TEST(fault_of([&] {
               make_reduction(KILN_REDUCE_SUM, a, tensor(4, {2, 3, 2, 1}));
             }) == "cDesc: dims[2] is 2; expected 1 or 4, as aDesc has");
  BOOST_TEST(fault_of([&] {
               make_reduction(KILN_REDUCE_SUM, a, tensor(3, {2, 3, 1}));
             }).starts_with("cDesc has 3 dimensions; expected 4"));
  BOOST_TEST(fault_of([&] {
               make_reduction(static_cast<kilnReduceTensorOp_t>(5), a, tensor(4, {1, 1, 1, 1}));
             }) == "op is 5; expected " + expected<kilnReduceTensorOp_t>());
}

BOOST_AUTO_TEST_CASE(axes_that_kernels_combine) {
  const Combining nchw = bias_combining({4, 6, 9, 8}, KILN_TENSOR_NCHW);
  BOOST_TEST(nchw.inner_combined);
  BOOST_TEST(nchw.vector == 4);
  BOOST_TEST(nchw.combined.size() == 1u);  // height and width are joined
  BOOST_TEST(nchw.combined_vectors() == 18);
  BOOST_TEST(nchw.kept_vectors() == 6);
  const Combining nhwc = bias_combining({4, 6, 9, 8}, KILN_TENSOR_NHWC);
  BOOST_TEST(!nhwc.inner_combined);
  BOOST_TEST(nhwc.vector == 2);  // 6 channels are no multiple of 4
  BOOST_TEST(nhwc.combined_vectors() == 72);
  BOOST_TEST(nhwc.kept_vectors() == 3);
  BOOST_TEST(bias_combining({4, 6, 7, 7}, KILN_TENSOR_NCHW).vector == 1);
  BOOST_TEST(!nchw.wide_offset);
  BOOST_TEST(bias_combining({1, 6, 40000, 40000}, KILN_TENSOR_NCHW).wide_offset);
}

BOOST_AUTO_TEST_SUITE_END()
