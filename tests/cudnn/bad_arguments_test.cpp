// Wrong arguments give a status and a message that names the argument, never a crash.
#include <cmath>

#include "cudnn/described.hpp"

using namespace test;

namespace {

struct Fixture {
  Handle handle;
  TensorDesc x, unset;
  FilterDesc w;
  ConvolutionDesc convolution;
  PoolingDesc pooling;
  ActivationDesc activation;
  Buffer<float> memory{std::vector<float>(256, 1)};
  float one = 1, zero = 0;

  Fixture() {
    succeeds(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 4, 4));
    succeeds(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 3, 3, 1, 1));
    succeeds(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                             CUDNN_DATA_FLOAT));
    succeeds(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 1, 1, 0,
                                         0, 1, 1));
    succeeds(
        cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  }
};

void is_bad(cudnnStatus_t status, const std::vector<std::string>& parts) {
  fails(status, CUDNN_STATUS_BAD_PARAM, parts);
}

template <class Enumeration>
Enumeration number(int value) {
  return static_cast<Enumeration>(value);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(bad_arguments, Fixture)

BOOST_AUTO_TEST_CASE(nowhere_to_store) {
  is_bad(cudnnCreate(nullptr), {"cudnnCreate", "handle is null"});
  is_bad(cudnnCreateTensorDescriptor(nullptr), {"tensorDesc is null"});
  is_bad(cudnnCreateFilterDescriptor(nullptr), {"filterDesc is null"});
  is_bad(cudnnCreateConvolutionDescriptor(nullptr), {"convDesc is null"});
  is_bad(cudnnCreatePoolingDescriptor(nullptr), {"poolingDesc is null"});
  is_bad(cudnnCreateActivationDescriptor(nullptr), {"activationDesc is null"});
  is_bad(cudnnCreateOpTensorDescriptor(nullptr), {"opTensorDesc is null"});
  is_bad(cudnnCreateReduceTensorDescriptor(nullptr), {"reduceTensorDesc is null"});
  is_bad(cudnnCreateTensorTransformDescriptor(nullptr), {"transformDesc is null"});
  is_bad(cudnnGetStream(handle, nullptr), {"streamId is null"});
  is_bad(cudnnGetProperty(MAJOR_VERSION, nullptr), {"value is null"});
  is_bad(cudnnGetConvolutionNdForwardOutputDim(convolution, x, w, 4, nullptr), {"is null"});
  is_bad(cudnnGetTensorSizeInBytes(x, nullptr), {"is null"});
}

BOOST_AUTO_TEST_CASE(no_handle_or_another_object) {
  const auto activate = [&](cudnnHandle_t h, cudnnActivationDescriptor_t f,
                            cudnnTensorDescriptor_t t) {
    return cudnnActivationForward(h, f, &one, t, memory.data(), &zero, x, memory.data());
  };
  is_bad(activate(nullptr, activation, x), {"cudnnActivationForward", "handle is null"});
  is_bad(activate(handle, nullptr, x), {"activationDesc is null"});
  is_bad(activate(handle, activation, nullptr), {"xDesc is null"});
  is_bad(activate(handle, activation, unset), {"xDesc"});
  const auto as_handle = reinterpret_cast<cudnnHandle_t>(static_cast<cudnnTensorDescriptor_t>(x));
  const auto as_tensor =
      reinterpret_cast<cudnnTensorDescriptor_t>(static_cast<cudnnFilterDescriptor_t>(w));
  is_bad(activate(as_handle, activation, x), {"handle"});
  is_bad(activate(handle, activation, as_tensor), {"xDesc"});
  is_bad(cudnnSetStream(nullptr, nullptr), {"handle is null"});
  const ActivationDesc never_set;
  is_bad(activate(handle, never_set, x), {"activationDesc was never set"});
}

BOOST_AUTO_TEST_CASE(no_data) {
  const auto forward = [&](const void* alpha, const void* x_data, const void* beta, void* y_data) {
    return cudnnPoolingForward(handle, pooling, alpha, x, x_data, beta, x, y_data);
  };
  is_bad(forward(nullptr, memory.data(), &zero, memory.data()), {"alpha is null"});
  is_bad(forward(&one, memory.data(), nullptr, memory.data()), {"beta is null"});
  is_bad(forward(&one, nullptr, &zero, memory.data()), {"x is null"});
  is_bad(forward(&one, memory.data(), &zero, nullptr), {"y is null"});
  is_bad(cudnnSetTensor(handle, x, memory.data(), nullptr), {"valuePtr is null"});
  is_bad(cudnnScaleTensor(handle, x, nullptr, &one), {"y is null"});
}

BOOST_AUTO_TEST_CASE(values_out_of_range) {
  const TensorDesc t;
  const auto set = [&](int format, int type, int n, int c) {
    return cudnnSetTensor4dDescriptor(t, number<cudnnTensorFormat_t>(format),
                                      number<cudnnDataType_t>(type), n, c, 1, 1);
  };
  is_bad(set(9, 0, 1, 1), {"format is 9"});
  is_bad(set(0, 99, 1, 1), {"99"});
  is_bad(set(0, 0, 1, 0), {"is 0"});
  is_bad(set(0, 0, 1, -3), {"is -3"});
  const int dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  is_bad(cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 9, dims, dims), {"nbDims is 9"});
  is_bad(cudnnSetTensorNdDescriptor(t, CUDNN_DATA_FLOAT, 4, nullptr, dims), {"is null"});
  const ConvolutionDesc c;
  const auto convolve = [&](int pad, int stride, int dilation, int mode) {
    return cudnnSetConvolution2dDescriptor(c, pad, 0, stride, 1, dilation, 1,
                                           number<cudnnConvolutionMode_t>(mode), CUDNN_DATA_FLOAT);
  };
  is_bad(convolve(-1, 1, 1, 0), {"is -1"});
  is_bad(convolve(0, 0, 1, 0), {"is 0"});
  is_bad(convolve(0, 1, 0, 0), {"is 0"});
  is_bad(convolve(0, 1, 1, 7), {"mode is 7"});
  is_bad(cudnnSetConvolutionGroupCount(convolution, 0), {"groupCount is 0"});
  is_bad(cudnnSetConvolutionMathType(convolution, number<cudnnMathType_t>(8)), {"mathType is 8"});
  is_bad(cudnnSetPooling2dDescriptor(pooling, number<cudnnPoolingMode_t>(5), CUDNN_PROPAGATE_NAN, 1,
                                     1, 0, 0, 1, 1),
         {"mode is 5"});
  is_bad(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 0, 1, 0, 0, 1,
                                     1),
         {"is 0"});
  is_bad(cudnnSetActivationDescriptor(activation, number<cudnnActivationMode_t>(77),
                                      CUDNN_PROPAGATE_NAN, 0),
         {"mode is 77"});
  is_bad(cudnnSoftmaxForward(handle, number<cudnnSoftmaxAlgorithm_t>(5), CUDNN_SOFTMAX_MODE_CHANNEL,
                             &one, x, memory.data(), &zero, x, memory.data()),
         {"is 5"});
  is_bad(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, number<cudnnSoftmaxMode_t>(6), &one, x,
                             memory.data(), &zero, x, memory.data()),
         {"is 6"});
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit) {
  const TensorDesc y;
  succeeds(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 5, 4));
  const Buffer<float> before(std::vector<float>(256, 7));
  is_bad(
      cudnnConvolutionForward(handle, &one, x, memory.data(), w, memory.data(), convolution,
                              CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0, &zero, y, before.data()),
      {"yDesc", "5"});
  is_bad(
      cudnnActivationForward(handle, activation, &one, x, memory.data(), &zero, y, before.data()),
      {"yDesc"});
  is_bad(cudnnAddTensor(handle, &one, y, memory.data(), &zero, x, before.data()), {"Desc"});
  is_bad(cudnnTransformTensor(handle, &one, x, memory.data(), &zero, y, before.data()), {"yDesc"});
  BOOST_TEST(before.read() == std::vector<float>(256, 7), boost::test_tools::per_element());
}

// Null is allowed for outputs that the caller does not need, and for objects to destroy.
BOOST_AUTO_TEST_CASE(what_may_be_null) {
  succeeds(cudnnDestroy(nullptr));
  succeeds(cudnnDestroyTensorDescriptor(nullptr));
  succeeds(cudnnDestroyFilterDescriptor(nullptr));
  succeeds(cudnnDestroyConvolutionDescriptor(nullptr));
  succeeds(cudnnDestroyPoolingDescriptor(nullptr));
  succeeds(cudnnDestroyActivationDescriptor(nullptr));
  BOOST_TEST(std::string(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM)) == "CUDNN_STATUS_BAD_PARAM");
  BOOST_TEST(cudnnGetErrorString(number<cudnnStatus_t>(123456)) != nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
