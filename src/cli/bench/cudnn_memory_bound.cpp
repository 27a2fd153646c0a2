// cuDNN's pooling, activations, softmax, additions, transforms and reductions.
#include "cli/bench/cudnn_api.hpp"
#include "core/error.hpp"

namespace kiln::cli::bench::cudnn {
namespace {

using Execute = std::function<void(const BufferSet&)>;

class MemoryBound {
 public:
  MemoryBound(Context& context, const Case& item, Operands& operands)
      : context_(context), api_(context.api), operands_(operands) {
    for (const Operand& operand : operands_of(item.problem))
      tensors_.push_back(context.tensor(operand, item.layout));
    type_ = type_of(item);
    one_ = Context::scalar(type_, 1);
    zero_ = Context::scalar(type_, 0);
    beta_ = Context::scalar(type_, item.scalars.beta);
  }

  Execute operator()(const ConvolutionProblem&) const {
    fail(KILN_STATUS_INTERNAL_ERROR, "a convolution is not bound by memory");
  }

  Execute operator()(const LocalProblem&) const {
    fail(KILN_STATUS_NOT_SUPPORTED, "not compared: cuDNN has no weights of each pixel's own");
  }

  Execute operator()(const MatmulProblem&) const {
    fail(KILN_STATUS_NOT_SUPPORTED, "not compared: a product of matrices is cuBLAS's");
  }

  Execute operator()(const NormalizationProblem&) const {
    fail(KILN_STATUS_NOT_SUPPORTED, "not compared: the peer's batch normalization is not called");
  }

  Execute operator()(const PoolingProblem& problem) {
    const auto size = [](std::int64_t value) { return static_cast<int>(value); };
    for (int axis = 1; axis < 3; ++axis)
      if (problem.dilation[axis] != 1 ||
          output_size(problem.in[axis], problem.pad[axis], problem.pad[axis], problem.window[axis],
                      problem.stride[axis], 1) != problem.out[axis])
        fail(KILN_STATUS_NOT_SUPPORTED, "the window is dilated or the padding differs by side");
    const auto pooling = own(api_.cudnnCreatePoolingDescriptor, api_.cudnnDestroyPoolingDescriptor,
                             "cudnnCreatePoolingDescriptor");
    const int mode = problem.mode - KILN_POOLING_MAX;  // cuDNN has the same order
    api_.check(api_.cudnnSetPooling2dDescriptor(
                   pooling->get(), mode, problem.nan == KILN_PROPAGATE_NAN ? propagate_nan : no_nan,
                   size(problem.window[1]), size(problem.window[2]), size(problem.pad[1]),
                   size(problem.pad[2]), size(problem.stride[1]), size(problem.stride[2])),
               "cudnnSetPooling2dDescriptor");
    const auto forward = [*this, pooling](const Shared& x_tensor, const void* x,
                                          const Shared& y_tensor, void* y) {
      api_.check(api_.cudnnPoolingForward(context_.handle, pooling->get(), one_, x_tensor->get(), x,
                                          zero_, y_tensor->get(), y),
                 "cudnnPoolingForward");
    };
    if (!problem.backward)
      return [*this, forward](const BufferSet& set) {
        forward(tensors_[0], set.operands[0], tensors_[1], set.operands[1]);
      };
    // cuDNN requires x and y for an average as well, but does not read them.
    const bool max = problem.mode == KILN_POOLING_MAX;
    const Shared dx = tensors_.back();
    std::byte* saved = nullptr;
    std::size_t bytes = 0;
    if (max) {
      // The y of every set, which the gradient of a maximum needs.
      const Operand dy = operands_of(problem)[0];
      bytes = (dy.span() * size_of(dy.type) + 255) / 256 * 256;
      context_.saved = std::make_unique<DeviceBuffer>(context_.device, bytes * operands_.sets());
      saved = context_.saved->address();
      for (int i = 0; i < operands_.sets(); ++i)
        forward(tensors_[1], operands_.set(i).operands[1], tensors_[0], saved + i * bytes);
    }
    return [*this, pooling, max, dx, saved, bytes](const BufferSet& set) {
      void* const dy = set.operands[0];
      const void* const y = max ? saved + set.index * bytes : dy;
      const void* const x = set.operands[1];  // for an average: dx, which is not read
      api_.check(api_.cudnnPoolingBackward(context_.handle, pooling->get(), one_,
                                           tensors_[0]->get(), y, tensors_[0]->get(), dy, dx->get(),
                                           x, zero_, dx->get(), set.operands.back()),
                 "cudnnPoolingBackward");
    };
  }

