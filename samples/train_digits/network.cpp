#include "network.hpp"

#include <cmath>
#include <random>

namespace {

constexpr kilnDataType_t type = KILN_DATA_FLOAT;
constexpr kilnTensorFormat_t format = KILN_TENSOR_NCHW;

std::size_t count_of(const kiln::Sizes& dims) {
  std::size_t count = 1;
  for (const std::int64_t size : dims) count *= static_cast<std::size_t>(size);
  return count;
}

// A tensor's descriptor and memory.
struct Tensor {
  kiln::Sizes dims;
  kiln::TensorDescriptor descriptor;
  Array array;
  Tensor(Memory& memory, const kiln::Sizes& sizes)
      : dims(sizes), descriptor(format, type, sizes), array(memory, count_of(sizes)) {}
  void* data() const { return array.get(); }
};

void note(const kiln::Plan& plan, std::map<std::string, int>& origins) {
  switch (plan.info().origin) {
    case KILN_KERNEL_COMPILED: ++origins["compiled"]; break;
    case KILN_KERNEL_DISK:
    case KILN_KERNEL_BUNDLE: ++origins["disk"]; break;
    case KILN_KERNEL_MEMORY: ++origins["memory"]; break;
  }
}

template <class Plan>
Plan finalized(Plan plan, const char* engine = nullptr) {
  plan.set_engine(engine);  // null: the library chooses
  plan.finalize();
  return plan;
}

}  // namespace

// y = relu(conv(x, w) + b), or without the relu. The gradient steps go straight into the
// velocities: v = -rate * gradient + momentum * v is one call of the backward convolution, with
// alpha = -rate and beta = momentum; then w += v.
struct Network::Layer {
  const kiln::Handle& handle;
  const Tensor& x;
  bool relu;
  kiln::ConvolutionDescriptor convolution{{}};
  kiln::FilterDescriptor w_descriptor;
  kiln::TensorDescriptor w_flat;  // the same memory as w, for adding
  kiln::Sizes w_dims;
  Array w, w_velocity;
  Tensor b, b_velocity;
  Tensor y, dy, dx;
  kiln::ActivationDescriptor activation;
  kiln::ConvolutionBiasActivationForward forward_plan;
  kiln::ActivationBackward activation_plan;
  kiln::ConvolutionBackwardData data_plan;
  kiln::ConvolutionBackwardFilter filter_plan;
  kiln::ConvolutionBackwardBias bias_plan;
  kiln::AddTensor add_w, add_b;

  Layer(const kiln::Handle& h, Memory& memory, const Tensor& input, std::int64_t filters,
        std::int64_t side, bool with_relu, bool simple, std::mt19937_64& random)
      : handle(h),
        x(input),
        relu(with_relu),
        w_descriptor(format, type, {filters, input.dims[1], side, side}),
        w_flat(format, type, {filters, input.dims[1], side, side}),
        w_dims{filters, input.dims[1], side, side},
        w(memory, count_of(w_dims)),
        w_velocity(memory, count_of(w_dims)),
        b(memory, {1, filters, 1, 1}),
        b_velocity(memory, {1, filters, 1, 1}),
        y(memory, convolution.output_dims(input.descriptor, w_descriptor)),
        dy(memory, y.dims),
        dx(memory, input.dims),
        activation(with_relu ? KILN_ACTIVATION_RELU : KILN_ACTIVATION_IDENTITY),
        forward_plan(
            finalized<kiln::ConvolutionBiasActivationForward>({handle,
                                                               {.x = x.descriptor,
                                                                .w = w_descriptor,
                                                                .convolution = convolution,
                                                                .bias = &b.descriptor,
                                                                .activation = activation,
                                                                .y = y.descriptor}},
                                                              simple ? "direct" : nullptr)),
        activation_plan(finalized<kiln::ActivationBackward>({handle,
                                                             {.activation = activation,
                                                              .y = &y.descriptor,
                                                              .dy = dy.descriptor,
                                                              .dx = dy.descriptor}})),
        data_plan(finalized<kiln::ConvolutionBackwardData>({handle,
                                                            {.w = w_descriptor,
                                                             .dy = dy.descriptor,
                                                             .convolution = convolution,
                                                             .dx = dx.descriptor}},
                                                           simple ? "direct" : nullptr)),
        filter_plan(finalized<kiln::ConvolutionBackwardFilter>(
            {handle,
             {.x = x.descriptor,
              .dy = dy.descriptor,
              .convolution = convolution,
              .dw = w_descriptor}},
            // It has a block an element of dw: for few of these.
            simple && input.dims[1] == 1 ? "wgrad_direct" : nullptr)),
        bias_plan(finalized<kiln::ConvolutionBackwardBias>(
            {handle, {.dy = dy.descriptor, .db = b.descriptor}})),
        add_w(finalized<kiln::AddTensor>({handle, {.x = w_flat, .y = w_flat}})),
        add_b(finalized<kiln::AddTensor>({handle, {.x = b.descriptor, .y = b.descriptor}})) {
    // He's initialization: variance 2 / fan-in.
    std::normal_distribution<float> normal(
        0,
        std::sqrt(2.0f / static_cast<float>(count_of(w_dims) / static_cast<std::size_t>(filters))));
    std::vector<float> values(w.count());
    for (float& value : values) value = normal(random);
    w.upload(values);
  }

