// Batch normalization: derived descriptors, and a sentence for each argument that does not fit.
#include <cmath>

#include "cudnn/described.hpp"

using namespace test;

namespace {

template <class Enumeration>
Enumeration number(int value) {
  return static_cast<Enumeration>(value);
}

// The arguments of all functions, each of which a test may replace.
struct Fixture {
  Handle handle;
  TensorDesc t, numbers, unset, other_sizes, other_type, wide_numbers, last, of_activations;
  ActivationDesc relu;
  Buffer<float> tensor{std::vector<float>(96, 1)}, result{std::vector<float>(96, 7)};
  Buffer<float> row{std::vector<float>(48, 1)}, written{std::vector<float>(48, 7)};
  Buffer<float> more{std::vector<float>(48, 7)};
  float one = 1, zero = 0;
  std::size_t bytes = 0;

  cudnnTensorDescriptor_t x_desc = t, y_desc = t, z_desc = t, numbers_desc = numbers;
  int mode = CUDNN_BATCHNORM_SPATIAL, operations = 0;
  cudnnActivationDescriptor_t activation = relu;
  const void *alpha = &one, *beta = &zero, *parameters_alpha = &one, *x = tensor.data(),
             *z = tensor.data(), *scale = row.data(), *bias = row.data(), *given_mean = row.data(),
             *given_spread = row.data();
  void *y = result.data(), *running_mean = nullptr, *running_variance = nullptr,
       *mean = written.data(), *deviation = more.data(), *workspace = nullptr;
  double epsilon = 1e-5;
  std::size_t workspace_bytes = 0;

  Fixture() {
    const auto set = [](cudnnTensorDescriptor_t d, cudnnDataType_t type, int c, int h) {
      succeeds(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, type, 2, c, h, 4));
    };
    set(t, CUDNN_DATA_FLOAT, 3, 4);
    set(other_sizes, CUDNN_DATA_FLOAT, 3, 2);
    set(other_type, CUDNN_DATA_HALF, 3, 4);
    succeeds(cudnnSetTensor4dDescriptor(last, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 3, 4, 4));
    succeeds(cudnnDeriveBNTensorDescriptor(numbers, t, CUDNN_BATCHNORM_SPATIAL));
    succeeds(cudnnDeriveBNTensorDescriptor(of_activations, t, CUDNN_BATCHNORM_PER_ACTIVATION));
    succeeds(
        cudnnSetTensor4dDescriptor(wide_numbers, CUDNN_TENSOR_NCHW, CUDNN_DATA_DOUBLE, 1, 3, 1, 1));
    succeeds(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  }

  cudnnStatus_t infer() {
    return cudnnBatchNormalizationForwardInference(handle, number<cudnnBatchNormMode_t>(mode),
                                                   alpha, beta, x_desc, x, y_desc, y, numbers_desc,
                                                   scale, bias, given_mean, given_spread, epsilon);
  }
  cudnnStatus_t train() {
    return cudnnBatchNormalizationForwardTrainingEx(
        handle, number<cudnnBatchNormMode_t>(mode), number<cudnnBatchNormOps_t>(operations), alpha,
        beta, x_desc, x, z_desc, z, y_desc, y, numbers_desc, scale, bias, 0.1, running_mean,
        running_variance, epsilon, mean, deviation, activation, workspace, workspace_bytes, nullptr,
        0);
  }
  cudnnStatus_t differentiate() {
    return cudnnBatchNormalizationBackwardEx(
        handle, number<cudnnBatchNormMode_t>(mode), number<cudnnBatchNormOps_t>(operations), alpha,
        beta, parameters_alpha, &zero, x_desc, x, y_desc, x, t, x, z_desc, nullptr, t, y,
        numbers_desc, scale, bias, mean, deviation, epsilon, given_mean, given_spread, activation,
        workspace, workspace_bytes, nullptr, 0);
  }
  cudnnStatus_t norm(int norm_mode, int algo, int groups) {
    return cudnnNormalizationForwardInference(
        handle, number<cudnnNormMode_t>(norm_mode), number<cudnnNormOps_t>(operations),
        number<cudnnNormAlgo_t>(algo), alpha, beta, x_desc, x, numbers_desc, scale, bias, numbers,
        given_mean, given_spread, z_desc, z, activation, y_desc, y, epsilon, groups);
  }
};

void is_bad(cudnnStatus_t status, const std::vector<std::string>& parts) {
  fails(status, CUDNN_STATUS_BAD_PARAM, parts);
}
void is_refused(cudnnStatus_t status, const std::vector<std::string>& parts) {
  fails(status, CUDNN_STATUS_NOT_SUPPORTED, parts);
}

// Replaces a value for a scope.
template <class Value>
class With {
 public:
  With(Value& place, std::type_identity_t<Value> value) : place_(place), before_(place) {
    place_ = value;
  }
  With(const With&) = delete;
  With& operator=(const With&) = delete;
  ~With() { place_ = before_; }

