// LeNet written to the cuDNN API, as a program for cuDNN 7 to 9 writes it: two convolutions with
// pooling, two dense layers done as convolutions, softmax. Nothing in it is Kiln's.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/memory.hpp"

struct LeNetSizes {
  int batch = 100, filters1 = 20, filters2 = 50, hidden = 500;
};

class LeNet {
 public:
  LeNet(cudnnHandle_t handle, Memory& memory, const LeNetSizes& sizes, std::uint64_t seed);
  ~LeNet();

  // Both take a batch of pictures (batch x 28 x 28). The probabilities: batch x 10.
  std::vector<float> predict(const std::vector<float>& pictures);
  // One step of stochastic gradient descent with momentum on the cross-entropy; the probabilities
  // that the step began with.
  std::vector<float> train(const std::vector<float>& pictures, const std::vector<int>& labels,
                           float rate, float momentum);

 private:
  struct Tensor;
  struct Layer;  // a convolution with bias and, but for the last, relu
  struct Pool;
  struct Softmax;

  std::unique_ptr<Tensor> input_;
  std::unique_ptr<Layer> conv1_, conv2_, dense1_, dense2_;
  std::unique_ptr<Pool> pool1_, pool2_;
  std::unique_ptr<Softmax> softmax_;
};

// Throws std::runtime_error with the call's text and cuDNN's error string.
void check_cudnn(cudnnStatus_t status, const char* call);
#define CUDNN_CALL(call) check_cudnn(call, #call)
