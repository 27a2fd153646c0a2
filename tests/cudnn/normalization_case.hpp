// Problems of batch normalization with their data, and calls of each family of functions.
#pragma once

#include <algorithm>
#include <string_view>

#include "cudnn/described.hpp"

namespace test {

// Which function a call is.
enum class Family { plain, ex, norm };

// A problem of Kiln's with its data, on the device.
class NormalizationCase {
 public:
  explicit NormalizationCase(const Problem& problem, const Scalars& scalars = {1, 0, 0.125})
      : data(problem) {
    data.scalars = scalars;
    unsigned seed = 11;
    for (HostTensor& t : data.tensors) {
      const bool is_last = &t == &data.result();
      if (t.operand.written && !t.operand.updated && !(is_last && scalars.beta != 0)) continue;
      t.fill_uniform(seed++, t.operand.positive ? 0.5 : -1, t.operand.positive ? 2 : 1);
    }
    for (const HostTensor& t : data.tensors)
      buffers_.push_back(std::make_unique<Buffer<std::byte>>(t.bytes()));
  }

  // Null if the problem has no operand of the name.
  void* at(std::string_view name) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (data.tensors[i].operand.name == name) return buffers_[i]->data();
    return nullptr;
  }
  HostTensor read(std::string_view name) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (data.tensors[i].operand.name != name) continue;
      HostTensor out(data.tensors[i].operand);
      out.read(buffers_[i]->read());
      return out;
    }
    BOOST_FAIL("no operand is named " << name);
    return data.result();
  }
  // The other values are read by the reference, too.
  void write(std::string_view name, const HostTensor& values) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (data.tensors[i].operand.name != name) continue;
      data.tensors[i].values = values.values;
      buffers_[i] = std::make_unique<Buffer<std::byte>>(data.tensors[i].bytes());
    }
  }
  const void* alpha() const { return scalar(0); }
  const void* beta() const { return scalar(1); }

  // All results are the reference's, but those without which the call was made, and no input has
  // changed.
  void check(bool saves = true) const {
    BOOST_TEST_CONTEXT(text_of(data.problem) << ", beta " << data.scalars.beta)
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const HostTensor& t = data.tensors[i];
      const std::string_view name = t.operand.name;
      const bool is_saved = t.operand.written && (name == "mean" || name == "deviation");
      if (!t.operand.written || (is_saved && !saves)) {
        BOOST_TEST((buffers_[i]->read() == t.bytes()), name << " was written");
        continue;
      }
      const std::string fault = data.fault(read(name), static_cast<int>(i));
      BOOST_TEST(fault.empty(), fault);
    }
  }

  OperationData data;

 private:
  const void* scalar(int i) const {
    doubles_[0] = data.scalars.alpha;
    doubles_[1] = data.scalars.beta;
    for (int each = 0; each < 2; ++each) floats_[each] = static_cast<float>(doubles_[each]);
    return scalar_type(data.problem) == KILN_DATA_DOUBLE ? static_cast<const void*>(doubles_ + i)
                                                         : floats_ + i;
  }

  std::vector<std::unique_ptr<Buffer<std::byte>>> buffers_;
  mutable double doubles_[2];
  mutable float floats_[2];
};

// The operations' number, of both enumerations.
inline constexpr int just = 0, activate = 1, add_and_activate = 2;

struct NormalizationCall {
  Family family = Family::plain;
  int operations = just;
  bool per_activation = false, saved = true;
  bool no_workspace = false;
  const void *parameters_alpha = nullptr, *parameters_beta = nullptr;  // null: 1 and 0

  auto bn_ops() const { return static_cast<cudnnBatchNormOps_t>(operations); }
  auto norm_ops() const { return static_cast<cudnnNormOps_t>(operations); }
  auto bn_mode() const {
    return per_activation ? CUDNN_BATCHNORM_PER_ACTIVATION : CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
  }
  auto norm_mode() const {
    return per_activation ? CUDNN_NORM_PER_ACTIVATION : CUDNN_NORM_PER_CHANNEL;
  }
};

inline constexpr double epsilon = 1e-5;
inline constexpr auto algo = CUDNN_NORM_ALGO_PERSIST;

inline const Handle& handle() {
  static const Handle instance;
  return instance;
}

// Workspace of the bytes that were asked for, at an odd address, with bytes behind it that must
// stay.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes)
      : bytes_(bytes), buffer_(std::vector<unsigned char>(bytes + 65, 0xab)) {}
  void* address() const { return buffer_.data() + 1; }
  void check() const {
    const std::vector<unsigned char> left = buffer_.read();
    BOOST_TEST((left.front() == 0xab && std::count(left.end() - 64, left.end(), 0xab) == 64),
               "bytes beside the workspace were written");
  }

 private:
  std::size_t bytes_;
  Buffer<unsigned char> buffer_;
};

// A descriptor of scale, bias and statistics.
inline std::unique_ptr<TensorDesc> derived(const NormalizationCall& call,
                                           cudnnTensorDescriptor_t x) {
  auto out = std::make_unique<TensorDesc>();
  if (call.family == Family::norm) {
    const TensorDesc scale_bias;
    succeeds(cudnnDeriveNormTensorDescriptor(scale_bias, *out, x, call.norm_mode(), 1));
  } else {
    succeeds(cudnnDeriveBNTensorDescriptor(*out, x, call.bn_mode()));
  }
  return out;
}

