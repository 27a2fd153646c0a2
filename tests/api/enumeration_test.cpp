// Every argument of an enumeration type refuses numbers that are not values of it, such as swapped
// arguments.
#include "core/enumeration.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <limits>

#include "api/operations/operation_check.hpp"

using namespace test;

namespace {

struct Argument {
  const char* field;
  const kiln::Enumeration& enumeration;
  std::function<kilnStatus_t(int)> call;
};

template <class Enum, class Call>
Argument argument(const char* field, Call call) {
  return {field, kiln::enumeration_of(Enum{}),
          [call](int value) { return call(static_cast<Enum>(value)); }};
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_enumeration_in_the_place_of_another_is_refused) {
  constexpr auto f32 = KILN_DATA_FLOAT;
  constexpr auto nchw = KILN_TENSOR_NCHW;
  const TestHandle handle;
  const TensorDesc tensor(f32, {1, 2, 3, 4});
  const FilterDesc filter(f32, {2, 2, 1, 1});
  const ConvolutionDesc convolution({0, 0}, {0, 0}, {1, 1}, {1, 1});
  const PoolingDesc pooling;
  const ActivationDesc activation(KILN_ACTIVATION_RELU);
  const TestPlan plan(handle, tensor, filter, convolution, tensor);
  const std::int64_t sizes[] = {1, 2, 3, 4}, ones[] = {1, 1, 1, 1}, none[] = {0, 0};
  const float one = 1, zero = 0;
  const Buffer<float> data(std::vector<float>(24)), other(std::vector<float>(24));
  const void* x = data.data();
  void* y = other.data();
  kilnHandle_t made = nullptr;
  kilnPlan_t out = nullptr;
  const char* text = nullptr;
  using kiln::DataType;

  const Argument arguments[] = {
      argument<kilnDeviceKind_t>("kind", [&](auto v) { return kilnCreate(&made, v, 0); }),
      argument<DataType>(
          "dataType", [&](auto v) { return kilnSetTensorNdDescriptor(tensor, v, 4, sizes, ones); }),
      argument<kilnTensorFormat_t>(
          "format", [&](auto v) { return kilnSetTensorNdDescriptorEx(tensor, v, f32, 4, sizes); }),
      argument<DataType>(
          "dataType",
          [&](auto v) { return kilnSetTensorNdDescriptorEx(tensor, nchw, v, 4, sizes); }),
      argument<kilnTensorFormat_t>(
          "format", [&](auto v) { return kilnSetTensor4dDescriptor(tensor, v, f32, 1, 2, 3, 4); }),
      argument<DataType>(
          "dataType",
          [&](auto v) { return kilnSetTensor4dDescriptor(tensor, nchw, v, 1, 2, 3, 4); }),
      argument<DataType>(
          "dataType", [&](auto v) { return kilnSetFilterNdDescriptor(filter, v, nchw, 4, sizes); }),
      argument<kilnTensorFormat_t>(
          "format", [&](auto v) { return kilnSetFilterNdDescriptor(filter, f32, v, 4, sizes); }),
      argument<DataType>(
          "dataType",
          [&](auto v) { return kilnSetFilterNdDescriptorStrided(filter, v, 4, sizes, ones); }),
      argument<DataType>(
          "dataType",
          [&](auto v) { return kilnSetFilter4dDescriptor(filter, v, nchw, 1, 2, 3, 4); }),
      argument<kilnTensorFormat_t>(
          "format", [&](auto v) { return kilnSetFilter4dDescriptor(filter, f32, v, 1, 2, 3, 4); }),
      argument<kilnConvolutionMode_t>("mode",
                                      [&](auto v) {
                                        return kilnSetConvolutionNdDescriptor(
                                            convolution, 2, none, none, ones, ones, v, f32);
                                      }),
      argument<DataType>("computeType",
                         [&](auto v) {
                           return kilnSetConvolutionNdDescriptor(convolution, 2, none, none, ones,
                                                                 ones, KILN_CONVOLUTION, v);
                         }),
      argument<kilnConvolutionMode_t>("mode",
                                      [&](auto v) {
                                        return kilnSetConvolution2dDescriptor(convolution, 0, 0, 1,
                                                                              1, 1, 1, v, f32);
                                      }),
      argument<DataType>("computeType",
                         [&](auto v) {
                           return kilnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1,
                                                                 KILN_CONVOLUTION, v);
                         }),
      argument<kilnMathMode_t>("mathMode",
                               [&](auto v) { return kilnSetConvolutionMathMode(convolution, v); }),
      argument<kilnPoolingMode_t>("mode",
                                  [&](auto v) {
                                    return kilnSetPoolingNdDescriptor(pooling, v,
                                                                      KILN_PROPAGATE_NAN, 2, ones,
                                                                      none, none, ones, ones);
                                  }),
      argument<kilnNanPropagation_t>("nanPropagation",
                                     [&](auto v) {
                                       return kilnSetPoolingNdDescriptor(pooling, KILN_POOLING_MAX,
                                                                         v, 2, ones, none, none,
                                                                         ones, ones);
                                     }),
      argument<kilnPoolingMode_t>("mode",
                                  [&](auto v) {
                                    return kilnSetPooling2dDescriptor(
                                        pooling, v, KILN_PROPAGATE_NAN, 1, 1, 0, 0, 1, 1);
                                  }),
      argument<kilnNanPropagation_t>("nanPropagation",
                                     [&](auto v) {
                                       return kilnSetPooling2dDescriptor(pooling, KILN_POOLING_MAX,
                                                                         v, 1, 1, 0, 0, 1, 1);
                                     }),
      argument<kilnActivationMode_t>(
          "mode", [&](auto v) { return kilnSetActivationDescriptor(activation, v, 0.5); }),
      argument<kilnSoftmaxAlgorithm_t>("algorithm",
                                       [&](auto v) {
                                         return kilnCreateSoftmaxForwardPlan(
                                             handle, v, KILN_SOFTMAX_MODE_CHANNEL, tensor, tensor,
                                             &out);
                                       }),
      argument<kilnSoftmaxMode_t>("mode",
                                  [&](auto v) {
                                    return kilnCreateSoftmaxForwardPlan(handle, KILN_SOFTMAX_FAST,
                                                                        v, tensor, tensor, &out);
                                  }),
      argument<kilnSoftmaxAlgorithm_t>("algorithm",
                                       [&](auto v) {
                                         return kilnCreateSoftmaxBackwardPlan(
                                             handle, v, KILN_SOFTMAX_MODE_CHANNEL, tensor, tensor,
                                             tensor, &out);
                                       }),
      argument<kilnSoftmaxMode_t>("mode",
                                  [&](auto v) {
                                    return kilnCreateSoftmaxBackwardPlan(
                                        handle, KILN_SOFTMAX_FAST, v, tensor, tensor, tensor, &out);
                                  }),
      argument<kilnSoftmaxAlgorithm_t>("algorithm",
                                       [&](auto v) {
                                         return kilnSoftmaxForward(handle, v,
                                                                   KILN_SOFTMAX_MODE_CHANNEL, &one,
                                                                   tensor, x, &zero, tensor, y);
                                       }),
      argument<kilnSoftmaxMode_t>("mode",
                                  [&](auto v) {
                                    return kilnSoftmaxForward(handle, KILN_SOFTMAX_FAST, v, &one,
                                                              tensor, x, &zero, tensor, y);
                                  }),
      argument<kilnOpTensorOp_t>(
          "op",
          [&](auto v) { return kilnCreateOpTensorPlan(handle, v, tensor, tensor, tensor, &out); }),
      argument<kilnReduceTensorOp_t>(
          "op",
          [&](auto v) { return kilnCreateReduceTensorPlan(handle, v, tensor, tensor, &out); }),
      argument<kilnPlanText_t>("which", [&](auto v) { return kilnGetPlanText(plan, v, &text); }),
  };
  std::vector<int> values{
      -1, 0, 1, 2, 3, 99, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};
  for (const kiln::Enumeration& enumeration : kiln::all_enumerations()) {
    for (const kiln::Enumerator& value : enumeration.values) values.push_back(value.value);
    values.push_back(enumeration.values.back().value + 1);
  }
  for (const Argument& argument : arguments)
    for (const int value : values) {
      if (kiln::find_enumerator(argument.enumeration, value) != nullptr) continue;
      const std::string found = kiln::cat(argument.field, " is ", value);
      bad_param(argument.call(value), {found.c_str(), "; expected "});
    }
}

// A C program can pass a value of another enumeration; the message says which one it belongs to.
BOOST_AUTO_TEST_CASE(swapped_arguments_are_told_as_such) {
  const FilterDesc filter;
  bad_param(
      kilnSetFilter4dDescriptor(filter, static_cast<kilnDataType_t>(KILN_TENSOR_NHWC),
                                static_cast<kilnTensorFormat_t>(KILN_DATA_DOUBLE), 1, 2, 3, 4),
      {"is 101 (KILN_DATA_DOUBLE, a kilnDataType_t); expected KILN_TENSOR_NCHW (200) or"});
}