  Execute operator()(const SoftmaxProblem& problem) const {
    const int algorithm = problem.algorithm - KILN_SOFTMAX_FAST;  // cuDNN has the same order
    const int mode = problem.mode == KILN_SOFTMAX_MODE_INSTANCE ? 0 : 1;
    if (problem.backward)
      return [*this, algorithm, mode](const BufferSet& set) {
        api_.check(
            api_.cudnnSoftmaxBackward(context_.handle, algorithm, mode, one_, tensors_[0]->get(),
                                      set.operands[0], tensors_[1]->get(), set.operands[1], zero_,
                                      tensors_[2]->get(), set.operands[2]),
            "cudnnSoftmaxBackward");
      };
    return [*this, algorithm, mode](const BufferSet& set) {
      api_.check(
          api_.cudnnSoftmaxForward(context_.handle, algorithm, mode, one_, tensors_[0]->get(),
                                   set.operands[0], zero_, tensors_[1]->get(), set.operands[1]),
          "cudnnSoftmaxForward");
    };
  }

  Execute operator()(const PointwiseProblem& problem) const {
    switch (problem.op) {
      case PointwiseOp::fill:
        return [*this](const BufferSet& set) {
          api_.check(
              api_.cudnnScaleTensor(context_.handle, tensors_[0]->get(), set.operands[0], beta_),
              "cudnnScaleTensor");
        };
      case PointwiseOp::copy: return copy(problem);
      case PointwiseOp::activation: return activation(problem, false);
      case PointwiseOp::activation_backward: return activation(problem, true);
      default: fail(KILN_STATUS_NOT_SUPPORTED, "not compared: an operation on two tensors");
    }
  }

  Execute operator()(const ReductionProblem& problem) {
    if (problem.op != KILN_REDUCE_SUM)
      fail(KILN_STATUS_NOT_SUPPORTED, "not compared: a reduction other than a sum");
    const bool channels = problem.out_dims == Dims{1, problem.dims[1], 1, 1, 1};
    if (channels && problem.dims[1] > 1)
      return [*this](const BufferSet& set) {
        api_.check(api_.cudnnConvolutionBackwardBias(context_.handle, one_, tensors_[0]->get(),
                                                     set.operands[0], zero_, tensors_[1]->get(),
                                                     set.operands[1]),
                   "cudnnConvolutionBackwardBias");
      };
    const auto reduction =
        own(api_.cudnnCreateReduceTensorDescriptor, api_.cudnnDestroyReduceTensorDescriptor,
            "cudnnCreateReduceTensorDescriptor");
    constexpr int add = 0, no_indices = 0, indices_32 = 0;
    api_.check(
        api_.cudnnSetReduceTensorDescriptor(reduction->get(), add, type_number(compute_type(type_)),
                                            propagate_nan, no_indices, indices_32),
        "cudnnSetReduceTensorDescriptor");
    api_.check(
        api_.cudnnGetReductionWorkspaceSize(context_.handle, reduction->get(), tensors_[0]->get(),
                                            tensors_[1]->get(), &workspace_),
        "cudnnGetReductionWorkspaceSize");
    context_.need_workspace(workspace_);
    return [*this, reduction](const BufferSet& set) {
      void* const workspace = workspace_ == 0 ? nullptr : context_.workspace->address();
      api_.check(api_.cudnnReduceTensor(context_.handle, reduction->get(), nullptr, 0, workspace,
                                        workspace_, one_, tensors_[0]->get(), set.operands[0],
                                        zero_, tensors_[1]->get(), set.operands[1]),
                 "cudnnReduceTensor");
    };
  }

