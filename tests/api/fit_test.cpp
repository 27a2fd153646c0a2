// Descriptors against each other: output sizes, and what does not fit.
#include <boost/test/unit_test.hpp>

#include "objects.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;

Sizes output_dims(const ConvolutionDesc& convolution, const TensorDesc& x, const FilterDesc& w,
                  int rank) {
  Sizes dims(static_cast<std::size_t>(rank));
  succeeds(kilnGetConvolutionForwardOutputDim(convolution, x, w, rank, dims.data()));
  return dims;
}

const ConvolutionDesc& same3x3() {
  static const ConvolutionDesc instance({1, 1}, {1, 1}, {1, 1}, {1, 1});
  return instance;
}

// The status of creating a plan. The plan, if any, is destroyed.
kilnStatus_t plan_status(kilnTensorDescriptor_t x, kilnFilterDescriptor_t w,
                         kilnConvolutionDescriptor_t convolution, kilnTensorDescriptor_t y) {
  const TestHandle handle;
  kilnPlan_t plan = nullptr;
  const kilnStatus_t status = kilnCreateConvolutionForwardPlan(handle, x, w, convolution, y, &plan);
  BOOST_TEST((plan != nullptr) == (status == KILN_STATUS_SUCCESS));
  kilnDestroyPlan(plan);
  return status;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fit)

BOOST_AUTO_TEST_CASE(output_sizes) {
  BOOST_TEST(output_dims(same3x3(), TensorDesc(f32, {128, 64, 56, 56}),
                         FilterDesc(f32, {128, 64, 3, 3}), 4) == (Sizes{128, 128, 56, 56}));
  const ConvolutionDesc strided({3, 0}, {2, -1}, {2, 3}, {1, 2}, 2);
  // (20 + 3 + 2 - 7) / 2 + 1 and (30 - 1 - 9) / 3 + 1
  BOOST_TEST(output_dims(strided, TensorDesc(f32, {0, 4, 20, 30}), FilterDesc(f32, {6, 2, 7, 5}),
                         4) == (Sizes{0, 6, 10, 7}));
  const ConvolutionDesc line({0}, {0}, {1}, {4});
  BOOST_TEST(output_dims(line, TensorDesc(f32, {1, 1, 9}), FilterDesc(f32, {1, 1, 3}), 3) ==
             (Sizes{1, 1, 1}));
  const ConvolutionDesc volume({1, 1, 1}, {1, 1, 1}, {2, 2, 2}, {1, 1, 1});
  BOOST_TEST(output_dims(volume, TensorDesc(f32, {2, 3, 8, 9, 10}),
                         FilterDesc(f32, {4, 3, 3, 3, 3}), 5) == (Sizes{2, 4, 4, 5, 5}));
  std::int64_t n, k, p, q;
  succeeds(kilnGetConvolution2dForwardOutputDim(same3x3(), TensorDesc(f32, {2, 3, 5, 7}),
                                                FilterDesc(f32, {4, 3, 3, 3}), &n, &k, &p, &q));
  BOOST_TEST((Sizes{n, k, p, q} == Sizes{2, 4, 5, 7}));
}

