// What cuDNN means by its calls, where Kiln's own mean something else or have no such call.
#include <array>
#include <cmath>
#include <string>
#include <thread>

#include "objects.hpp"

using namespace kiln_test;  // NOLINT

BOOST_AUTO_TEST_SUITE(semantics)

// 1x1 convolution of two channels to one: small integers, so exact.
struct Layer {
  Tensor x{{1, 2, 2, 2}}, y{{1, 1, 2, 2}}, bias{{1, 1, 1, 1}};
  Filter w;
  Convolution convolution;
  Layer() {
    KILN_OK(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 2, 1, 1));
    KILN_OK(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                            CUDNN_DATA_FLOAT));
  }
};

BOOST_AUTO_TEST_CASE(a_factor_of_zero_means_no_residual) {
  const Handle handle;
  const Layer layer;
  Activation relu;
  KILN_OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  const Floats x{1, 2, 3, 4, 5, 6, 7, -8}, w{1, 10}, bias{-60};
  Floats y(4, NAN);
  const auto run = [&](const float* factor, const float* z) {
    return cudnnConvolutionBiasActivationForward(
        handle, &one, layer.x, x.data(), layer.w, w.data(), layer.convolution,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, factor, layer.y, z, layer.bias,
        bias.data(), relu, layer.y, y.data());
  };
  KILN_OK(run(&zero, y.data()));
  BOOST_TEST(y == (Floats{0, 2, 13, 0}), boost::test_tools::per_element());
  const Floats z{100, 0, 0, 1000};
  KILN_OK(run(&one, z.data()));
  BOOST_TEST(y == (Floats{91, 2, 13, 864}), boost::test_tools::per_element());
  KILN_OK(run(&one, y.data()));  // in place
  BOOST_TEST(y == (Floats{82, 4, 26, 728}), boost::test_tools::per_element());
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "z is null", run(&one, nullptr));
}

