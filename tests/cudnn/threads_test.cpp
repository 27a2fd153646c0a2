// Handles and descriptors of many threads: results as of one, and errors each thread's own.
#include <cstdlib>
#include <thread>

#include "cudnn/described.hpp"

using namespace test;

BOOST_AUTO_TEST_SUITE(threads)

BOOST_AUTO_TEST_CASE(each_with_its_handle) {
  const TensorDesc x, y;
  const FilterDesc w;
  const ConvolutionDesc convolution;
  succeeds(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 3, 5, 5));
  succeeds(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 5, 5));
  succeeds(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 3, 3));
  succeeds(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                           CUDNN_DATA_FLOAT));
  const Buffer<float> x_data(std::vector<float>(75, 2)), w_data(std::vector<float>(108, 1));
  constexpr std::size_t count = 8;
  std::vector<std::string> faults(count);  // Boost's checks are not for threads
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < count; ++i)
    running.emplace_back([&, i] {
      const auto require = [&](bool sound, const std::string& what) {
        if (!sound && faults[i].empty()) faults[i] = what;
      };
      cudnnHandle_t handle = nullptr;
      require(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS, "no handle");
      const Buffer<float> y_data(std::vector<float>(100, -1));
      const float one = 1, zero = 0;
      for (int time = 0; time < 50; ++time) {
        require(cudnnConvolutionForward(handle, &one, x, x_data.data(), w, w_data.data(),
                                        convolution, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, nullptr, 0,
                                        &zero, y, y_data.data()) == CUDNN_STATUS_SUCCESS,
                last_sentence());
        cudnnTensorDescriptor_t own = nullptr;
        require(cudnnCreateTensorDescriptor(&own) == CUDNN_STATUS_SUCCESS, "no descriptor");
        const int wrong = -static_cast<int>(i) - 1;
        require(cudnnSetTensor4dDescriptor(own, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, wrong, 1, 1,
                                           1) == CUDNN_STATUS_BAD_PARAM,
                "a size below 1 was taken");
        require(last_sentence().find(std::to_string(wrong)) != std::string::npos,
                "another thread's error: " + last_sentence());
        cudnnDestroyTensorDescriptor(own);
      }
      require(y_data.read()[6] == 54, "a wrong sum");
      cudnnDestroy(handle);
    });
  for (std::thread& each : running) each.join();
  for (const std::string& fault : faults) BOOST_TEST(fault == "");
}

// Handles share the plans of batch normalization with workspace.
BOOST_AUTO_TEST_CASE(normalization_with_workspace) {
  const TensorDesc x, numbers;
  succeeds(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2, 4, 3, 5));
  succeeds(cudnnDeriveBNTensorDescriptor(numbers, x, CUDNN_BATCHNORM_SPATIAL));
  const Buffer<float> x_data(std::vector<float>(120, 2)), row(std::vector<float>(4, 3));
  constexpr std::size_t count = 4;
  std::vector<std::string> faults(count);
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < count; ++i)
    running.emplace_back([&, i] {
      cudnnHandle_t handle = nullptr;
      cudnnCreate(&handle);
      const float one = 1, zero = 0;
      std::size_t bytes = 0;
      const auto mode = CUDNN_BATCHNORM_SPATIAL;
      const auto ops = CUDNN_BATCHNORM_OPS_BN;
      if (cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
              handle, mode, ops, x, nullptr, x, numbers, nullptr, &bytes) != CUDNN_STATUS_SUCCESS)
        faults[i] = last_sentence();
      const Buffer<float> y_data(std::vector<float>(120, -1));
      const Buffer<unsigned char> workspace{std::vector<unsigned char>(bytes)};
      for (int time = 0; time < 20; ++time)  // saves no statistics: they are in the workspace
        if (cudnnBatchNormalizationForwardTrainingEx(
                handle, mode, ops, &one, &zero, x, x_data.data(), nullptr, nullptr, x,
                y_data.data(), numbers, row.data(), row.data(), 1, nullptr, nullptr, 1e-5, nullptr,
                nullptr, nullptr, workspace.data(), bytes, nullptr, 0) != CUDNN_STATUS_SUCCESS)
          faults[i] = last_sentence();
      if (y_data.read()[6] != 3) faults[i] += "a wrong result";
      cudnnDestroy(handle);
    });
  for (std::thread& each : running) each.join();
  for (const std::string& fault : faults) BOOST_TEST(fault == "");
}

BOOST_AUTO_TEST_SUITE_END()