 private:
  Value& place_;
  Value before_;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(normalization_arguments, Fixture)

BOOST_AUTO_TEST_CASE(derived_descriptors) {
  const auto says = [](cudnnTensorDescriptor_t d, cudnnDataType_t type, std::vector<int> dims) {
    cudnnDataType_t got_type{};
    int rank = 0, got[CUDNN_DIM_MAX] = {}, strides[CUDNN_DIM_MAX] = {};
    succeeds(cudnnGetTensorNdDescriptor(d, CUDNN_DIM_MAX, &got_type, &rank, got, strides));
    BOOST_TEST(got_type == type);
    BOOST_TEST(std::vector<int>(got, got + rank) == dims, boost::test_tools::per_element());
    int stride = 1;
    for (int i = rank; i-- > 0; stride *= dims[static_cast<std::size_t>(i)])
      BOOST_TEST(strides[i] == stride);
  };
  const TensorDesc volume, derived, second;
  const int dims[] = {2, 3, 4, 5, 6};
  succeeds(cudnnSetTensorNdDescriptorEx(volume, CUDNN_TENSOR_NHWC, CUDNN_DATA_DOUBLE, 5, dims));
  says(numbers, CUDNN_DATA_FLOAT, {1, 3, 1, 1});
  says(of_activations, CUDNN_DATA_FLOAT, {1, 3, 4, 4});
  succeeds(cudnnDeriveBNTensorDescriptor(derived, volume, CUDNN_BATCHNORM_SPATIAL_PERSISTENT));
  says(derived, CUDNN_DATA_DOUBLE, {1, 3, 1, 1, 1});
  succeeds(
      cudnnDeriveNormTensorDescriptor(derived, second, other_type, CUDNN_NORM_PER_ACTIVATION, 1));
  says(derived, CUDNN_DATA_FLOAT, {1, 3, 4, 4});
  says(second, CUDNN_DATA_FLOAT, {1, 3, 4, 4});

  const auto spatial = CUDNN_BATCHNORM_SPATIAL;
  is_bad(cudnnDeriveBNTensorDescriptor(nullptr, t, spatial), {"derivedBnDesc is null"});
  is_bad(cudnnDeriveBNTensorDescriptor(derived, unset, spatial), {"xDesc was never set"});
  is_bad(cudnnDeriveBNTensorDescriptor(derived, t, number<cudnnBatchNormMode_t>(3)), {"mode is 3"});
  const TensorDesc bytes_desc;
  succeeds(cudnnSetTensor4dDescriptor(bytes_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 1, 4, 3, 3));
  is_refused(cudnnDeriveBNTensorDescriptor(derived, bytes_desc, spatial), {"xDesc is of INT8"});
  const auto derive = [&](cudnnTensorDescriptor_t a, cudnnTensorDescriptor_t b, int groups) {
    return cudnnDeriveNormTensorDescriptor(a, b, t, CUDNN_NORM_PER_CHANNEL, groups);
  };
  is_bad(derive(derived, nullptr, 1), {"derivedNormMeanVarDesc is null"});
  is_bad(derive(nullptr, derived, 1), {"derivedNormScaleBiasDesc is null"});
  is_bad(derive(derived, second, 0), {"groupCnt is 0", "at least 1"});
  is_refused(derive(derived, second, 2), {"groupCnt is 2", "expected 1"});
}

BOOST_AUTO_TEST_CASE(numbers_of_enumerations) {
  {
    const With other(mode, 3);
    is_bad(infer(), {"mode is 3", "0 to 2"});
  }
  {
    const With other(operations, 3);
    is_bad(train(), {"bnOps is 3"});
    is_bad(norm(1, 0, 1), {"normOps is 3"});
  }
  is_bad(norm(2, 0, 1), {"mode is 2"});
  is_bad(norm(1, 2, 1), {"algo is 2"});
  is_refused(norm(1, 1, 3), {"cudnnNormalizationForwardInference", "groupCnt is 3"});
  succeeds(norm(1, 1, 1));
}

BOOST_AUTO_TEST_CASE(descriptors_that_do_not_fit) {
  {
    const With other(x_desc, cudnnTensorDescriptor_t{unset});
    is_bad(train(), {"xDesc was never set"});
  }
  {
    const With other(y_desc, cudnnTensorDescriptor_t{other_sizes});
    is_bad(train(), {"yDesc has sizes {2, 3, 2, 4}; expected {2, 3, 4, 4}, as xDesc"});
    is_bad(infer(), {"yDesc has sizes"});
  }
  {
    const With other(y_desc, cudnnTensorDescriptor_t{other_type});
    is_bad(train(), {"yDesc is of HALF; expected FLOAT, as xDesc"});
  }
  {
    const With other(numbers_desc, cudnnTensorDescriptor_t{t});
    is_bad(train(), {"bnScaleBiasMeanVarDesc has sizes {2, 3, 4, 4}; expected {1, 3, 1, 1}"});
    is_bad(differentiate(), {"dBnScaleBiasDesc has sizes"});
    is_bad(norm(1, 0, 1), {"normScaleBiasDesc has sizes"});
  }
  {
    const With other(numbers_desc, cudnnTensorDescriptor_t{wide_numbers});
    is_bad(infer(), {"bnScaleBiasMeanVarDesc is of DOUBLE; expected FLOAT with tensors of FLOAT"});
  }
  const With adding(operations, 2);
  {
    const With other(z_desc, cudnnTensorDescriptor_t{nullptr});
    is_bad(train(), {"zDesc is null"});
    is_bad(differentiate(), {"dzDesc is null"});
  }
  {
    const With other(activation, cudnnActivationDescriptor_t{nullptr});
    is_bad(train(), {"activationDesc is null"});
  }
  succeeds(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_SWISH, CUDNN_PROPAGATE_NAN, 0));
  is_refused(differentiate(), {"activationDesc is SWISH", "not a function of y"});
}

BOOST_AUTO_TEST_CASE(addresses) {
  const auto lacks = [](auto& place, const auto& call, const char* sentence) {
    const With other(place, nullptr);
    is_bad(call(), {sentence});
  };
  const auto training = [&] { return train(); };
  const auto inference = [&] { return infer(); };
  const auto gradient = [&] { return differentiate(); };
  lacks(alpha, training, "alpha is null");
  lacks(beta, gradient, "betaDataDiff is null");
  lacks(parameters_alpha, gradient, "alphaParamDiff is null");
  lacks(x, training, "xData is null");
  lacks(x, inference, "x is null");
  lacks(y, training, "yData is null");
  lacks(y, gradient, "dxData is null");
  lacks(scale, training, "bnScale is null");
  lacks(scale, gradient, "bnScaleData is null");
  lacks(bias, inference, "bnBias is null");
  lacks(given_mean, inference, "estimatedMean is null");
  lacks(given_spread, inference, "estimatedVariance is null");
  lacks(mean, training, "resultSaveMean is null, and resultSaveInvVariance is not");
  lacks(given_spread, gradient, "savedInvVariance is null, and savedMean is not");
  lacks(mean, gradient, "dBnScaleData is null");
  lacks(deviation, gradient, "dBnBiasData is null");
  {
    const With other(running_mean, row.data());
    is_bad(train(), {"resultRunningVariance is null, and resultRunningMean is not"});
  }
  {
    const With none(operations, 0);
    const With without(bias, nullptr);  // which nothing reads
    succeeds(differentiate());
  }
  const With activating(operations, 1);
  lacks(bias, gradient, "bnBiasData is null");
  const With adding(operations, 2);
  lacks(z, training, "zData is null");
  is_bad(differentiate(), {"dzData is null"});
}

BOOST_AUTO_TEST_CASE(values) {
  const With other(epsilon, -1.0);
  is_bad(infer(), {"epsilon is -1", "from 0"});
  is_bad(train(), {"epsilon is -1"});
  is_bad(differentiate(), {"epsilon is -1"});
  const With none(epsilon, std::nan(""));
  is_bad(train(), {"epsilon is"});
}

BOOST_AUTO_TEST_CASE(workspace_that_is_too_small) {
  const auto size = [&](auto* place) {
    return cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        handle, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN, t, nullptr, t, numbers, nullptr,
        place);
  };
  is_bad(size(static_cast<std::size_t*>(nullptr)), {"sizeInBytes is null"});
  succeeds(size(&bytes));
  const With no_mean(mean, nullptr), no_deviation(deviation, nullptr);
  is_bad(train(), {"workspace is null", "at least"});
  const With small(workspace, result.data());
  const With its_size(workspace_bytes, 64);
  is_bad(train(), {"workSpaceSizeInBytes is 64; expected at least"});
}