// Memory that a program has cut pieces from: an address that is a multiple of 4 alone.
BOOST_AUTO_TEST_CASE(operands_aligned_to_their_elements) {
  const Handle handle;
  const Layer layer;
  const Floats x{0, 1, 2, 3, 4, 5, 6, 7, 8}, w{0, 1, 10};
  Floats y(5, NAN);
  KILN_OK(cudnnConvolutionForward(handle, &one, layer.x, x.data() + 1, layer.w, w.data() + 1,
                                  layer.convolution, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, nullptr,
                                  0, &zero, layer.y, y.data() + 1));
  BOOST_TEST(Floats(y.begin() + 1, y.end()) == (Floats{51, 62, 73, 84}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gradients_add_to_what_is_there) {
  const Handle handle;
  const Layer layer;
  const Floats x{1, 2, 3, 4, 5, 6, 7, 8}, w{1, 10}, dy{1, 0, 2, -1};
  Floats dx(8, 1), dw{1, 1};
  KILN_OK(cudnnConvolutionBackwardData(handle, &one, layer.w, w.data(), layer.y, dy.data(),
                                       layer.convolution, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                                       nullptr, 0, &one, layer.x, dx.data()));
  BOOST_TEST(dx == (Floats{2, 1, 3, 0, 11, 1, 21, -9}), boost::test_tools::per_element());
  KILN_OK(cudnnConvolutionBackwardFilter(handle, &one, layer.x, x.data(), layer.y, dy.data(),
                                         layer.convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
                                         nullptr, 0, &one, layer.w, dw.data()));
  BOOST_TEST(dw == (Floats{4, 12}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_problem_from_many_threads) {
  const Layer layer;
  constexpr int count = 8;
  std::array<Floats, count> results;
  std::array<std::thread, count> threads;
  for (int i = 0; i < count; ++i) {
    results[i] = Floats(4, NAN);
    threads[i] = std::thread([&, i] {
      cudnnHandle_t handle = nullptr;
      if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) return;
      const Floats x(8, static_cast<float>(i)), w{1, 2};
      for (int repeat = 0; repeat < 20; ++repeat)
        cudnnConvolutionForward(handle, &one, layer.x, x.data(), layer.w, w.data(),
                                layer.convolution, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0,
                                &zero, layer.y, results[i].data());
      cudnnDestroy(handle);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < count; ++i)
    BOOST_TEST(results[i] == Floats(4, static_cast<float>(3 * i)),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pooled_sizes_rounded_up) {
  const Handle handle;
  Pooling pooling;
  KILN_OK(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX_DETERMINISTIC,
                                      CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  const Tensor x({1, 1, 3, 3}), down({1, 1, 1, 1}), up({1, 1, 2, 2}), neither({1, 1, 3, 2});
  int n = 0, c = 0, h = 0, w = 0;
  KILN_OK(cudnnGetPooling2dForwardOutputDim(pooling, x, &n, &c, &h, &w));
  BOOST_TEST(h == 1);
  BOOST_TEST(w == 1);
  const Floats input{1, 2, 3, 4, 5, 6, 7, 8, 9};
  Floats y(6, NAN);
  KILN_OK(cudnnPoolingForward(handle, pooling, &one, x, input.data(), &zero, down, y.data()));
  BOOST_TEST(y[0] == 5);
  KILN_OK(cudnnPoolingForward(handle, pooling, &one, x, input.data(), &zero, up, y.data()));
  BOOST_TEST(Floats(y.begin(), y.begin() + 4) == (Floats{5, 6, 8, 9}),
             boost::test_tools::per_element());
  const Floats dy{1, 2, 3, 4};
  Floats dx(9, NAN);
  KILN_OK(cudnnPoolingBackward(handle, pooling, &one, up, y.data(), up, dy.data(), x, input.data(),
                               &zero, x, dx.data()));
  BOOST_TEST(dx == (Floats{0, 0, 0, 0, 1, 2, 0, 3, 4}), boost::test_tools::per_element());
  KILN_REFUSES(
      CUDNN_STATUS_BAD_PARAM, "yDesc",
      cudnnPoolingForward(handle, pooling, &one, x, input.data(), &zero, neither, y.data()));
}

// Frameworks run ReLU and its gradient in place: x is y, and dx is dy.
BOOST_AUTO_TEST_CASE(an_activation_in_place) {
  const Handle handle;
  Activation relu;
  KILN_OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  const Tensor t({1, 4, 1, 1});
  Floats x{-1, 2, 0, 3}, dy{1, 1, 1, 5};
  KILN_OK(cudnnActivationForward(handle, relu, &one, t, x.data(), &zero, t, x.data()));
  BOOST_TEST(x == (Floats{0, 2, 0, 3}), boost::test_tools::per_element());
  KILN_OK(cudnnActivationBackward(handle, relu, &one, t, x.data(), t, dy.data(), t, x.data(), &zero,
                                  t, dy.data()));
  BOOST_TEST(dy == (Floats{0, 1, 0, 5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(operations_of_one_operand) {
  const Handle handle;
  OpTensor root, negation;
  KILN_OK(cudnnSetOpTensorDescriptor(root, CUDNN_OP_TENSOR_SQRT, CUDNN_DATA_FLOAT,
                                     CUDNN_PROPAGATE_NAN));
  KILN_OK(cudnnSetOpTensorDescriptor(negation, CUDNN_OP_TENSOR_NOT, CUDNN_DATA_FLOAT,
                                     CUDNN_PROPAGATE_NAN));
  const Tensor t({1, 3, 1, 1});
  const Floats a{4, 0, 0.25F};
  Floats c{1, 1, 1};
  const float four = 4;
  KILN_OK(
      cudnnOpTensor(handle, root, &four, t, a.data(), &one, nullptr, nullptr, &one, t, c.data()));
  BOOST_TEST(c == (Floats{5, 1, 2}), boost::test_tools::per_element());
  KILN_OK(
      cudnnOpTensor(handle, negation, &one, t, a.data(), &one, t, a.data(), &zero, t, c.data()));
  BOOST_TEST(c == (Floats{-3, 1, 0.75F}), boost::test_tools::per_element());
  const float minus = -1;
  KILN_REFUSES(
      CUDNN_STATUS_NOT_SUPPORTED, "alpha1",
      cudnnOpTensor(handle, root, &minus, t, a.data(), &one, t, a.data(), &zero, t, c.data()));
}

// The value that a tensor is set to is of the tensor's own type.
BOOST_AUTO_TEST_CASE(a_value_of_each_type) {
  const Handle handle;
  const auto set = [&](cudnnDataType_t type, auto value) {
    const Tensor t({1, 3, 1, 1}, CUDNN_TENSOR_NCHW, type);
    std::array<decltype(value), 3> y{};
    KILN_OK(cudnnSetTensor(handle, t, y.data(), &value));
    for (const auto element : y) BOOST_TEST(element == value);
  };
  set(CUDNN_DATA_FLOAT, 1.5F);
  set(CUDNN_DATA_DOUBLE, 1e300);
  // 1.5, the least and the largest subnormal, the largest number, minus infinity.
  for (const unsigned bits : {0x3e00U, 0x0001U, 0x03ffU, 0x7bffU, 0xfc00U})
    set(CUDNN_DATA_HALF, static_cast<std::uint16_t>(bits));
  set(CUDNN_DATA_BFLOAT16, std::uint16_t{0xbfc0});
}

BOOST_AUTO_TEST_CASE(a_transform_that_pads) {
  const Handle handle;
  Transform transform;
  const std::array<std::int32_t, 4> before{0, 1, 0, 1}, after{0, 0, 1, 0};
  KILN_OK(cudnnSetTensorTransformDescriptor(transform, 4, CUDNN_TENSOR_NHWC, before.data(),
                                            after.data(), nullptr, CUDNN_TRANSFORM_FOLD));
  const Tensor source({1, 2, 1, 2});
  const Tensor dest;
  std::size_t bytes = 0;
  KILN_OK(cudnnInitTransformDest(transform, source, dest, &bytes));
  BOOST_TEST(bytes == 3 * 2 * 3 * sizeof(float));
  const Floats x{1, 2, 3, 4};
  Floats y(18, NAN);
  KILN_OK(cudnnTransformTensorEx(handle, transform, &one, source, x.data(), &zero, dest, y.data()));
  // Height 2, width 3, channels 3; the first channel, the first column and the last row are
  // padding.
  BOOST_TEST(y == (Floats{0, 0, 0, 0, 1, 3, 0, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
             boost::test_tools::per_element());
  KILN_REFUSES(
      CUDNN_STATUS_NOT_SUPPORTED, "beta",
      cudnnTransformTensorEx(handle, transform, &one, source, x.data(), &one, dest, y.data()));
  // What is refused leaves the destination as it was.
  const Floats sevens(22, 7);
  Floats kept = sevens;
  const auto refuses = [&](const char* part, const float* alpha, const float* from) {
    KILN_REFUSES(
        CUDNN_STATUS_BAD_PARAM, part,
        cudnnTransformTensorEx(handle, transform, alpha, source, from, &zero, dest, kept.data()));
    BOOST_TEST(kept == sevens, boost::test_tools::per_element());
  };
  refuses("alpha is null", nullptr, x.data());
  refuses("srcData is null", &one, nullptr);
  refuses("srcData overlaps destData", &one, kept.data() + 17);
  const auto* const bytes_of_x = reinterpret_cast<const char*>(x.data());
  refuses("expected a multiple of 4", &one, reinterpret_cast<const float*>(bytes_of_x + 1));
  // Just behind it nothing overlaps.
  KILN_OK(cudnnTransformTensorEx(handle, transform, &one, source, kept.data() + 18, &zero, dest,
                                 kept.data()));
  BOOST_TEST(kept[4] == 7);
}

BOOST_AUTO_TEST_CASE(a_transform_of_vectors) {
  const Handle handle;
  const Transform transform;
  KILN_OK(cudnnSetTensorTransformDescriptor(transform, 4, CUDNN_TENSOR_NCHW, nullptr, nullptr,
                                            nullptr, CUDNN_TRANSFORM_FOLD));
  const Tensor plain({1, 4, 1, 1}), vectors({1, 4, 1, 1}, CUDNN_TENSOR_NCHW_VECT_C);
  const Floats x{1, 2, 3, 4};
  Floats y(4, 7);
  const auto refuses = [&](const char* part, cudnnTensorDescriptor_t from,
                           cudnnTensorDescriptor_t to) {
    KILN_REFUSES(
        CUDNN_STATUS_NOT_SUPPORTED, part,
        cudnnTransformTensorEx(handle, transform, &one, from, x.data(), &zero, to, y.data()));
    BOOST_TEST(y == Floats(4, 7), boost::test_tools::per_element());
  };
  refuses("srcDesc is of format NCHW_VECT_C", vectors, plain);
  refuses("destDesc is of format NCHW_VECT_C", plain, vectors);
}

BOOST_AUTO_TEST_CASE(a_filter_from_one_format_to_another) {
  const Handle handle;
  Transform transform;
  KILN_OK(cudnnSetTensorTransformDescriptor(transform, 4, CUDNN_TENSOR_NHWC, nullptr, nullptr,
                                            nullptr, CUDNN_TRANSFORM_FOLD));
  Filter kcrs, krsc;
  KILN_OK(cudnnSetFilter4dDescriptor(kcrs, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 2, 1, 3));
  KILN_OK(cudnnSetFilter4dDescriptor(krsc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 1, 2, 1, 3));
  const Floats x{1, 2, 3, 4, 5, 6};
  Floats y(6, NAN);
  KILN_OK(cudnnTransformFilter(handle, transform, &one, kcrs, x.data(), &zero, krsc, y.data()));
  BOOST_TEST(y == (Floats{1, 4, 2, 5, 3, 6}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(reductions) {
  const Handle handle;
  const Tensor a({1, 2, 1, 3}), c({1, 2, 1, 1});
  const Floats x{1, -2, 3, 4, 0.5F, -1};
  Floats y(2, NAN);
  const auto reduce = [&](cudnnReduceTensorOp_t op, cudnnReduceTensorIndices_t indices) {
    Reduction reduction;
    KILN_OK(cudnnSetReduceTensorDescriptor(reduction, op, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                           indices, CUDNN_32BIT_INDICES));
    return cudnnReduceTensor(handle, reduction, nullptr, 0, nullptr, 0, &one, a, x.data(), &zero, c,
                             y.data());
  };
  const auto gives = [&](cudnnReduceTensorOp_t op, const Floats& expected) {
    KILN_OK(reduce(op, CUDNN_REDUCE_TENSOR_NO_INDICES));
    BOOST_TEST(y == expected, boost::test_tools::per_element());
  };
  gives(CUDNN_REDUCE_TENSOR_ADD, {2, 3.5F});
  gives(CUDNN_REDUCE_TENSOR_MUL, {-6, -2});
  gives(CUDNN_REDUCE_TENSOR_MIN, {-2, -1});
  gives(CUDNN_REDUCE_TENSOR_MAX, {3, 4});
  gives(CUDNN_REDUCE_TENSOR_AMAX, {3, 4});
  gives(CUDNN_REDUCE_TENSOR_NORM1, {6, 5.5F});
  KILN_REFUSES(CUDNN_STATUS_NOT_SUPPORTED, "MUL_NO_ZEROS",
               reduce(CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, CUDNN_REDUCE_TENSOR_NO_INDICES));
  KILN_REFUSES(CUDNN_STATUS_NOT_SUPPORTED, "indices",
               reduce(CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES));
  // The others have none to give, whether asked or not.
  KILN_OK(reduce(CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES));
  BOOST_TEST(y == (Floats{2, 3.5F}), boost::test_tools::per_element());
}

// Two zero bytes end what a callback is told, also where a long sentence is cut.
BOOST_AUTO_TEST_CASE(what_a_callback_is_told) {
  struct Told {
    std::string text;
    char behind = 1;
    cudnnStatus_t status{};
  } told;
  KILN_OK(cudnnSetCallback(
      CUDNN_SEV_ERROR_EN, &told,
      [](cudnnSeverity_t, void* to, const cudnnDebug_t* debug, const char* message) {
        auto& here = *static_cast<Told*>(to);
        here.text = message;
        here.behind = message[here.text.size() + 1];
        here.status = debug->cudnnStatus;
      }));
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "tensorDesc is null", cudnnCreateTensorDescriptor(nullptr));
  KILN_OK(cudnnSetCallback(0, nullptr, nullptr));
  BOOST_TEST(told.text == last_sentence());
  BOOST_TEST(told.behind == 0);
  BOOST_TEST(told.status == CUDNN_STATUS_BAD_PARAM);
}

// A setter that fails leaves the descriptor as it was.
BOOST_AUTO_TEST_CASE(a_setter_that_fails) {
  const Tensor t({1, 2, 3, 4});
  const std::array<int, 3> wrong{1, -2, 3};
  KILN_REFUSES(
      CUDNN_STATUS_BAD_PARAM, "dimA[1] is -2",
      cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 3, wrong.data()));
  std::size_t bytes = 0;
  KILN_OK(cudnnGetTensorSizeInBytes(t, &bytes));
  BOOST_TEST(bytes == 24 * sizeof(float));
  const std::vector<int> huge(8, 2000000000);
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "2^63",
               cudnnSetTensorNdDescriptorEx(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8, 8, huge.data()));
  // A getter could not give back the stride.
  KILN_REFUSES(
      CUDNN_STATUS_NOT_SUPPORTED, "the stride of dimension 0 would be 12884901888",
      cudnnSetTensor4dDescriptor(t, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 65536, 65536));
  KILN_OK(cudnnGetTensorSizeInBytes(t, &bytes));
  BOOST_TEST(bytes == 24 * sizeof(float));

  const Convolution convolution;
  KILN_OK(cudnnSetConvolution2dDescriptor(convolution, 1, 2, 3, 4, 5, 6, CUDNN_CONVOLUTION,
                                          CUDNN_DATA_HALF));
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "groupCount is 0",
               cudnnSetConvolutionGroupCount(convolution, 0));
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "stride",
               cudnnSetConvolution2dDescriptor(convolution, 1, 1, 0, 1, 1, 1,
                                               CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  int v[6] = {};
  cudnnConvolutionMode_t mode{};
  cudnnDataType_t type{};
  KILN_OK(cudnnGetConvolution2dDescriptor(convolution, v, v + 1, v + 2, v + 3, v + 4, v + 5, &mode,
                                          &type));
  for (int i = 0; i < 6; ++i) BOOST_TEST(v[i] == i + 1);
  BOOST_TEST(mode == CUDNN_CONVOLUTION);
  BOOST_TEST(type == CUDNN_DATA_HALF);

  const Tensor wide({1, 1, 1, 2147483647});
  const Filter pixel;
  KILN_OK(cudnnSetFilter4dDescriptor(pixel, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 1, 1));
  KILN_OK(cudnnSetConvolution2dDescriptor(convolution, 0, 10, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
  KILN_REFUSES(
      CUDNN_STATUS_NOT_SUPPORTED, "dimension 3 of the result has 2147483667",
      cudnnGetConvolution2dForwardOutputDim(convolution, wide, pixel, v, v + 1, v + 2, v + 3));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(statuses)

BOOST_AUTO_TEST_CASE(numbers_of_version_8) {
  const Tensor t;
  BOOST_TEST(static_cast<int>(cudnnDestroyTensorDescriptor(nullptr)) == 0);
  BOOST_TEST(static_cast<int>(cudnnGetTensorSizeInBytes(t, nullptr)) == 3);
  cudnnLRNDescriptor_t none = nullptr;
  BOOST_TEST(static_cast<int>(cudnnCreateLRNDescriptor(&none)) == 9);
  BOOST_TEST(cudnnGetErrorString(static_cast<cudnnStatus_t>(9)) == "CUDNN_STATUS_NOT_SUPPORTED");
  BOOST_TEST(cudnnGetErrorString(CUDNN_STATUS_NOT_SUPPORTED) == "CUDNN_STATUS_NOT_SUPPORTED");
  BOOST_TEST(cudnnGetErrorString(static_cast<cudnnStatus_t>(77)) == "CUDNN_UNKNOWN_STATUS");
}

BOOST_AUTO_TEST_SUITE_END()