  void forward() const {
    forward_plan.execute(handle, {.x = x.data(), .w = w.get(), .bias = b.data(), .y = y.data()});
  }
  // From the gradient of y, which may be dy itself; dx only where someone needs it.
  void backward(const Tensor& gradient, bool wants_dx, double rate, double momentum) {
    if (relu)
      activation_plan.execute(handle, {.y = y.data(), .dy = gradient.data(), .dx = dy.data()});
    if (wants_dx) data_plan.execute(handle, {.w = w.get(), .dy = dy.data(), .dx = dx.data()});
    const kiln::Scale step{.alpha = -rate, .beta = momentum};
    filter_plan.execute(handle, {.x = x.data(), .dy = dy.data(), .dw = w_velocity.get()}, step);
    bias_plan.execute(handle, {.dy = dy.data(), .db = b_velocity.data()}, step);
    add_w.execute(handle, {.x = w_velocity.get(), .y = w.get()}, {.beta = 1});
    add_b.execute(handle, {.x = b_velocity.data(), .y = b.data()}, {.beta = 1});
  }
  void count(std::map<std::string, int>& origins) const {
    const kiln::Plan* const plans[] = {&forward_plan, &activation_plan, &data_plan, &filter_plan,
                                       &bias_plan,    &add_w,           &add_b};
    for (const kiln::Plan* plan : plans) note(*plan, origins);
  }
};

// Maxima of 2 x 2.
struct Network::Pool {
  const kiln::Handle& handle;
  const Tensor& x;
  Tensor& dx;
  kiln::PoolingDescriptor pooling{{.window = {2, 2}}};
  Tensor y;
  kiln::PoolingForward forward_plan;
  kiln::PoolingBackward backward_plan;

  Pool(const kiln::Handle& h, Memory& memory, const Tensor& input, Tensor& input_gradient)
      : handle(h),
        x(input),
        dx(input_gradient),
        y(memory, pooling.output_dims(input.descriptor)),
        forward_plan(finalized<kiln::PoolingForward>(
            {handle, {.pooling = pooling, .x = x.descriptor, .y = y.descriptor}})),
        backward_plan(finalized<kiln::PoolingBackward>(
            {handle,
             {.pooling = pooling, .dy = y.descriptor, .x = &x.descriptor, .dx = dx.descriptor}})) {}

  void forward() const { forward_plan.execute(handle, {.x = x.data(), .y = y.data()}); }
  void backward(const Tensor& dy) const {
    backward_plan.execute(handle, {.dy = dy.data(), .x = x.data(), .dx = dx.data()});
  }
  void count(std::map<std::string, int>& origins) const {
    note(forward_plan, origins);
    note(backward_plan, origins);
  }
};

// p = softmax(x); the gradient of the mean cross-entropy with respect to x is (p - t) / batch, with
// t the labels' one-hot rows.
struct Network::Softmax {
  const kiln::Handle& handle;
  const Tensor& x;
  Tensor& dx;
  Tensor p, targets;
  kiln::SoftmaxForward forward_plan;
  kiln::OpTensor difference_plan;

