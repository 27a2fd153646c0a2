// Descriptors: what they hold, and every value they refuse.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>

#include "objects.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;
constexpr auto nchw = KILN_TENSOR_NCHW;
constexpr std::int64_t huge = std::int64_t{1} << 40;

struct Read {
  kilnDataType_t type{};
  int rank = 0;
  Sizes dims = Sizes(5, -7), strides = Sizes(5, -7);
};

Read read(kilnTensorDescriptor_t descriptor, int requested = 5) {
  Read out;
  succeeds(kilnGetTensorNdDescriptor(descriptor, requested, &out.type, &out.rank, out.dims.data(),
                                     out.strides.data()));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_descriptors)

BOOST_AUTO_TEST_CASE(a_strided_tensor_reads_back) {
  const TensorDesc tensor(KILN_DATA_HALF, {2, 3, 4}, Sizes{100, 5, 20});
  const Read got = read(tensor);
  BOOST_TEST(got.type == KILN_DATA_HALF);
  BOOST_TEST(got.rank == 3);
  BOOST_TEST(got.dims == (Sizes{2, 3, 4, -7, -7}));
  BOOST_TEST(got.strides == (Sizes{100, 5, 20, -7, -7}));
}

BOOST_AUTO_TEST_CASE(dense_formats_have_their_strides) {
  BOOST_TEST(read(TensorDesc(f32, {2, 3, 5, 7})).strides == (Sizes{105, 35, 7, 1, -7}));
  BOOST_TEST(read(TensorDesc(f32, {2, 3, 5, 7}, KILN_TENSOR_NHWC)).strides ==
             (Sizes{105, 1, 21, 3, -7}));
  BOOST_TEST(read(TensorDesc(f32, {2, 3, 5, 7, 4}, KILN_TENSOR_NHWC)).strides ==
             (Sizes{420, 1, 84, 12, 3}));
  BOOST_TEST(read(TensorDesc(f32, {2, 3, 5}, KILN_TENSOR_NHWC)).strides ==
             (Sizes{15, 1, 3, -7, -7}));
  const TensorDesc tensor;
  succeeds(kilnSetTensor4dDescriptor(tensor, nchw, KILN_DATA_BFLOAT16, 2, 3, 5, 7));
  BOOST_TEST(read(tensor).dims == (Sizes{2, 3, 5, 7, -7}));
  BOOST_TEST(read(tensor).strides == (Sizes{105, 35, 7, 1, -7}));
}

BOOST_AUTO_TEST_CASE(an_empty_batch_a_broadcast_and_a_large_tensor_are_legal) {
  BOOST_TEST(read(TensorDesc(f32, {0, 3, 5, 7})).dims[0] == 0);
  BOOST_TEST(read(TensorDesc(f32, {8, 3, 5, 7}, Sizes{0, 35, 7, 1})).strides[0] == 0);
  BOOST_TEST(read(TensorDesc(f32, {1 << 16, 1 << 10, 64, 64})).strides[0] == 1 << 22);
}

BOOST_AUTO_TEST_CASE(reading_writes_no_more_than_asked_for) {
  const TensorDesc tensor(f32, {2, 3, 5, 7});
  const Read got = read(tensor, 2);
  BOOST_TEST(got.rank == 4);
  BOOST_TEST(got.dims == (Sizes{2, 3, -7, -7, -7}));
  succeeds(kilnGetTensorNdDescriptor(tensor, 5, nullptr, nullptr, nullptr, nullptr));
  bad_param(kilnGetTensorNdDescriptor(tensor, -1, nullptr, nullptr, nullptr, nullptr),
            {"nbDimsRequested is -1", "at least 0"});
}