BOOST_AUTO_TEST_CASE(too_few_for_a_variance) {
  const TensorDesc single, numbers_of_single;
  succeeds(cudnnSetTensor4dDescriptor(single, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 1, 1));
  const With a(x_desc, cudnnTensorDescriptor_t{single}), b(y_desc, cudnnTensorDescriptor_t{single});
  is_bad(train(), {"1 element a channel; expected at least 2"});
  const With activations(mode, CUDNN_BATCHNORM_PER_ACTIVATION);
  is_bad(train(), {"xDesc has 1 image; expected at least 2"});
}

BOOST_AUTO_TEST_CASE(activations_in_another_order) {
  const With activations(mode, CUDNN_BATCHNORM_PER_ACTIVATION);
  const With of_them(numbers_desc, cudnnTensorDescriptor_t{of_activations});
  succeeds(train());
  {
    const With other(y_desc, cudnnTensorDescriptor_t{last});
    is_refused(train(), {"yDesc has images", "NCHW order"});
  }
  const TensorDesc padded;
  succeeds(cudnnSetTensor4dDescriptorEx(padded, CUDNN_DATA_FLOAT, 1, 3, 4, 4, 96, 32, 5, 1));
  const With other(numbers_desc, cudnnTensorDescriptor_t{padded});
  is_refused(infer(), {"bnScaleBiasMeanVarDesc has gaps"});
}

BOOST_AUTO_TEST_SUITE_END()