  std::size_t workspace() const { return workspace_; }

 private:
  Shared own(Owned::Create create, Owned::Destroy destroy, const char* call) const {
    return std::make_shared<const Owned>(api_, create, destroy, call);
  }

  Execute copy(const PointwiseProblem& problem) const {
    const std::vector<Operand> operands = operands_of(problem);
    if (operands[0].dims == operands[1].dims)
      return [*this](const BufferSet& set) {
        api_.check(
            api_.cudnnTransformTensor(context_.handle, one_, tensors_[0]->get(), set.operands[0],
                                      beta_, tensors_[1]->get(), set.operands[1]),
            "cudnnTransformTensor");
      };
    return [*this](const BufferSet& set) {
      api_.check(api_.cudnnAddTensor(context_.handle, one_, tensors_[0]->get(), set.operands[0],
                                     beta_, tensors_[1]->get(), set.operands[1]),
                 "cudnnAddTensor");
    };
  }

  Execute activation(const PointwiseProblem& problem, bool backward) const {
    int mode = 0;
    switch (problem.activation.mode) {
      case KILN_ACTIVATION_SIGMOID: mode = 0; break;
      case KILN_ACTIVATION_RELU: mode = 1; break;
      case KILN_ACTIVATION_TANH: mode = 2; break;
      case KILN_ACTIVATION_CLIPPED_RELU: mode = 3; break;
      case KILN_ACTIVATION_ELU: mode = 4; break;
      case KILN_ACTIVATION_IDENTITY: mode = 5; break;
      case KILN_ACTIVATION_SILU: mode = 6; break;
      default:
        fail(KILN_STATUS_NOT_SUPPORTED, "cuDNN's legacy interface has no ",
             name_of(problem.activation.mode));
    }
    const auto descriptor =
        own(api_.cudnnCreateActivationDescriptor, api_.cudnnDestroyActivationDescriptor,
            "cudnnCreateActivationDescriptor");
    api_.check(api_.cudnnSetActivationDescriptor(descriptor->get(), mode, propagate_nan,
                                                 problem.activation.coefficient),
               "cudnnSetActivationDescriptor");
    if (!backward)
      return [*this, descriptor](const BufferSet& set) {
        api_.check(api_.cudnnActivationForward(context_.handle, descriptor->get(), one_,
                                               tensors_[0]->get(), set.operands[0], zero_,
                                               tensors_[1]->get(), set.operands[1]),
                   "cudnnActivationForward");
      };
    // Operands: y or x, dy, dx. The gradient depends on only one of y and x, so one tensor is
    // passed for both.
    return [*this, descriptor](const BufferSet& set) {
      const void* const saved = set.operands[0];
      api_.check(api_.cudnnActivationBackward(context_.handle, descriptor->get(), one_,
                                              tensors_[0]->get(), saved, tensors_[1]->get(),
                                              set.operands[1], tensors_[0]->get(), saved, zero_,
                                              tensors_[2]->get(), set.operands[2]),
                 "cudnnActivationBackward");
    };
  }

  Context& context_;
  const Api& api_;
  Operands& operands_;
  std::vector<Shared> tensors_;
  DataType type_ = KILN_DATA_FLOAT;
  const void *one_ = nullptr, *zero_ = nullptr, *beta_ = nullptr;
  std::size_t workspace_ = 0;
};

}  // namespace

std::vector<Contestant> memory_bound_contestants(Context& context, const Case& item,
                                                 Operands& operands) {
  MemoryBound operation(context, item, operands);
  Contestant contestant;
  contestant.roles = {"cudnn legacy"};
  contestant.execute = std::visit(operation, item.problem);
  contestant.kernel = "";
  contestant.workspace = operation.workspace();
  return {contestant};
}

}  // namespace kiln::cli::bench::cudnn