  Softmax(const kiln::Handle& h, Memory& memory, const Tensor& input, Tensor& input_gradient)
      : handle(h),
        x(input),
        dx(input_gradient),
        p(memory, input.dims),
        targets(memory, input.dims),
        forward_plan(
            finalized<kiln::SoftmaxForward>({handle, {.x = x.descriptor, .y = p.descriptor}})),
        difference_plan(finalized<kiln::OpTensor>({handle,
                                                   {.op = KILN_OP_TENSOR_ADD,
                                                    .a = p.descriptor,
                                                    .b = targets.descriptor,
                                                    .c = dx.descriptor}})) {}

  void forward() const { forward_plan.execute(handle, {.x = x.data(), .y = p.data()}); }
  void backward(const std::vector<int>& labels) {
    std::vector<float> rows(targets.array.count());
    for (std::size_t i = 0; i < labels.size(); ++i)
      rows[i * 10 + static_cast<std::size_t>(labels[i])] = 1;
    targets.array.upload(rows);
    const double share = 1.0 / static_cast<double>(labels.size());
    difference_plan.execute(handle, {.a = p.data(), .b = targets.data(), .c = dx.data()},
                            {.alpha1 = share, .alpha2 = -share});
  }
  void count(std::map<std::string, int>& origins) const {
    note(forward_plan, origins);
    note(difference_plan, origins);
  }
};

struct Network::Input : Tensor {
  using Tensor::Tensor;
};

Network::Network(const kiln::Handle& handle, Memory& memory, const NetworkSizes& sizes,
                 std::uint64_t seed) {
  std::mt19937_64 random(seed);
  input_ = std::make_unique<Input>(memory, kiln::Sizes{sizes.batch, 1, 28, 28});
  conv1_ = std::make_unique<Layer>(handle, memory, *input_, sizes.filters1, 5, true,
                                   sizes.simple_engines, random);
  pool1_ = std::make_unique<Pool>(handle, memory, conv1_->y, conv1_->dy);
  conv2_ = std::make_unique<Layer>(handle, memory, pool1_->y, sizes.filters2, 5, true,
                                   sizes.simple_engines, random);
  pool2_ = std::make_unique<Pool>(handle, memory, conv2_->y, conv2_->dy);
  dense1_ = std::make_unique<Layer>(handle, memory, pool2_->y, sizes.hidden, 4, true,
                                    sizes.simple_engines, random);
  dense2_ = std::make_unique<Layer>(handle, memory, dense1_->y, 10, 1, false, sizes.simple_engines,
                                    random);
  softmax_ = std::make_unique<Softmax>(handle, memory, dense2_->y, dense2_->dy);
}

Network::~Network() = default;

std::vector<float> Network::predict(const std::vector<float>& pictures) {
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

std::vector<float> Network::train(const std::vector<float>& pictures,
                                  const std::vector<int>& labels, double rate, double momentum) {
  std::vector<float> probabilities = predict(pictures);
  softmax_->backward(labels);
  // Each layer's dx is the gradient of what it read: dense2's of dense1's output, and so on down.
  dense2_->backward(dense2_->dy, true, rate, momentum);
  dense1_->backward(dense2_->dx, true, rate, momentum);
  pool2_->backward(dense1_->dx);
  conv2_->backward(conv2_->dy, true, rate, momentum);
  pool1_->backward(conv2_->dx);
  conv1_->backward(conv1_->dy, false, rate, momentum);
  return probabilities;
}

std::vector<float> Network::first_filters() const { return conv1_->w.download(); }

std::map<std::string, int> Network::kernel_origins() const {
  std::map<std::string, int> origins{{"compiled", 0}, {"disk", 0}, {"memory", 0}};
  for (const auto* layer : {conv1_.get(), conv2_.get(), dense1_.get(), dense2_.get()})
    layer->count(origins);
  pool1_->count(origins);
  pool2_->count(origins);
  softmax_->count(origins);
  return origins;
}
