// Descriptors return what was set, by any of their functions.
#include <array>

#include "cudnn/described.hpp"

using namespace test;

namespace {

using Ints = std::vector<int>;

struct Got {
  cudnnDataType_t type{};
  Ints dims, strides;
};

Got read(cudnnTensorDescriptor_t descriptor) {
  Got got{{}, Ints(8), Ints(8)};
  int rank = 0;
  succeeds(cudnnGetTensorNdDescriptor(descriptor, 8, &got.type, &rank, got.dims.data(),
                                      got.strides.data()));
  got.dims.resize(static_cast<std::size_t>(rank));
  got.strides.resize(static_cast<std::size_t>(rank));
  return got;
}

void is(const Got& got, cudnnDataType_t type, const Ints& dims, const Ints& strides) {
  BOOST_TEST(got.type == type);
  BOOST_TEST(got.dims == dims, boost::test_tools::per_element());
  BOOST_TEST(got.strides == strides, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(descriptors)

BOOST_AUTO_TEST_CASE(tensors) {
  const TensorDesc t;
  succeeds(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 2, 3, 4, 5));
  is(read(t), CUDNN_DATA_HALF, {2, 3, 4, 5}, {60, 20, 5, 1});
  succeeds(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 4, 5));
  is(read(t), CUDNN_DATA_FLOAT, {2, 3, 4, 5}, {60, 1, 15, 3});
  succeeds(cudnnSetTensor4dDescriptorEx(t, CUDNN_DATA_DOUBLE, 2, 3, 4, 5, 100, 30, 7, 1));
  is(read(t), CUDNN_DATA_DOUBLE, {2, 3, 4, 5}, {100, 30, 7, 1});
  cudnnDataType_t type{};
  std::array<int, 8> v{};
  succeeds(
      cudnnGetTensor4dDescriptor(t, &type, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]));
  BOOST_TEST((v == std::array<int, 8>{2, 3, 4, 5, 100, 30, 7, 1}));
  std::size_t bytes = 0;
  succeeds(cudnnGetTensorSizeInBytes(t, &bytes));
  BOOST_TEST(bytes == 8u * (100 + 2 * 30 + 3 * 7 + 4 + 1));

  const Ints dims{2, 3, 4, 5, 6};
  succeeds(cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NHWC, CUDNN_DATA_BFLOAT16, 5, dims.data()));
  is(read(t), CUDNN_DATA_BFLOAT16, dims, {360, 1, 90, 18, 3});
  const Ints eight{2, 1, 3, 1, 2, 1, 2, 2}, strides{24, 24, 8, 8, 4, 4, 2, 1};
  succeeds(cudnnSetTensorNdDescriptor(t, CUDNN_DATA_INT32, 8, eight.data(), strides.data()));
  is(read(t), CUDNN_DATA_INT32, eight, strides);

  // A failed call leaves it as it was.
  fails(cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, -1, 1, 1),
        CUDNN_STATUS_BAD_PARAM, {});
  is(read(t), CUDNN_DATA_INT32, eight, strides);
}