BOOST_AUTO_TEST_CASE(null_and_unset_are_refused) {
  bad_param(kilnCreateTensorDescriptor(nullptr), {"descriptor is null"});
  succeeds(kilnDestroyTensorDescriptor(nullptr));
  const std::int64_t dims[] = {1, 1, 1, 1};
  bad_param(kilnSetTensorNdDescriptorEx(nullptr, nchw, f32, 4, dims),
            {"descriptor is null", "expected a tensor descriptor from kilnCreateTensorDescriptor"});
  bad_param(kilnSetTensorNdDescriptor(nullptr, f32, 4, dims, dims), {"descriptor is null"});
  bad_param(kilnSetTensor4dDescriptor(nullptr, nchw, f32, 1, 1, 1, 1), {"descriptor is null"});
  bad_param(kilnGetTensorNdDescriptor(nullptr, 0, nullptr, nullptr, nullptr, nullptr),
            {"descriptor is null"});
  const TensorDesc tensor;
  bad_param(kilnSetTensorNdDescriptorEx(tensor, nchw, f32, 4, nullptr),
            {"dims is null", "array of nbDims sizes"});
  bad_param(kilnSetTensorNdDescriptor(tensor, f32, 4, nullptr, dims), {"dims is null"});
  bad_param(kilnSetTensorNdDescriptor(tensor, f32, 4, dims, nullptr),
            {"strides is null", "array of nbDims strides"});
  fails(kilnGetTensorNdDescriptor(tensor, 0, nullptr, nullptr, nullptr, nullptr),
        KILN_STATUS_NOT_INITIALIZED, {"descriptor", "never set"});
}

BOOST_AUTO_TEST_CASE(an_object_of_another_kind_is_refused) {
  const FilterDesc filter(f32, {1, 1, 1, 1});
  kilnTensorDescriptor_t wrong = nullptr;
  kilnFilterDescriptor_t right = filter;
  std::memcpy(&wrong, &right, sizeof wrong);
  bad_param(kilnSetTensor4dDescriptor(wrong, nchw, f32, 1, 1, 1, 1),
            {"descriptor is not a tensor descriptor", "not destroyed"});
  bad_param(kilnDestroyTensorDescriptor(wrong), {"descriptor is not a tensor descriptor"});
}