// Runs training of a case whose tensors are all described by t.
inline void train(const NormalizationCall& call, const NormalizationCase& item,
                  cudnnTensorDescriptor_t t, cudnnActivationDescriptor_t f = nullptr) {
  const auto numbers = derived(call, t);
  std::size_t bytes = 0, reserve = 1;
  if (call.family == Family::ex) {
    succeeds(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        handle(), call.bn_mode(), call.bn_ops(), t, t, t, *numbers, f, &bytes));
    succeeds(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle(), call.bn_mode(),
                                                                  call.bn_ops(), f, t, &reserve));
  } else if (call.family == Family::norm) {
    succeeds(cudnnGetNormalizationForwardTrainingWorkspaceSize(handle(), call.norm_mode(),
                                                               call.norm_ops(), algo, t, t, t,
                                                               *numbers, f, *numbers, &bytes, 1));
    succeeds(cudnnGetNormalizationTrainingReserveSpaceSize(
        handle(), call.norm_mode(), call.norm_ops(), algo, f, t, &reserve, 1));
  }
  BOOST_TEST((call.family == Family::plain || reserve == 0));
  if (call.no_workspace) bytes = 0;
  const Workspace workspace(bytes);
  void* const lent = bytes > 0 ? workspace.address() : nullptr;
  void *const mean = call.saved ? item.at("mean") : nullptr, *const deviation =
                                                                 call.saved ? item.at("deviation")
                                                                            : nullptr;
  switch (call.family) {
    case Family::plain:
      succeeds(cudnnBatchNormalizationForwardTraining(
          handle(), call.bn_mode(), item.alpha(), item.beta(), t, item.at("x"), t, item.at("y"),
          *numbers, item.at("scale"), item.at("bias"), 0.125, item.at("running_mean"),
          item.at("running_variance"), epsilon, mean, deviation));
      break;
    case Family::ex:
      succeeds(cudnnBatchNormalizationForwardTrainingEx(
          handle(), call.bn_mode(), call.bn_ops(), item.alpha(), item.beta(), t, item.at("x"), t,
          item.at("residual"), t, item.at("y"), *numbers, item.at("scale"), item.at("bias"), 0.125,
          item.at("running_mean"), item.at("running_variance"), epsilon, mean, deviation, f, lent,
          bytes, nullptr, 0));
      break;
    case Family::norm:
      succeeds(cudnnNormalizationForwardTraining(
          handle(), call.norm_mode(), call.norm_ops(), algo, item.alpha(), item.beta(), t,
          item.at("x"), *numbers, item.at("scale"), item.at("bias"), 0.125, *numbers,
          item.at("running_mean"), item.at("running_variance"), epsilon, mean, deviation, f, t,
          item.at("residual"), t, item.at("y"), lent, bytes, nullptr, 0, 1));
      break;
  }
  workspace.check();
}

// Runs the gradient; y and dz are those of a normalization behind an addition.
inline void differentiate(const NormalizationCall& call, const NormalizationCase& item,
                          cudnnTensorDescriptor_t t, cudnnActivationDescriptor_t f = nullptr,
                          const void* y = nullptr, const void* dy = nullptr, void* dz = nullptr) {
  const auto numbers = derived(call, t);
  std::size_t bytes = 0;
  if (call.family == Family::ex)
    succeeds(cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        handle(), call.bn_mode(), call.bn_ops(), t, t, t, t, t, *numbers, f, &bytes));
  else if (call.family == Family::norm)
    succeeds(cudnnGetNormalizationBackwardWorkspaceSize(handle(), call.norm_mode(), call.norm_ops(),
                                                        algo, t, t, t, t, t, *numbers, f, *numbers,
                                                        &bytes, 1));
  if (call.no_workspace) bytes = 0;
  const Workspace workspace(bytes);
  void* const lent = bytes > 0 ? workspace.address() : nullptr;
  const bool wide = scalar_type(item.data.problem) == KILN_DATA_DOUBLE;
  static constexpr double one = 1, zero = 0;
  static constexpr float one_in_float = 1;
  const void* const a = call.parameters_alpha != nullptr ? call.parameters_alpha
                        : wide                           ? static_cast<const void*>(&one)
                                                         : &one_in_float;
  const void* const b = call.parameters_beta != nullptr ? call.parameters_beta : &zero;
  const void *const mean = call.saved ? item.at("mean") : nullptr, *const deviation =
                                                                       call.saved
                                                                           ? item.at("deviation")
                                                                           : nullptr;
  if (dy == nullptr) dy = item.at("dy");
  switch (call.family) {
    case Family::plain:
      succeeds(cudnnBatchNormalizationBackward(handle(), call.bn_mode(), item.alpha(), item.beta(),
                                               a, b, t, item.at("x"), t, dy, t, item.at("dx"),
                                               *numbers, item.at("scale"), item.at("dscale"),
                                               item.at("dbias"), epsilon, mean, deviation));
      break;
    case Family::ex:
      succeeds(cudnnBatchNormalizationBackwardEx(
          handle(), call.bn_mode(), call.bn_ops(), item.alpha(), item.beta(), a, b, t, item.at("x"),
          t, y, t, dy, t, dz, t, item.at("dx"), *numbers, item.at("scale"), item.at("bias"),
          item.at("dscale"), item.at("dbias"), epsilon, mean, deviation, f, lent, bytes, nullptr,
          0));
      break;
    case Family::norm:
      succeeds(cudnnNormalizationBackward(
          handle(), call.norm_mode(), call.norm_ops(), algo, item.alpha(), item.beta(), a, b, t,
          item.at("x"), t, y, t, dy, t, dz, t, item.at("dx"), *numbers, item.at("scale"),
          item.at("bias"), item.at("dscale"), item.at("dbias"), epsilon, *numbers, mean, deviation,
          f, lent, bytes, nullptr, 0, 1));
      break;
  }
  workspace.check();
}

}  // namespace test
