#include "network.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cudnnGetErrorString(status));
}

namespace {

constexpr float one = 1, zero = 0;

// A descriptor, destroyed with the object.
template <class Descriptor, cudnnStatus_t create(Descriptor*), cudnnStatus_t destroy(Descriptor)>
class Owned {
 public:
  Owned() { CUDNN_CALL(create(&descriptor_)); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy(descriptor_); }
  operator Descriptor() const { return descriptor_; }

 private:
  Descriptor descriptor_ = nullptr;
};
using TensorDescriptor =
    Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                                    cudnnDestroyConvolutionDescriptor>;
using PoolingDescriptor =
    Owned<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor>;
using ActivationDescriptor = Owned<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
                                   cudnnDestroyActivationDescriptor>;

std::size_t product(int n, int c, int h, int w) {
  return static_cast<std::size_t>(n) * static_cast<std::size_t>(c) * static_cast<std::size_t>(h) *
         static_cast<std::size_t>(w);
}

}  // namespace

struct LeNet::Tensor {
  int n, c, h, w;
  TensorDescriptor descriptor;
  Array array;
  Tensor(Memory& memory, int batch, int channels, int height, int width)
      : n(batch),
        c(channels),
        h(height),
        w(width),
        array(memory, product(batch, channels, height, width)) {
    CUDNN_CALL(
        cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
  }
  void* data() const { return array.get(); }
};

// y = relu(conv(x, w) + b), or without the relu. The velocities are what the backward calls write,
// with alpha = -rate and beta = momentum.
struct LeNet::Layer {
  cudnnHandle_t handle;
  const Tensor& x;
  bool relu;
  ConvolutionDescriptor convolution;
  ActivationDescriptor activation;
  FilterDescriptor filter;
  Tensor w, w_velocity;  // a filter's memory, and descriptors to add it by
  Tensor b, b_velocity;
  std::unique_ptr<Tensor> y, dy;
  Tensor dx;
  cudnnConvolutionFwdAlgoPerf_t forward_algorithm{};
  cudnnConvolutionBwdDataAlgoPerf_t data_algorithm{};
  cudnnConvolutionBwdFilterAlgoPerf_t filter_algorithm{};
  std::unique_ptr<Array> workspace;

  Layer(cudnnHandle_t h, Memory& memory, const Tensor& input, int filters, int side, bool with_relu,
        std::mt19937_64& random)
      : handle(h),
        x(input),
        relu(with_relu),
        w(memory, filters, input.c, side, side),
        w_velocity(memory, filters, input.c, side, side),
        b(memory, 1, filters, 1, 1),
        b_velocity(memory, 1, filters, 1, 1),
        dx(memory, input.n, input.c, input.h, input.w) {
    CUDNN_CALL(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters,
                                          input.c, side, side));
    CUDNN_CALL(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1,
                                               CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CUDNN_CALL(
        cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
    int n = 0, c = 0, height = 0, width = 0;
    CUDNN_CALL(cudnnGetConvolution2dForwardOutputDim(convolution, x.descriptor, filter, &n, &c,
                                                     &height, &width));
    y = std::make_unique<Tensor>(memory, n, c, height, width);
    dy = std::make_unique<Tensor>(memory, n, c, height, width);
    choose_algorithms(memory);
    // He's initialization: variance 2 / fan-in.
    std::normal_distribution<float> normal(
        0, std::sqrt(2.0f / static_cast<float>(input.c * side * side)));
    std::vector<float> values(w.array.count());
    for (float& value : values) value = normal(random);
    w.array.upload(values);
  }

  void choose_algorithms(Memory& memory) {
    int count = 0;
    CUDNN_CALL(cudnnGetConvolutionForwardAlgorithm_v7(
        handle, x.descriptor, filter, convolution, y->descriptor, 1, &count, &forward_algorithm));
    CUDNN_CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle, filter, dy->descriptor, convolution, dx.descriptor, 1, &count, &data_algorithm));
    CUDNN_CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, x.descriptor, dy->descriptor, convolution, filter, 1, &count, &filter_algorithm));
    const std::size_t bytes = std::max(
        {forward_algorithm.memory, data_algorithm.memory, filter_algorithm.memory, std::size_t{4}});
    workspace = std::make_unique<Array>(memory, (bytes + 3) / 4);
  }

  void forward() const {
    CUDNN_CALL(cudnnConvolutionForward(handle, &one, x.descriptor, x.data(), filter, w.data(),
                                       convolution, forward_algorithm.algo, workspace->get(),
                                       forward_algorithm.memory, &zero, y->descriptor, y->data()));
    CUDNN_CALL(
        cudnnAddTensor(handle, &one, b.descriptor, b.data(), &one, y->descriptor, y->data()));
    if (relu)
      CUDNN_CALL(cudnnActivationForward(handle, activation, &one, y->descriptor, y->data(), &zero,
                                        y->descriptor, y->data()));
  }

  // From the gradient of y, which may be dy itself; dx only where someone needs it.
  void backward(const Tensor& gradient, bool wants_dx, float rate, float momentum) const {
    if (relu)
      CUDNN_CALL(cudnnActivationBackward(handle, activation, &one, y->descriptor, y->data(),
                                         gradient.descriptor, gradient.data(), y->descriptor,
                                         y->data(), &zero, dy->descriptor, dy->data()));
    if (wants_dx)
      CUDNN_CALL(cudnnConvolutionBackwardData(handle, &one, filter, w.data(), dy->descriptor,
                                              dy->data(), convolution, data_algorithm.algo,
                                              workspace->get(), data_algorithm.memory, &zero,
                                              dx.descriptor, dx.data()));
    const float step = -rate;
    CUDNN_CALL(cudnnConvolutionBackwardFilter(handle, &step, x.descriptor, x.data(), dy->descriptor,
                                              dy->data(), convolution, filter_algorithm.algo,
                                              workspace->get(), filter_algorithm.memory, &momentum,
                                              filter, w_velocity.data()));
    CUDNN_CALL(cudnnConvolutionBackwardBias(handle, &step, dy->descriptor, dy->data(), &momentum,
                                            b.descriptor, b_velocity.data()));
    for (const auto& [to, velocity] : {std::pair(&w, &w_velocity), std::pair(&b, &b_velocity)})
      CUDNN_CALL(cudnnAddTensor(handle, &one, velocity->descriptor, velocity->data(), &one,
                                to->descriptor, to->data()));
  }
};