BOOST_AUTO_TEST_CASE(output_size_queries_refuse_what_does_not_fit) {
  const TensorDesc x(f32, {2, 3, 5, 7});
  const FilterDesc w(f32, {4, 3, 3, 3});
  const TensorDesc unset_x;
  const FilterDesc unset_w;
  const ConvolutionDesc unset_convolution;
  std::int64_t dims[4], n, k, p, q;
  const auto ask = [&](kilnConvolutionDescriptor_t convolution, kilnTensorDescriptor_t tensor,
                       kilnFilterDescriptor_t filter, int rank = 4) {
    return kilnGetConvolutionForwardOutputDim(convolution, tensor, filter, rank, dims);
  };
  bad_param(ask(nullptr, x, w), {"convDesc is null", "kilnCreateConvolutionDescriptor"});
  bad_param(ask(same3x3(), nullptr, w), {"xDesc is null"});
  bad_param(ask(same3x3(), x, nullptr), {"wDesc is null"});
  bad_param(ask(same3x3(), x, w, 3), {"nbDims is 3", "expected 4", "xDesc"});
  bad_param(kilnGetConvolutionForwardOutputDim(same3x3(), x, w, 4, nullptr), {"dims is null"});
  fails(ask(unset_convolution, x, w), KILN_STATUS_NOT_INITIALIZED, {"convDesc", "never set"});
  fails(ask(same3x3(), unset_x, w), KILN_STATUS_NOT_INITIALIZED, {"xDesc", "never set"});
  fails(ask(same3x3(), x, unset_w), KILN_STATUS_NOT_INITIALIZED, {"wDesc", "never set"});
  bad_param(kilnGetConvolution2dForwardOutputDim(same3x3(), x, w, nullptr, &k, &p, &q),
            {"n is null"});
  bad_param(kilnGetConvolution2dForwardOutputDim(same3x3(), x, w, &n, &k, &p, nullptr),
            {"q is null"});
  bad_param(kilnGetConvolution2dForwardOutputDim(same3x3(), TensorDesc(f32, {1, 1, 4}), w, &n, &k,
                                                 &p, &q),
            {"xDesc has 3 dimensions", "expected 4"});
  bad_param(ask(same3x3(), TensorDesc(f32, {1, 3, 4, 4, 4}), w, 5),
            {"xDesc has 5 dimensions", "expected 4"});
  bad_param(ask(same3x3(), x, FilterDesc(f32, {4, 3, 3})),
            {"wDesc has 3 dimensions", "expected 4"});
  bad_param(ask(same3x3(), x, FilterDesc(f32, {4, 3, 8, 3})),
            {"wDesc", "dims[2] is 8", "the 7 elements", "xDesc's dims[2] 5", "padding 1 before"});
  const std::int64_t vast = std::int64_t{1} << 50;
  const ConvolutionDesc far({0, 0}, {0, 0}, {1, 1}, {2147483647, 1});
  bad_param(ask(far, x, FilterDesc(f32, {4, 3, vast, 3}, Sizes{3, 1, 0, 0})),
            {"dims[2] is 1125899906842624", "dilation[0] 2147483647"});
}