BOOST_AUTO_TEST_CASE(filters) {
  const FilterDesc f;
  succeeds(cudnnSetFilter4dDescriptor(f, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, 8, 3, 5, 7));
  cudnnDataType_t type{};
  cudnnTensorFormat_t format{};
  std::array<int, 4> v{};
  succeeds(cudnnGetFilter4dDescriptor(f, &type, &format, &v[0], &v[1], &v[2], &v[3]));
  BOOST_TEST(type == CUDNN_DATA_HALF);
  BOOST_TEST(format == CUDNN_TENSOR_NHWC);
  BOOST_TEST((v == std::array<int, 4>{8, 3, 5, 7}));
  std::size_t bytes = 0;
  succeeds(cudnnGetFilterSizeInBytes(f, &bytes));
  BOOST_TEST(bytes == 2u * 8 * 3 * 5 * 7);
  const int dims[] = {4, 3, 2, 2, 2};
  succeeds(cudnnSetFilterNdDescriptor(f, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, dims));
  int rank = 0, out[5] = {};
  succeeds(cudnnGetFilterNdDescriptor(f, 5, &type, &format, &rank, out));
  BOOST_TEST(rank == 5);
  BOOST_TEST(out == dims, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(convolutions) {
  const ConvolutionDesc c;
  succeeds(
      cudnnSetConvolution2dDescriptor(c, 1, 2, 3, 4, 5, 6, CUDNN_CONVOLUTION, CUDNN_DATA_DOUBLE));
  std::array<int, 6> v{};
  cudnnConvolutionMode_t mode{};
  cudnnDataType_t type{};
  succeeds(
      cudnnGetConvolution2dDescriptor(c, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &mode, &type));
  BOOST_TEST((v == std::array<int, 6>{1, 2, 3, 4, 5, 6}));
  BOOST_TEST(mode == CUDNN_CONVOLUTION);
  BOOST_TEST(type == CUDNN_DATA_DOUBLE);
  succeeds(cudnnSetConvolutionGroupCount(c, 7));
  succeeds(cudnnSetConvolutionMathType(c, CUDNN_FMA_MATH));
  succeeds(cudnnSetConvolutionReorderType(c, CUDNN_NO_REORDER));
  int groups = 0, rank = 0, pad[3] = {}, stride[3] = {}, dilation[3] = {};
  cudnnMathType_t math{};
  cudnnReorderType_t reorder{};
  succeeds(cudnnGetConvolutionGroupCount(c, &groups));
  succeeds(cudnnGetConvolutionMathType(c, &math));
  succeeds(cudnnGetConvolutionReorderType(c, &reorder));
  BOOST_TEST(groups == 7);
  BOOST_TEST(math == CUDNN_FMA_MATH);
  BOOST_TEST(reorder == CUDNN_NO_REORDER);
  const int three[] = {1, 2, 3};
  succeeds(cudnnSetConvolutionNdDescriptor(c, 3, three, three, three, CUDNN_CROSS_CORRELATION,
                                           CUDNN_DATA_FLOAT));
  succeeds(cudnnGetConvolutionNdDescriptor(c, 3, &rank, pad, stride, dilation, &mode, &type));
  BOOST_TEST(rank == 3);
  for (const auto* values : {pad, stride, dilation})
    BOOST_TEST(std::vector<int>(values, values + 3) == std::vector<int>({1, 2, 3}),
               boost::test_tools::per_element());
  succeeds(cudnnGetConvolutionGroupCount(c, &groups));
  BOOST_TEST(groups == 7);  // kept
}

BOOST_AUTO_TEST_CASE(layers) {
  const PoolingDesc p;
  succeeds(cudnnSetPooling2dDescriptor(p, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                                       CUDNN_NOT_PROPAGATE_NAN, 5, 4, 2, 1, 3, 2));
  cudnnPoolingMode_t mode{};
  cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  std::array<int, 6> v{};
  succeeds(cudnnGetPooling2dDescriptor(p, &mode, &nan, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]));
  BOOST_TEST(mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  BOOST_TEST(nan == CUDNN_NOT_PROPAGATE_NAN);
  BOOST_TEST((v == std::array<int, 6>{5, 4, 2, 1, 3, 2}));

  const ActivationDesc a;
  succeeds(cudnnSetActivationDescriptor(a, CUDNN_ACTIVATION_ELU, CUDNN_NOT_PROPAGATE_NAN, 1.5));
  cudnnActivationMode_t activation{};
  double coefficient = 0;
  succeeds(cudnnGetActivationDescriptor(a, &activation, &nan, &coefficient));
  BOOST_TEST(activation == CUDNN_ACTIVATION_ELU);
  BOOST_TEST(coefficient == 1.5);
}

BOOST_AUTO_TEST_CASE(elements) {
  const OpTensorDesc o;
  succeeds(cudnnSetOpTensorDescriptor(o, CUDNN_OP_TENSOR_MAX, CUDNN_DATA_DOUBLE,
                                      CUDNN_NOT_PROPAGATE_NAN));
  cudnnOpTensorOp_t op{};
  cudnnDataType_t type{};
  cudnnNanPropagation_t nan{};
  succeeds(cudnnGetOpTensorDescriptor(o, &op, &type, &nan));
  BOOST_TEST(op == CUDNN_OP_TENSOR_MAX);
  BOOST_TEST(type == CUDNN_DATA_DOUBLE);

  const ReduceTensorDesc r;
  succeeds(cudnnSetReduceTensorDescriptor(r, CUDNN_REDUCE_TENSOR_AMAX, CUDNN_DATA_FLOAT,
                                          CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                          CUDNN_64BIT_INDICES));
  cudnnReduceTensorOp_t reduction{};
  cudnnReduceTensorIndices_t indices = CUDNN_REDUCE_TENSOR_FLATTENED_INDICES;
  cudnnIndicesType_t width{};
  succeeds(cudnnGetReduceTensorDescriptor(r, &reduction, &type, &nan, &indices, &width));
  BOOST_TEST(reduction == CUDNN_REDUCE_TENSOR_AMAX);
  BOOST_TEST(indices == CUDNN_REDUCE_TENSOR_NO_INDICES);
  BOOST_TEST(width == CUDNN_64BIT_INDICES);

  const TransformDesc t;
  const std::int32_t before[] = {0, 0, 1, 2}, after[] = {0, 0, 3, 4};
  succeeds(cudnnSetTensorTransformDescriptor(t, 4, CUDNN_TENSOR_NHWC, before, after, nullptr,
                                             CUDNN_TRANSFORM_UNFOLD));
  cudnnTensorFormat_t format{};
  cudnnFoldingDirection_t direction{};
  std::int32_t got_before[4] = {}, got_after[4] = {};
  std::uint32_t fold[2] = {};
  succeeds(
      cudnnGetTensorTransformDescriptor(t, 4, &format, got_before, got_after, fold, &direction));
  BOOST_TEST(format == CUDNN_TENSOR_NHWC);
  BOOST_TEST(direction == CUDNN_TRANSFORM_UNFOLD);
  BOOST_TEST(got_before == before, boost::test_tools::per_element());
  BOOST_TEST(got_after == after, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(handles) {
  const Handle handle;
  cudaStream_t stream = nullptr;
  succeeds(cudnnGetStream(handle, &stream));
  BOOST_TEST((stream == nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
