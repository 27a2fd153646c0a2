// Queries for algorithms and workspace, as programs of 2015, 2018 and 2024 make them.
#include <array>
#include <string>
#include <thread>

#include "cudnn/described.hpp"

using namespace test;

namespace {

struct Fixture {
  Handle handle;
  TensorDesc x, y;
  FilterDesc w;
  ConvolutionDesc convolution;
  Buffer<float> x_data{std::vector<float>(2 * 3 * 6 * 6, 1)},
      y_data{std::vector<float>(2 * 4 * 6 * 6, -5)}, w_data{std::vector<float>(4 * 3 * 3 * 3, 1)};

  Fixture() {
    succeeds(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 3, 6, 6));
    succeeds(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 2, 4, 6, 6));
    succeeds(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3));
    succeeds(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                             CUDNN_DATA_FLOAT));
  }

  // Runs the convolution with the algorithm. Away from the edges, every element is a sum of 27
  // ones.
  void runs(cudnnConvolutionFwdAlgo_t algorithm) const {
    const float one = 1, zero = 0;
    succeeds(cudnnConvolutionForward(handle, &one, x, x_data.data(), w, w_data.data(), convolution,
                                     algorithm, nullptr, 0, &zero, y, y_data.data()));
    BOOST_TEST(y_data.read()[7] == 27);
  }
};

// Checks the one reported algorithm: no workspace, deterministic, and with a time if it was
// measured.
template <class Perf>
void is_sound(const Perf& perf, bool measured) {
  BOOST_TEST(perf.status == CUDNN_STATUS_SUCCESS);
  BOOST_TEST(perf.memory == 0u);
  BOOST_TEST(perf.determinism == CUDNN_DETERMINISTIC);
  BOOST_TEST((measured ? perf.time > 0 : perf.time == -1));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(algorithms, Fixture)

// A preference and a limit, of versions 1 to 7.
BOOST_AUTO_TEST_CASE(as_in_2015) {
  for (const auto preference :
       {CUDNN_CONVOLUTION_FWD_NO_WORKSPACE, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST,
        CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT}) {
    auto forward = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
    succeeds(cudnnGetConvolutionForwardAlgorithm(handle, x, w, convolution, y, preference, 1 << 20,
                                                 &forward));
    std::size_t bytes = 7;
    succeeds(
        cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, forward, &bytes));
    BOOST_TEST(bytes == 0u);
    runs(forward);
  }
  auto data = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  auto filter = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  succeeds(cudnnGetConvolutionBackwardDataAlgorithm(
      handle, w, y, convolution, x, CUDNN_CONVOLUTION_BWD_DATA_PREFER_FASTEST, 0, &data));
  succeeds(cudnnGetConvolutionBackwardFilterAlgorithm(
      handle, x, y, convolution, w, CUDNN_CONVOLUTION_BWD_FILTER_PREFER_FASTEST, 0, &filter));
  BOOST_TEST(data < CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
  BOOST_TEST(filter < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
  std::size_t bytes = 7;
  succeeds(
      cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w, y, convolution, x, data, &bytes));
  BOOST_TEST(bytes == 0u);
  bytes = 7;
  succeeds(
      cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x, y, convolution, w, filter, &bytes));
  BOOST_TEST(bytes == 0u);
}

// Find..., _v7 and MaxCount, as in version 7: the caller asks for several algorithms and gets one.
BOOST_AUTO_TEST_CASE(as_in_2018) {
  int most = 0, count = -1;
  std::array<cudnnConvolutionFwdAlgoPerf_t, 8> forward{};
  succeeds(cudnnGetConvolutionForwardAlgorithmMaxCount(handle, &most));
  BOOST_TEST((most >= 1 && most <= 8));
  succeeds(cudnnFindConvolutionForwardAlgorithm(handle, x, w, convolution, y, 8, &count,
                                                forward.data()));
  BOOST_TEST(count == 1);
  is_sound(forward[0], true);
  runs(forward[0].algo);
  count = -1;
  succeeds(cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, 8, &count,
                                                  forward.data()));
  BOOST_TEST(count == 1);
  is_sound(forward[0], false);

  std::array<cudnnConvolutionBwdDataAlgoPerf_t, 6> data{};
  succeeds(cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle, &most));
  BOOST_TEST(most >= 1);
  succeeds(cudnnFindConvolutionBackwardDataAlgorithm(handle, w, y, convolution, x, 6, &count,
                                                     data.data()));
  BOOST_TEST(count == 1);
  is_sound(data[0], true);
  succeeds(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, y, convolution, x, 6, &count,
                                                       data.data()));
  is_sound(data[0], false);

  std::array<cudnnConvolutionBwdFilterAlgoPerf_t, 7> filter{};
  succeeds(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle, &most));
  BOOST_TEST(most >= 1);
  succeeds(cudnnFindConvolutionBackwardFilterAlgorithm(handle, x, y, convolution, w, 7, &count,
                                                       filter.data()));
  BOOST_TEST(count == 1);
  is_sound(filter[0], true);
  succeeds(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x, y, convolution, w, 7, &count,
                                                         filter.data()));
  is_sound(filter[0], false);
}