BOOST_AUTO_TEST_CASE(channels_groups_and_types_must_agree) {
  const TensorDesc x(f32, {2, 6, 5, 7}), y(f32, {2, 4, 5, 7});
  const FilterDesc w(f32, {4, 6, 3, 3});
  succeeds(plan_status(x, w, same3x3(), y));
  bad_param(plan_status(x, FilterDesc(f32, {4, 5, 3, 3}), same3x3(), y),
            {"wDesc has 5 input channels", "expected 6", "groupCount 1"});
  const ConvolutionDesc two_groups({1, 1}, {1, 1}, {1, 1}, {1, 1}, 2);
  const ConvolutionDesc four_groups({1, 1}, {1, 1}, {1, 1}, {1, 1}, 4);
  const ConvolutionDesc three_groups({1, 1}, {1, 1}, {1, 1}, {1, 1}, 3);
  succeeds(plan_status(x, FilterDesc(f32, {4, 3, 3, 3}), two_groups, y));
  bad_param(plan_status(x, w, two_groups, y), {"wDesc has 6 input channels", "expected 3"});
  bad_param(plan_status(x, w, four_groups, y),
            {"xDesc has 6 channels", "multiple of groupCount 4"});
  bad_param(plan_status(x, FilterDesc(f32, {4, 2, 3, 3}), three_groups, y),
            {"wDesc has 4 output channels", "multiple of groupCount 3"});
  bad_param(plan_status(x, FilterDesc(KILN_DATA_HALF, {4, 6, 3, 3}), same3x3(), y),
            {"wDesc has data type f16", "expected f32"});
  bad_param(plan_status(x, w, same3x3(), TensorDesc(KILN_DATA_DOUBLE, {2, 4, 5, 7})),
            {"yDesc has data type f64", "expected f32"});
  bad_param(plan_status(TensorDesc(KILN_DATA_DOUBLE, {2, 6, 5, 7}),
                        FilterDesc(KILN_DATA_DOUBLE, {4, 6, 3, 3}), same3x3(),
                        TensorDesc(KILN_DATA_DOUBLE, {2, 4, 5, 7})),
            {"computeType is f32", "expected f64"});
  const ConvolutionDesc in_double({1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, KILN_CROSS_CORRELATION,
                                  KILN_DATA_DOUBLE);
  bad_param(plan_status(x, w, in_double, y), {"computeType is f64", "expected f32"});
}

BOOST_AUTO_TEST_CASE(wrong_output_sizes_are_answered_with_the_right_ones) {
  const TensorDesc x(f32, {128, 128, 56, 56});
  const FilterDesc w(f32, {128, 128, 3, 3});
  bad_param(plan_status(x, w, same3x3(), TensorDesc(f32, {128, 128, 57, 56})),
            {"yDesc has sizes 128x128x57x56; the convolution gives 128x128x56x56"});
  bad_param(plan_status(x, w, same3x3(), TensorDesc(f32, {127, 128, 56, 56})),
            {"127x128x56x56", "gives 128x128x56x56"});
  bad_param(plan_status(x, w, same3x3(), TensorDesc(f32, {128, 128, 56})),
            {"sizes 128x128x56;", "gives 128x128x56x56"});
}

BOOST_AUTO_TEST_CASE(outputs_that_overlap_themselves_are_refused) {
  const TensorDesc x(f32, {2, 3, 4, 4});
  const FilterDesc w(f32, {3, 3, 1, 1});
  const ConvolutionDesc pointwise({0, 0}, {0, 0}, {1, 1}, {1, 1});
  const auto with_y_strides = [&](const Sizes& strides) {
    return plan_status(x, w, pointwise, TensorDesc(f32, {2, 3, 4, 4}, strides));
  };
  succeeds(with_y_strides({48, 16, 4, 1}));
  succeeds(with_y_strides({48, 1, 12, 3}));     // channels last
  succeeds(with_y_strides({1, 2, 24, 6}));      // any order
  succeeds(with_y_strides({1000, 100, 8, 1}));  // padded rows
  succeeds(with_y_strides({49, 16, 4, 1}));     // a gap
  // Interleaved: with strides 3 and 4, elements share an address only if they are 4 rows apart (3a
  // == 4b), and there are only 4 rows. With strides 2 and 3, rows 3 apart share addresses.
  succeeds(with_y_strides({100, 30, 3, 4}));
  bad_param(with_y_strides({100, 30, 2, 3}), {"yDesc: strides are 100:30:2:3", "sizes 2x3x4x4"});
  bad_param(with_y_strides({0, 16, 4, 1}), {"yDesc: strides are 0:16:4:1", "share an address"});
  bad_param(with_y_strides({48, 16, 3, 1}), {"yDesc: strides are 48:16:3:1"});
  bad_param(with_y_strides({48, 16, 4, 0}), {"yDesc: strides"});
  bad_param(with_y_strides({47, 16, 4, 1}), {"yDesc: strides"});
  // With one image, the stride between images does not matter; with an empty batch, no stride does.
  succeeds(plan_status(TensorDesc(f32, {1, 3, 4, 4}), w, pointwise,
                       TensorDesc(f32, {1, 3, 4, 4}, Sizes{0, 16, 4, 1})));
  succeeds(plan_status(TensorDesc(f32, {0, 3, 4, 4}), w, pointwise,
                       TensorDesc(f32, {0, 3, 4, 4}, Sizes{0, 16, 4, 1})));
  // Inputs may have elements that overlap.
  succeeds(plan_status(TensorDesc(f32, {2, 3, 4, 4}, Sizes{0, 0, 4, 1}),
                       FilterDesc(f32, {3, 3, 1, 1}, Sizes{0, 1, 1, 1}), pointwise,
                       TensorDesc(f32, {2, 3, 4, 4})));
}

BOOST_AUTO_TEST_CASE(null_and_unset_descriptors_make_no_plan) {
  const TensorDesc x(f32, {2, 3, 5, 7}), y(f32, {2, 4, 5, 7}), unset_tensor;
  const FilterDesc w(f32, {4, 3, 3, 3}), unset_filter;
  const ConvolutionDesc unset_convolution;
  bad_param(plan_status(nullptr, w, same3x3(), y), {"xDesc is null"});
  bad_param(plan_status(x, nullptr, same3x3(), y), {"wDesc is null"});
  bad_param(plan_status(x, w, nullptr, y), {"convDesc is null"});
  bad_param(plan_status(x, w, same3x3(), nullptr), {"yDesc is null"});
  fails(plan_status(unset_tensor, w, same3x3(), y), KILN_STATUS_NOT_INITIALIZED, {"xDesc"});
  fails(plan_status(x, unset_filter, same3x3(), y), KILN_STATUS_NOT_INITIALIZED, {"wDesc"});
  fails(plan_status(x, w, unset_convolution, y), KILN_STATUS_NOT_INITIALIZED, {"convDesc"});
  fails(plan_status(x, w, same3x3(), unset_tensor), KILN_STATUS_NOT_INITIALIZED, {"yDesc"});
  const TestHandle handle;
  kilnPlan_t plan = nullptr;
  bad_param(kilnCreateConvolutionForwardPlan(handle, x, w, same3x3(), y, nullptr),
            {"plan is null"});
  bad_param(kilnCreateConvolutionForwardPlan(nullptr, x, w, same3x3(), y, &plan),
            {"handle is null; expected a handle from kilnCreate"});
  BOOST_TEST(plan == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
