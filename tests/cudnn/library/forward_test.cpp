// KILN_CUDNN_FORWARD: what Kiln does not serve goes to another library, with that library's
// objects.
#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "objects.hpp"

using namespace kiln_test;  // NOLINT

BOOST_AUTO_TEST_SUITE(forward)

int living_in_stand_in() {
  void* const library = dlopen(std::getenv("KILN_CUDNN_FORWARD"), RTLD_NOW | RTLD_NOLOAD);
  BOOST_REQUIRE(library != nullptr);
  auto* const living = reinterpret_cast<int (*)()>(dlsym(library, "standInLiving"));
  BOOST_REQUIRE(living != nullptr);
  return living();
}

BOOST_AUTO_TEST_CASE(objects_have_twins_that_follow_them) {
  BOOST_TEST(cudnnGetVersion() == 91234u);
  {
    const Handle handle;
    const Tensor x({2, 3, 4, 5}, CUDNN_TENSOR_NHWC);
    BOOST_TEST(living_in_stand_in() == 0);
    cudnnLRNDescriptor_t lrn = nullptr;
    KILN_OK(cudnnCreateLRNDescriptor(&lrn));
    std::array<std::int64_t, 7> seen{};
    const auto run = [&] {
      KILN_OK(cudnnLRNCrossChannelForward(handle, lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, x, &one,
                                          &zero, x, seen.data()));
    };
    run();
    using Seen = std::array<std::int64_t, 7>;
    BOOST_TEST(seen == (Seen{1, 3, 2, 0, 3, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC}),
               boost::test_tools::per_element());
    BOOST_TEST(living_in_stand_in() == 2);
    KILN_OK(cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(std::intptr_t{64})));
    KILN_OK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 1, 8, 1, 1));
    run();
    BOOST_TEST(seen == (Seen{1, 3, 2, 64, 8, CUDNN_DATA_INT8x4, CUDNN_TENSOR_NCHW_VECT_C}),
               boost::test_tools::per_element());
    BOOST_TEST(living_in_stand_in() == 2);
    KILN_OK(cudnnDestroyLRNDescriptor(lrn));
  }
  BOOST_TEST(living_in_stand_in() == 0);
}

// What Kiln's descriptor says.
struct Said {
  int rank = -1;
  std::array<int, CUDNN_DIM_MAX> dims{}, strides{};
  cudnnDataType_t type{};
  explicit Said(cudnnTensorDescriptor_t descriptor) {
    KILN_OK(cudnnGetTensorNdDescriptor(descriptor, CUDNN_DIM_MAX, &type, &rank, dims.data(),
                                       strides.data()));
  }
};

BOOST_AUTO_TEST_CASE(what_the_other_library_sets_is_read_back) {
  const Tensor x({2, 3, 4, 5}, CUDNN_TENSOR_NHWC, CUDNN_DATA_INT8), derived;
  KILN_OK(cudnnDeriveBNTensorDescriptor(derived, x, CUDNN_BATCHNORM_SPATIAL));
  const Said said(derived);
  BOOST_TEST(said.rank == 4);
  BOOST_TEST(said.dims[1] == 3);
  BOOST_TEST(said.dims[2] == 1);
  BOOST_TEST(said.type == CUDNN_DATA_INT8);  // as the stand-in has it
  // What it only reads is not: it would give strides of its own.
  BOOST_TEST(Said(x).strides[1] == 1);
  BOOST_TEST(Said(x).strides[3] == 3);
}

BOOST_AUTO_TEST_CASE(a_matrix_that_is_absent_has_no_dimensions) {
  const Handle handle;
  const Tensor matrix({1, 2, 3, 4}), bias;
  void *matrix_at = nullptr, *bias_at = nullptr;
  KILN_OK(cudnnGetRNNWeightParams(handle, nullptr, 0, 0, nullptr, 0, matrix, &matrix_at, bias,
                                  &bias_at));
  BOOST_TEST(Said(matrix).rank == 0);
  BOOST_TEST(Said(bias).rank == 4);
  BOOST_TEST(Said(bias).dims[2] == 6);
  BOOST_TEST(Said(bias).type == CUDNN_DATA_HALF);
  const Floats x(24, 1);
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "Desc was never set",
               cudnnTransformTensor(handle, &one, matrix, x.data(), &zero, matrix, nullptr));
}