// A new thread has no CUDA context, and Find makes its tensors in the handle's.
BOOST_AUTO_TEST_CASE(found_by_a_thread_without_a_context) {
  std::array<cudnnConvolutionFwdAlgoPerf_t, 1> found{};
  int count = -1;
  cudnnStatus_t status{};
  std::string sentence;
  std::thread([&] {
    status =
        cudnnFindConvolutionForwardAlgorithm(handle, x, w, convolution, y, 1, &count, found.data());
    sentence = last_sentence();
  }).join();
  BOOST_TEST(status == CUDNN_STATUS_SUCCESS, sentence);
  BOOST_TEST(count == 1);
  is_sound(found[0], true);
}

// FindEx with the program's own tensors and workspace, and a fixed list of algorithms that is asked
// for its workspace one by one.
BOOST_AUTO_TEST_CASE(as_in_2024) {
  int count = -1;
  cudnnConvolutionFwdAlgoPerf_t forward{};
  const Buffer<float> workspace(std::vector<float>(16, 3));
  succeeds(cudnnFindConvolutionForwardAlgorithmEx(handle, x, x_data.data(), w, w_data.data(),
                                                  convolution, y, y_data.data(), 1, &count,
                                                  &forward, workspace.data(), 16 * sizeof(float)));
  BOOST_TEST(count == 1);
  is_sound(forward, true);
  cudnnConvolutionBwdDataAlgoPerf_t data{};
  succeeds(cudnnFindConvolutionBackwardDataAlgorithmEx(
      handle, w, w_data.data(), y, y_data.data(), convolution, x, x_data.data(), 1, &count, &data,
      workspace.data(), 16 * sizeof(float)));
  is_sound(data, true);
  cudnnConvolutionBwdFilterAlgoPerf_t filter{};
  succeeds(cudnnFindConvolutionBackwardFilterAlgorithmEx(
      handle, x, x_data.data(), y, y_data.data(), convolution, w, w_data.data(), 1, &count, &filter,
      workspace.data(), 16 * sizeof(float)));
  is_sound(filter, true);
  BOOST_TEST(workspace.read() == std::vector<float>(16, 3), boost::test_tools::per_element());

  for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
    const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(i);
    std::size_t bytes = 7;
    succeeds(
        cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, algorithm, &bytes));
    BOOST_TEST(bytes == 0u);
  }
}

BOOST_AUTO_TEST_CASE(what_is_asked_wrongly) {
  int count = -1;
  cudnnConvolutionFwdAlgoPerf_t perf{};
  fails(cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, 0, &count, &perf),
        CUDNN_STATUS_BAD_PARAM, {"requestedAlgoCount is 0"});
  fails(cudnnFindConvolutionForwardAlgorithm(handle, x, w, convolution, y, 1, &count, nullptr),
        CUDNN_STATUS_BAD_PARAM, {"perfResults is null"});
  std::size_t bytes = 7;
  fails(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y,
                                                static_cast<cudnnConvolutionFwdAlgo_t>(99), &bytes),
        CUDNN_STATUS_BAD_PARAM, {"algo is 99"});
  fails(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, x,
                                                CUDNN_CONVOLUTION_FWD_ALGO_GEMM, &bytes),
        CUDNN_STATUS_BAD_PARAM, {"yDesc"});
}

BOOST_AUTO_TEST_SUITE_END()