BOOST_AUTO_TEST_CASE(wrong_values_are_named_and_change_nothing) {
  const TensorDesc tensor(f32, {2, 3, 5, 7});
  const auto dense = [&](kilnTensorFormat_t format, kilnDataType_t type, int rank,
                         const Sizes& dims) {
    return kilnSetTensorNdDescriptorEx(tensor, format, type, rank, dims.data());
  };
  const auto strided = [&](const Sizes& dims, const Sizes& strides) {
    return kilnSetTensorNdDescriptor(tensor, f32, static_cast<int>(dims.size()), dims.data(),
                                     strides.data());
  };
  bad_param(dense(nchw, f32, 0, {1}), {"nbDims is 0", "expected 1 to 8"});
  bad_param(dense(nchw, f32, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}), {"nbDims is 9"});
  bad_param(dense(nchw, f32, -4, {1}), {"nbDims is -4"});
  bad_param(dense(nchw, static_cast<kilnDataType_t>(9), 4, {1, 1, 1, 1}),
            {"dataType is 9", "KILN_DATA_BFLOAT16 (103)"});
  bad_param(dense(nchw, static_cast<kilnDataType_t>(-1), 4, {1, 1, 1, 1}), {"dataType is -1"});
  bad_param(dense(static_cast<kilnTensorFormat_t>(5), f32, 4, {1, 1, 1, 1}),
            {"format is 5", "KILN_TENSOR_NHWC"});
  bad_param(dense(nchw, f32, 4, {-1, 3, 5, 7}), {"dims[0] is -1", "at least 0"});
  bad_param(dense(nchw, f32, 4, {1, 0, 5, 7}), {"dims[1] is 0", "at least 1"});
  bad_param(dense(nchw, f32, 4, {1, 3, 5, -7}), {"dims[3] is -7", "at least 1"});
  bad_param(dense(nchw, f32, 4, {1, huge, huge, 1}),
            {"dims[2] is 1099511627776", "product in bytes is below 2^63"});
  bad_param(dense(nchw, f32, 3, {std::numeric_limits<std::int64_t>::max(), 1, 1}),
            {"dims[0] is 9223372036854775807", "below 2^63"});
  bad_param(strided({2, 3, 5, 7}, {105, 35, -7, 1}), {"strides[2] is -7", "0 to broadcast"});
  bad_param(strided({2, 3, 5, 7}, {105, std::int64_t{1} << 62, 7, 1}),
            {"strides[1] is", "below 2^63"});
  bad_param(strided({huge, huge, huge, 1}, {0, 0, 0, 0}), {"dims[1] is", "below 2^63"});
  bad_param(kilnSetTensor4dDescriptor(tensor, nchw, f32, -1, 1, 1, 1), {"n is -1", "at least 0"});
  bad_param(kilnSetTensor4dDescriptor(tensor, nchw, f32, 1, 0, 1, 1), {"c is 0", "at least 1"});
  bad_param(kilnSetTensor4dDescriptor(tensor, nchw, f32, 1, 1, 0, 1), {"h is 0"});
  bad_param(kilnSetTensor4dDescriptor(tensor, nchw, f32, 1, 1, 1, -2), {"w is -2"});
  BOOST_TEST(read(tensor).dims == (Sizes{2, 3, 5, 7, -7}));
  BOOST_TEST(read(tensor).strides == (Sizes{105, 35, 7, 1, -7}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(filter_descriptors)

BOOST_AUTO_TEST_CASE(filters_read_back) {
  const FilterDesc dense(KILN_DATA_DOUBLE, {4, 3, 5, 7}, KILN_TENSOR_NHWC);
  Read got;
  succeeds(kilnGetFilterNdDescriptor(dense, 5, &got.type, &got.rank, got.dims.data(),
                                     got.strides.data()));
  BOOST_TEST(got.type == KILN_DATA_DOUBLE);
  BOOST_TEST(got.rank == 4);
  BOOST_TEST(got.dims == (Sizes{4, 3, 5, 7, -7}));
  BOOST_TEST(got.strides == (Sizes{105, 1, 21, 3, -7}));

  const FilterDesc strided(f32, {4, 3, 5}, Sizes{0, 8, 1});
  succeeds(kilnGetFilterNdDescriptor(strided, 5, nullptr, nullptr, nullptr, got.strides.data()));
  BOOST_TEST(got.strides == (Sizes{0, 8, 1, 3, -7}));
  succeeds(kilnSetFilter4dDescriptor(strided, f32, nchw, 2, 3, 5, 7));
  succeeds(kilnGetFilterNdDescriptor(strided, 5, nullptr, &got.rank, got.dims.data(), nullptr));
  BOOST_TEST(got.rank == 4);
  BOOST_TEST(got.dims == (Sizes{2, 3, 5, 7, -7}));
}

BOOST_AUTO_TEST_CASE(wrong_values_are_named) {
  bad_param(kilnCreateFilterDescriptor(nullptr), {"descriptor is null"});
  succeeds(kilnDestroyFilterDescriptor(nullptr));
  const FilterDesc filter;
  const std::int64_t dims[] = {0, 1, 1, 1}, ones[] = {1, 1, 1, 1};
  const std::int64_t negative[] = {1, 1, 1, -1};
  fails(kilnGetFilterNdDescriptor(filter, 0, nullptr, nullptr, nullptr, nullptr),
        KILN_STATUS_NOT_INITIALIZED, {"never set"});
  bad_param(kilnSetFilterNdDescriptor(nullptr, f32, nchw, 4, ones),
            {"descriptor is null", "kilnCreateFilterDescriptor"});
  bad_param(kilnSetFilterNdDescriptor(filter, f32, nchw, 4, nullptr), {"dims is null"});
  bad_param(kilnSetFilterNdDescriptor(filter, f32, nchw, 4, dims), {"dims[0] is 0", "at least 1"});
  bad_param(kilnSetFilterNdDescriptor(filter, f32, nchw, 7, ones), {"nbDims is 7"});
  bad_param(kilnSetFilterNdDescriptor(filter, static_cast<kilnDataType_t>(4), nchw, 4, ones),
            {"dataType is 4"});
  bad_param(kilnSetFilterNdDescriptor(filter, f32, static_cast<kilnTensorFormat_t>(2), 4, ones),
            {"format is 2"});
  bad_param(kilnSetFilterNdDescriptorStrided(filter, f32, 4, ones, nullptr), {"strides is null"});
  bad_param(kilnSetFilterNdDescriptorStrided(filter, f32, 4, ones, negative), {"strides[3] is -1"});
  bad_param(kilnSetFilterNdDescriptorStrided(nullptr, f32, 4, ones, ones), {"descriptor is null"});
  bad_param(kilnSetFilter4dDescriptor(nullptr, f32, nchw, 1, 1, 1, 1), {"descriptor is null"});
  bad_param(kilnSetFilter4dDescriptor(filter, f32, nchw, 0, 1, 1, 1), {"k is 0", "at least 1"});
  bad_param(kilnSetFilter4dDescriptor(filter, f32, nchw, 1, -1, 1, 1), {"c is -1"});
  bad_param(kilnSetFilter4dDescriptor(filter, f32, nchw, 1, 1, 0, 1), {"h is 0"});
  bad_param(kilnSetFilter4dDescriptor(filter, f32, nchw, 1, 1, 1, 0), {"w is 0"});
  bad_param(kilnGetFilterNdDescriptor(nullptr, 0, nullptr, nullptr, nullptr, nullptr),
            {"descriptor is null"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(convolution_descriptors)

BOOST_AUTO_TEST_CASE(a_convolution_reads_back) {
  const ConvolutionDesc convolution({1, -2, 3}, {4, 5, -6}, {1, 2, 3}, {3, 2, 1}, 8,
                                    KILN_CONVOLUTION, KILN_DATA_DOUBLE);
  int count = 0;
  Sizes before(3), after(3), stride(3), dilation(3);
  kilnConvolutionMode_t mode{};
  kilnDataType_t type{};
  succeeds(kilnGetConvolutionNdDescriptor(convolution, 3, &count, before.data(), after.data(),
                                          stride.data(), dilation.data(), &mode, &type));
  BOOST_TEST(count == 3);
  BOOST_TEST(before == (Sizes{1, -2, 3}));
  BOOST_TEST(after == (Sizes{4, 5, -6}));
  BOOST_TEST(stride == (Sizes{1, 2, 3}));
  BOOST_TEST(dilation == (Sizes{3, 2, 1}));
  BOOST_TEST(mode == KILN_CONVOLUTION);
  BOOST_TEST(type == KILN_DATA_DOUBLE);

  Sizes one(3, -7);
  succeeds(kilnGetConvolutionNdDescriptor(convolution, 1, nullptr, one.data(), nullptr, nullptr,
                                          nullptr, nullptr, nullptr));
  BOOST_TEST(one == (Sizes{1, -7, -7}));
}

BOOST_AUTO_TEST_CASE(padding_after_defaults_to_that_before_and_groups_stay) {
  const ConvolutionDesc convolution;
  std::int64_t groups = 0;
  succeeds(kilnGetConvolutionGroupCount(convolution, &groups));
  BOOST_TEST(groups == 1);
  succeeds(kilnSetConvolutionGroupCount(convolution, 6));
  const std::int64_t pad[] = {3, 2}, one[] = {1, 1};
  succeeds(kilnSetConvolutionNdDescriptor(convolution, 2, pad, nullptr, one, one,
                                          KILN_CROSS_CORRELATION, f32));
  Sizes after(2);
  succeeds(kilnGetConvolutionNdDescriptor(convolution, 2, nullptr, nullptr, after.data(), nullptr,
                                          nullptr, nullptr, nullptr));
  BOOST_TEST(after == (Sizes{3, 2}));
  succeeds(kilnGetConvolutionGroupCount(convolution, &groups));
  BOOST_TEST(groups == 6);
}

BOOST_AUTO_TEST_CASE(alignment_is_sixteen_until_set_and_stays) {
  const ConvolutionDesc convolution;
  std::int64_t alignment = 0;
  succeeds(kilnGetConvolutionAlignment(convolution, &alignment));
  BOOST_TEST(alignment == 16);
  succeeds(kilnSetConvolutionAlignment(convolution, 2));
  const std::int64_t none[] = {0, 0}, one[] = {1, 1};
  succeeds(kilnSetConvolutionNdDescriptor(convolution, 2, none, nullptr, one, one,
                                          KILN_CROSS_CORRELATION, f32));
  succeeds(kilnGetConvolutionAlignment(convolution, &alignment));
  BOOST_TEST(alignment == 2);
  bad_param(kilnSetConvolutionAlignment(convolution, 0), {"alignment is 0", "power of two"});
  bad_param(kilnSetConvolutionAlignment(convolution, 24), {"alignment is 24", "power of two"});
  bad_param(kilnSetConvolutionAlignment(convolution, 8192), {"alignment is 8192", "4096"});
  bad_param(kilnSetConvolutionAlignment(nullptr, 16), {"descriptor is null"});
  bad_param(kilnGetConvolutionAlignment(nullptr, &alignment), {"descriptor is null"});
  bad_param(kilnGetConvolutionAlignment(convolution, nullptr), {"alignment is null"});
}

BOOST_AUTO_TEST_CASE(wrong_values_are_named) {
  bad_param(kilnCreateConvolutionDescriptor(nullptr), {"descriptor is null"});
  succeeds(kilnDestroyConvolutionDescriptor(nullptr));
  const ConvolutionDesc convolution;
  fails(kilnGetConvolutionNdDescriptor(convolution, 3, nullptr, nullptr, nullptr, nullptr, nullptr,
                                       nullptr, nullptr),
        KILN_STATUS_NOT_INITIALIZED, {"descriptor", "never set"});

  const std::int64_t one[] = {1, 1, 1}, bad[] = {1, 0, 1}, far[] = {0, huge, 0};
  const auto set = [&](int count, const std::int64_t* pad, const std::int64_t* stride,
                       const std::int64_t* dilation, int mode = KILN_CROSS_CORRELATION,
                       int type = f32) {
    return kilnSetConvolutionNdDescriptor(convolution, count, pad, nullptr, stride, dilation,
                                          static_cast<kilnConvolutionMode_t>(mode),
                                          static_cast<kilnDataType_t>(type));
  };
  bad_param(set(0, one, one, one), {"arrayLength is 0", "expected 1, 2 or 3"});
  bad_param(set(4, one, one, one), {"arrayLength is 4"});
  bad_param(set(3, nullptr, one, one), {"padBefore is null", "arrayLength values"});
  bad_param(set(3, one, nullptr, one), {"stride is null"});
  bad_param(set(3, one, one, nullptr), {"dilation is null"});
  bad_param(set(3, one, bad, one), {"stride[1] is 0", "expected 1 to 2147483647"});
  bad_param(set(3, one, one, bad), {"dilation[1] is 0", "expected 1 to 2147483647"});
  bad_param(set(3, one, far, one), {"stride[0] is 0"});
  bad_param(set(3, far, one, one), {"padBefore[1] is 1099511627776", "-2147483647 to 2147483647"});
  bad_param(kilnSetConvolutionNdDescriptor(convolution, 3, one, far, one, one,
                                           KILN_CROSS_CORRELATION, f32),
            {"padAfter[1] is 1099511627776"});
  bad_param(set(3, one, one, one, 2), {"mode is 2", "KILN_CROSS_CORRELATION (301)"});
  bad_param(set(3, one, one, one, KILN_CONVOLUTION, KILN_DATA_HALF),
            {"computeType is KILN_DATA_HALF", "KILN_DATA_DOUBLE for f64"});
  bad_param(set(3, one, one, one, KILN_CONVOLUTION, -3), {"computeType is -3"});
  bad_param(kilnSetConvolutionNdDescriptor(nullptr, 3, one, one, one, one, KILN_CONVOLUTION, f32),
            {"descriptor is null", "kilnCreateConvolutionDescriptor"});

  const auto set2d = [&](std::int64_t ph, std::int64_t pw, std::int64_t sh, std::int64_t sw,
                         std::int64_t dh, std::int64_t dw) {
    return kilnSetConvolution2dDescriptor(convolution, ph, pw, sh, sw, dh, dw, KILN_CONVOLUTION,
                                          f32);
  };
  bad_param(set2d(huge, 0, 1, 1, 1, 1), {"padH is 1099511627776", "2147483647"});
  bad_param(set2d(0, -huge, 1, 1, 1, 1), {"padW is -1099511627776", "-2147483647"});
  bad_param(set2d(0, 0, 0, 1, 1, 1), {"strideH is 0", "expected 1"});
  bad_param(set2d(0, 0, 1, -1, 1, 1), {"strideW is -1"});
  bad_param(set2d(0, 0, 1, 1, 0, 1), {"dilationH is 0"});
  bad_param(set2d(0, 0, 1, 1, 1, 0), {"dilationW is 0"});
  succeeds(set2d(-1, 1, 2, 2, 3, 3));
  bad_param(kilnSetConvolution2dDescriptor(nullptr, 0, 0, 1, 1, 1, 1, KILN_CONVOLUTION, f32),
            {"descriptor is null"});

  std::int64_t groups = 0;
  bad_param(kilnSetConvolutionGroupCount(convolution, 0), {"groupCount is 0", "at least 1"});
  bad_param(kilnSetConvolutionGroupCount(nullptr, 1), {"descriptor is null"});
  bad_param(kilnGetConvolutionGroupCount(convolution, nullptr), {"groupCount is null"});
  bad_param(kilnGetConvolutionGroupCount(nullptr, &groups), {"descriptor is null"});
  bad_param(kilnGetConvolutionNdDescriptor(convolution, -1, nullptr, nullptr, nullptr, nullptr,
                                           nullptr, nullptr, nullptr),
            {"arrayLengthRequested is -1"});
}

BOOST_AUTO_TEST_SUITE_END()