BOOST_AUTO_TEST_CASE(queries_of_what_kiln_does_not_compute_with) {
  const Tensor vectors({1, 8, 4, 1}, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4), floats({1, 1});
  std::size_t bytes = 0;
  KILN_OK(cudnnGetTensorSizeInBytes(vectors, &bytes));
  BOOST_TEST(bytes == 1008u);
  KILN_OK(cudnnGetTensorSizeInBytes(floats, &bytes));
  BOOST_TEST(bytes == sizeof(float));
  const Filter filter;
  KILN_OK(
      cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_INT8x4, CUDNN_TENSOR_NCHW_VECT_C, 1, 4, 1, 1));
  KILN_REFUSES(CUDNN_STATUS_NOT_SUPPORTED, "no such function",
               cudnnGetFilterSizeInBytes(filter, &bytes));
}

BOOST_AUTO_TEST_CASE(a_transform_that_folds) {
  const Tensor x({1, 3, 4, 5}), dest;
  const Transform transform;
  const std::array<std::uint32_t, 2> fold{2, 1};  // of height and width
  KILN_OK(cudnnSetTensorTransformDescriptor(transform, 4, CUDNN_TENSOR_NCHW, nullptr, nullptr,
                                            fold.data(), CUDNN_TRANSFORM_FOLD));
  std::size_t bytes = 0;
  KILN_OK(cudnnInitTransformDest(transform, x, dest, &bytes));
  BOOST_TEST(bytes == 4321u);
  BOOST_TEST(Said(dest).dims[1] == 6);
  BOOST_TEST(Said(dest).dims[2] == 2);
}

BOOST_AUTO_TEST_CASE(kiln_serves_what_it_can) {
  const Handle handle;
  const Tensor floats({1, 2, 1, 1}), bytes({1, 2, 1, 1}, CUDNN_TENSOR_NCHW, CUDNN_DATA_INT8);
  const Floats a{1, 2};
  Floats c{10, 20};
  KILN_OK(cudnnAddTensor(handle, &one, floats, a.data(), &one, floats, c.data()));
  BOOST_TEST(c == (Floats{11, 22}), boost::test_tools::per_element());
  KILN_REFUSES(CUDNN_STATUS_EXECUTION_FAILED, "the stand-in says no",
               cudnnAddTensor(handle, &one, bytes, a.data(), &one, bytes, c.data()));
  // An error of the caller's is no reason to forward.
  KILN_REFUSES(CUDNN_STATUS_BAD_PARAM, "cDesc is null",
               cudnnAddTensor(handle, &one, floats, a.data(), &one, nullptr, c.data()));
}

BOOST_AUTO_TEST_CASE(handles_among_attributes) {
  const Handle handle;
  cudnnHandle_t ours = handle;
  KILN_OK(cudnnBackendSetAttribute(nullptr, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                   &ours));
}

BOOST_AUTO_TEST_CASE(what_neither_has) {
  cudnnDropoutDescriptor_t dropout = nullptr;
  KILN_REFUSES(CUDNN_STATUS_NOT_SUPPORTED, "no such function",
               cudnnCreateDropoutDescriptor(&dropout));
  cudnnFusedOpsPlan_t plan = nullptr;
  KILN_REFUSES(CUDNN_STATUS_NOT_SUPPORTED, "Kiln has no fused operation",
               cudnnCreateFusedOpsPlan(&plan, CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(forward_to_itself)

BOOST_AUTO_TEST_CASE(is_refused) {
  BOOST_TEST(cudnnGetVersion() == static_cast<std::size_t>(CUDNN_VERSION));
  cudnnLRNDescriptor_t none = nullptr;
  KILN_REFUSES(CUDNN_STATUS_NOT_SUPPORTED, "Kiln has no local response normalization",
               cudnnCreateLRNDescriptor(&none));
}

BOOST_AUTO_TEST_SUITE_END()