// Maxima of 2 x 2.
struct LeNet::Pool {
  cudnnHandle_t handle;
  const Tensor& x;
  PoolingDescriptor pooling;
  std::unique_ptr<Tensor> y;

  Pool(cudnnHandle_t h, Memory& memory, const Tensor& input) : handle(h), x(input) {
    CUDNN_CALL(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0,
                                           0, 2, 2));
    int n = 0, c = 0, height = 0, width = 0;
    CUDNN_CALL(cudnnGetPooling2dForwardOutputDim(pooling, x.descriptor, &n, &c, &height, &width));
    y = std::make_unique<Tensor>(memory, n, c, height, width);
  }

  void forward() const {
    CUDNN_CALL(cudnnPoolingForward(handle, pooling, &one, x.descriptor, x.data(), &zero,
                                   y->descriptor, y->data()));
  }
  void backward(const Tensor& dy, const Tensor& dx) const {
    CUDNN_CALL(cudnnPoolingBackward(handle, pooling, &one, y->descriptor, y->data(), dy.descriptor,
                                    dy.data(), x.descriptor, x.data(), &zero, dx.descriptor,
                                    dx.data()));
  }
};

// p = softmax(x); the gradient of the mean cross-entropy with respect to x is (p - t) / batch, with
// t the labels' one-hot rows. As in many programs, SoftmaxBackward gets -t / (p * batch).
struct LeNet::Softmax {
  cudnnHandle_t handle;
  const Tensor& x;
  Tensor p, dp;

  Softmax(cudnnHandle_t h, Memory& memory, const Tensor& input)
      : handle(h),
        x(input),
        p(memory, input.n, input.c, 1, 1),
        dp(memory, input.n, input.c, 1, 1) {}

  void forward() const {
    CUDNN_CALL(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                   &one, x.descriptor, x.data(), &zero, p.descriptor, p.data()));
  }
  void backward(const std::vector<float>& probabilities, const std::vector<int>& labels,
                const Tensor& dx) {
    std::vector<float> rows(dp.array.count());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::size_t at = i * 10 + static_cast<std::size_t>(labels[i]);
      rows[at] = -1 / (std::max(probabilities[at], 1e-20f) * static_cast<float>(labels.size()));
    }
    dp.array.upload(rows);
    CUDNN_CALL(cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE,
                                    &one, p.descriptor, p.data(), dp.descriptor, dp.data(), &zero,
                                    dx.descriptor, dx.data()));
  }
};

LeNet::LeNet(cudnnHandle_t handle, Memory& memory, const LeNetSizes& sizes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  input_ = std::make_unique<Tensor>(memory, sizes.batch, 1, 28, 28);
  conv1_ = std::make_unique<Layer>(handle, memory, *input_, sizes.filters1, 5, true, random);
  pool1_ = std::make_unique<Pool>(handle, memory, *conv1_->y);
  conv2_ = std::make_unique<Layer>(handle, memory, *pool1_->y, sizes.filters2, 5, true, random);
  pool2_ = std::make_unique<Pool>(handle, memory, *conv2_->y);
  dense1_ = std::make_unique<Layer>(handle, memory, *pool2_->y, sizes.hidden, 4, true, random);
  dense2_ = std::make_unique<Layer>(handle, memory, *dense1_->y, 10, 1, false, random);
  softmax_ = std::make_unique<Softmax>(handle, memory, *dense2_->y);
}

LeNet::~LeNet() = default;

std::vector<float> LeNet::predict(const std::vector<float>& pictures) {
  input_->array.upload(pictures);
  conv1_->forward();
  pool1_->forward();
  conv2_->forward();
  pool2_->forward();
  dense1_->forward();
  dense2_->forward();
  softmax_->forward();
  return softmax_->p.array.download();
}

std::vector<float> LeNet::train(const std::vector<float>& pictures, const std::vector<int>& labels,
                                float rate, float momentum) {
  std::vector<float> probabilities = predict(pictures);
  softmax_->backward(probabilities, labels, *dense2_->dy);
  // Each layer's dx is the gradient of what it read: dense2's of dense1's output, and so on down.
  dense2_->backward(*dense2_->dy, true, rate, momentum);
  dense1_->backward(dense2_->dx, true, rate, momentum);
  pool2_->backward(dense1_->dx, *conv2_->dy);
  conv2_->backward(*conv2_->dy, true, rate, momentum);
  pool1_->backward(conv2_->dx, *conv1_->dy);
  conv1_->backward(*conv1_->dy, false, rate, momentum);
  return probabilities;
}
