// A LeNet-style network in f32: two convolutions with pooling, two dense layers done as
// convolutions, softmax. There is no kernel in here, only Kiln's calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/memory.hpp"
#include "kiln/kiln.hpp"

struct NetworkSizes {
  std::int64_t batch = 100;
  std::int64_t filters1 = 16, filters2 = 32, hidden = 128;
  // Kernels that a thread computes alone, where there are such: on the host device, and for
  // problems as small as these, four times as fast as those that are made for a GPU.
  bool simple_engines = false;
};

class Network {
 public:
  Network(const kiln::Handle& handle, Memory& memory, const NetworkSizes& sizes,
          std::uint64_t seed);
  ~Network();

  // Both take a batch of pictures (batch x 28 x 28). The probabilities: batch x 10.
  std::vector<float> predict(const std::vector<float>& pictures);
  // One step of stochastic gradient descent with momentum on the cross-entropy; the probabilities
  // that the step began with.
  std::vector<float> train(const std::vector<float>& pictures, const std::vector<int>& labels,
                           double rate, double momentum);

  // The filters of the first layer, filters1 x 5 x 5.
  std::vector<float> first_filters() const;

  // How many of the network's plans got their kernel from where: "compiled", "disk", "memory".
  std::map<std::string, int> kernel_origins() const;

 private:
  struct Input;
  struct Layer;  // a convolution with bias and, but for the last, relu
  struct Pool;
  struct Softmax;

  std::unique_ptr<Input> input_;
  std::unique_ptr<Layer> conv1_, conv2_, dense1_, dense2_;
  std::unique_ptr<Pool> pool1_, pool2_;
  std::unique_ptr<Softmax> softmax_;
};
