// Any values in any order: the descriptors and plans of the operations beyond the forward
// convolution either succeed or refuse with a status and a sentence, and a plan that was never
// finalized is executed by nobody. No kernel is made.
#include "input.hpp"

namespace {

using namespace fuzz;  // NOLINT(google-build-using-namespace)

class Scene {
 public:
  Scene() {
    for (auto& tensor : tensors_) require(succeeded(kilnCreateTensorDescriptor(&tensor)));
    require(succeeded(kilnCreateFilterDescriptor(&w_)) &&
            succeeded(kilnCreateConvolutionDescriptor(&convolution_)) &&
            succeeded(kilnCreatePoolingDescriptor(&pooling_)) &&
            succeeded(kilnCreateActivationDescriptor(&activation_)) &&
            succeeded(kilnCreateNormalizationDescriptor(&norm_)) &&
            succeeded(kilnCreateMatmulDescriptor(&product_)));
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene() {
    for (auto tensor : tensors_) kilnDestroyTensorDescriptor(tensor);
    kilnDestroyFilterDescriptor(w_);
    kilnDestroyConvolutionDescriptor(convolution_);
    kilnDestroyPoolingDescriptor(pooling_);
    kilnDestroyActivationDescriptor(activation_);
    kilnDestroyNormalizationDescriptor(norm_);
    kilnDestroyMatmulDescriptor(product_);
  }

  void step(Input& in) {
    switch (in.byte() % 15) {
      case 0: set_tensor(in, tensors_[in.byte() % tensor_count]); break;
      case 1: set_filter(in, w_); break;
      case 2: set_convolution(in, convolution_); break;
      case 3: succeeded(kilnSetConvolutionGroupCount(convolution_, in.number())); break;
      case 4: set_pooling(in); break;
      case 5: set_activation(in); break;
      case 6: fit_tensor(in); break;
      case 7: fit_pooled(in); break;
      case 8: fit_convolved(in); break;
      case 9: fit_transposed(in); break;
      case 10: fit_local(in); break;
      case 11: set_normalization(in); break;
      case 12:
        succeeded(kilnSetMatmulDescriptor(product_, in.enumerator<kilnMathMode_t>(), in.number()));
        break;
      case 13: fit_product(in); break;
      default: make_plan(in);
    }
  }

  void make_plan(Input& in) {
    const int operation = in.byte() % operation_count;
    kilnPlan_t plan = nullptr;
    if (!succeeded(create(operation, in, &plan))) {
      require(plan == nullptr);
      return;
    }
    const char* line = nullptr;
    require(succeeded(kilnGetPlanText(plan, KILN_PLAN_PROBLEM, &line)));
    require(std::strlen(line) > 10);
    require(!succeeded(execute(in.byte() % operation_count, plan)));
    ask_engines(plan);
    require(succeeded(kilnDestroyPlan(plan)));
  }

 private:
  static constexpr int tensor_count = 5;
  static constexpr int operation_count = 29;

  // One of the tensors, rarely null.
  kilnTensorDescriptor_t tensor(Input& in) {
    const int which = in.byte();
    return which > 250 ? nullptr : tensors_[which % tensor_count];
  }

  kilnStatus_t create(int operation, Input& in, kilnPlan_t* plan) {
    const kilnTensorDescriptor_t a = tensor(in), b = tensor(in), c = tensor(in), d = tensor(in);
    const auto algorithm = in.enumerator<kilnSoftmaxAlgorithm_t>();
    const auto mode = in.enumerator<kilnSoftmaxMode_t>();
    const auto h = handle();
    switch (operation) {
      case 0: return kilnCreateConvolutionBackwardDataPlan(h, w_, a, convolution_, b, plan);
      case 1: return kilnCreateConvolutionBackwardFilterPlan(h, a, b, convolution_, w_, plan);
      case 2: return kilnCreateConvolutionBackwardBiasPlan(h, a, b, plan);
      case 3: return kilnCreateConvolutionTransposedPlan(h, a, w_, convolution_, b, plan);
      case 4:
        return kilnCreateConvolutionBiasActivationForwardPlan(h, a, w_, convolution_, b, c,
                                                              activation_, d, plan);
      case 5: return kilnCreatePoolingForwardPlan(h, pooling_, a, b, plan);
      case 6: return kilnCreatePoolingBackwardPlan(h, pooling_, a, b, c, plan);
      case 7: return kilnCreateActivationForwardPlan(h, activation_, a, b, plan);
      case 8: return kilnCreateActivationBackwardPlan(h, activation_, a, b, c, d, plan);
      case 9: return kilnCreateSoftmaxForwardPlan(h, algorithm, mode, a, b, plan);
      case 10: return kilnCreateSoftmaxBackwardPlan(h, algorithm, mode, a, b, c, plan);
      case 11: return kilnCreateTransformTensorPlan(h, a, b, plan);
      case 12: return kilnCreateAddTensorPlan(h, a, b, plan);
      case 13: return kilnCreateSetTensorPlan(h, a, plan);
      case 14: return kilnCreateScaleTensorPlan(h, a, plan);
      case 15: return kilnCreateOpTensorPlan(h, in.enumerator<kilnOpTensorOp_t>(), a, b, c, plan);
      case 16:
        return kilnCreateReduceTensorPlan(h, in.enumerator<kilnReduceTensorOp_t>(), a, b, plan);
      case 17: return kilnCreateLocalForwardPlan(h, a, b, convolution_, c, d, plan);
      case 18: return kilnCreateLocalBackwardDataPlan(h, a, b, convolution_, c, plan);
      case 19: return kilnCreateLocalBackwardFilterPlan(h, a, b, convolution_, c, plan);
      case 20: return kilnCreateNormalizationForwardTrainingPlan(h, norm_, a, b, c, plan);
      case 21: return kilnCreateNormalizationForwardInferencePlan(h, norm_, a, b, c, plan);
      case 22: return kilnCreateNormalizationApplyPlan(h, norm_, a, nullptr, b, plan);
      case 23:
        return kilnCreateNormalizationBackwardPlan(h, norm_, a, nullptr, b, nullptr, c, plan);
      case 24: return kilnCreateNormalizationMomentsPlan(h, a, plan);
      case 25:
        return kilnCreateCombineNormalizationMomentsPlan(h, norm_, in.enumerator<kilnDataType_t>(),
                                                         in.number(), in.number(), plan);
      case 26: return kilnCreateNormalizationBackwardApplyPlan(h, norm_, a, b, c, plan);
      case 27:
        return kilnCreateMatmulPlan(h, in.byte() % 2 == 0 ? nullptr : product_, a, b, nullptr, c,
                                    plan);
      default: return create_with_list(in, {a, b, c, d}, plan);
    }
  }

  // A convolution of tensors[0], a transposed one, or a product of tensors[0] and [1], with up to
  // four operations in any order.
  kilnStatus_t create_with_list(Input& in, const std::array<kilnTensorDescriptor_t, 4>& tensors,
                                kilnPlan_t* plan) {
    kilnEpilogueDescriptor_t list = nullptr;
    require(succeeded(kilnCreateEpilogueDescriptor(&list)));
    const int count = in.byte() % 5;
    for (int i = 0; i < count; ++i) switch (in.byte() % 6) {
        case 0: succeeded(kilnAddEpilogueBias(list, tensors[1])); break;
        case 1: succeeded(kilnAddEpilogueResidual(list, tensors[2])); break;
        case 2: succeeded(kilnAddEpilogueResidual(list, nullptr)); break;
        case 3: succeeded(kilnAddEpilogueActivation(list, activation_)); break;
        case 4:
          succeeded(kilnAddEpilogueNormalizationGradient(
              list, norm_, tensors[1], in.byte() % 2 == 0 ? nullptr : tensors[2]));
          break;
        default: require(succeeded(kilnAddEpilogueMoments(list)));
      }
    kilnStatus_t status{};
    switch (in.byte() % 3) {
      case 0:
        status = kilnCreateConvolutionForwardEpiloguePlan(handle(), tensors[0], w_, convolution_,
                                                          list, tensors[3], plan);
        break;
      case 1:
        status = kilnCreateConvolutionTransposedEpiloguePlan(handle(), tensors[0], w_, convolution_,
                                                             list, tensors[3], plan);
        break;
      default:
        status = kilnCreateMatmulPlan(handle(), product_, tensors[0], tensors[1], list, tensors[3],
                                      plan);
    }
    require(succeeded(kilnDestroyEpilogueDescriptor(list)));
    return status;
  }

  // Of any operation: the plan is of another, or was never finalized.
  static kilnStatus_t execute(int operation, kilnPlan_t plan) {
    const double one = 1;
    double element = 0;
    void* const p = &element;
    const auto h = handle();
    switch (operation) {
      case 0: return kilnExecuteConvolutionBackwardData(h, plan, &one, p, p, &one, p);
      case 1: return kilnExecuteConvolutionBackwardFilter(h, plan, &one, p, p, &one, p);
      case 2: return kilnExecuteConvolutionBackwardBias(h, plan, &one, p, &one, p);
      case 3: return kilnExecuteConvolutionTransposed(h, plan, &one, p, p, &one, p);
      case 4:
        return kilnExecuteConvolutionBiasActivationForward(h, plan, &one, p, p, &one, p, p, p);
      case 5: return kilnExecutePoolingForward(h, plan, &one, p, &one, p);
      case 6: return kilnExecutePoolingBackward(h, plan, &one, p, p, &one, p);
      case 7: return kilnExecuteActivationForward(h, plan, &one, p, &one, p);
      case 8: return kilnExecuteActivationBackward(h, plan, &one, p, p, p, &one, p);
      case 9: return kilnExecuteSoftmaxForward(h, plan, &one, p, &one, p);
      case 10: return kilnExecuteSoftmaxBackward(h, plan, &one, p, p, &one, p);
      case 11: return kilnExecuteTransformTensor(h, plan, &one, p, &one, p);
      case 12: return kilnExecuteAddTensor(h, plan, &one, p, &one, p);
      case 13: return kilnExecuteSetTensor(h, plan, p, &one);
      case 14: return kilnExecuteScaleTensor(h, plan, p, &one);
      case 15: return kilnExecuteOpTensor(h, plan, &one, p, &one, p, &one, p);
      case 16: return kilnExecuteReduceTensor(h, plan, &one, p, &one, p);
      case 17: return kilnExecuteLocalForward(h, plan, &one, p, p, &one, p, p);
      case 18: return kilnExecuteLocalBackwardData(h, plan, &one, p, p, &one, p);
      case 19: return kilnExecuteLocalBackwardFilter(h, plan, &one, p, p, &one, p);
      case 20:
        return kilnExecuteNormalizationForwardTraining(h, plan, &one, p, p, p, p, &one, p, p, p, p,
                                                       &one, p);
      case 21:
        return kilnExecuteNormalizationForwardInference(h, plan, &one, p, p, p, p, p, p, &one, p);
      case 22: return kilnExecuteNormalizationApply(h, plan, &one, p, p, p, p, p, p, &one, p);
      case 23:
        return kilnExecuteNormalizationBackward(h, plan, &one, p, p, p, p, p, p, p, p, p, p, &one,
                                                p);
      case 24: return kilnExecuteNormalizationMoments(h, plan, p, p);
      case 25: return kilnExecuteCombineNormalizationMoments(h, plan, p, &one, p, p, p, p, p);
      case 26:
        return kilnExecuteNormalizationBackwardApply(h, plan, &one, p, p, p, p, p, p, p, &one, p);
      case 27: return kilnExecuteMatmul(h, plan, &one, p, p, &one, 0, nullptr, p);
      default:
        return kilnExecuteConvolutionForwardEpilogue(h, plan, &one, p, p, &one, 0, nullptr, p);
    }
  }

  void set_pooling(Input& in) {
    const auto mode = in.enumerator<kilnPoolingMode_t>();
    const auto nan = in.enumerator<kilnNanPropagation_t>();
    const int count = in.rank() - 2;
    const auto window = in.numbers();
    auto before = in.numbers(), after = in.numbers();
    const auto stride = in.numbers(), dilation = in.numbers();
    const std::uint8_t how = in.byte();
    succeeded(kilnSetPoolingCeilMode(pooling_, how / 64 % 4));
    // Mostly padding below the window's extent.
    for (std::size_t i = 0; how % 4 != 0 && i < 3; ++i)
      if (window[i] > 0) before[i] %= window[i], after[i] %= window[i];
    if (!succeeded(kilnSetPoolingNdDescriptor(pooling_, mode, nan, count, window.data(),
                                              before.data(), how % 2 == 0 ? nullptr : after.data(),
                                              stride.data(),
                                              how % 8 < 4 ? nullptr : dilation.data())))
      return;
    int got_count = 0;
    kilnPoolingMode_t got_mode{};
    Input::Array got{};
    require(succeeded(kilnGetPoolingNdDescriptor(pooling_, 3, &got_mode, nullptr, &got_count,
                                                 got.data(), nullptr, nullptr, nullptr, nullptr)));
    require(got_count == count && got_mode == mode);
    for (int i = 0; i < count; ++i) require(got[i] == window[i]);
  }

  void set_activation(Input& in) {
    const auto mode = in.enumerator<kilnActivationMode_t>();
    double coefficient = static_cast<double>(in.number()) / 16;
    if (in.byte() > 240) {
      const std::int64_t bits = in.number();
      std::memcpy(&coefficient, &bits, sizeof coefficient);
    }
    if (!succeeded(kilnSetActivationDescriptor(activation_, mode, coefficient)))
      succeeded(kilnSetActivationDescriptorEx(activation_, mode, coefficient,
                                              static_cast<double>(in.number()) / 16));
  }

  void set_normalization(Input& in) {
    const std::uint8_t how = in.byte();
    const double epsilon = static_cast<double>(in.number()) / 1024;
    if (succeeded(kilnSetNormalizationDescriptor(norm_, how & 1, how & 2, how & 4, epsilon))) {
      int affine = -1;
      double got = -1;
      require(succeeded(kilnGetNormalizationDescriptor(norm_, &affine, nullptr, nullptr, &got)));
      require(affine == (how & 1) && got == epsilon);
    }
    succeeded(kilnSetNormalizationActivation(norm_, how & 8 ? activation_ : nullptr));
    const auto statistics = in.enumerator<kilnNormalizationStatistics_t>();
    const std::int64_t groups = how & 16 ? in.number() : 0;
    if (succeeded(kilnSetNormalizationStatistics(norm_, statistics, groups, how & 32))) {
      kilnNormalizationStatistics_t got{};
      std::int64_t got_groups = -1;
      require(succeeded(kilnGetNormalizationStatistics(norm_, &got, &got_groups, nullptr)));
      require(got == statistics && got_groups == groups);
    }
    succeeded(kilnSetNormalizationBias(norm_, how & 64));
  }

  struct Read {
    bool set = false;
    int rank = 0;
    kilnDataType_t type{};
    Input::Array dims{}, strides{};
  };
  static Read read(kilnTensorDescriptor_t tensor) {
    Read r;
    r.set = succeeded(kilnGetTensorNdDescriptor(tensor, KILN_DIM_MAX, &r.type, &r.rank,
                                                r.dims.data(), r.strides.data()));
    return r;
  }
  static void write(Input& in, kilnTensorDescriptor_t to, const Read& r) {
    switch (in.byte() % 4) {
      case 0:
        succeeded(kilnSetTensorNdDescriptor(to, r.type, r.rank, r.dims.data(), r.strides.data()));
        break;
      case 1:
        succeeded(kilnSetTensorNdDescriptorEx(to, KILN_TENSOR_NHWC, r.type, r.rank, r.dims.data()));
        break;
      default:
        succeeded(kilnSetTensorNdDescriptorEx(to, KILN_TENSOR_NCHW, r.type, r.rank, r.dims.data()));
    }
  }

  // Like another tensor, with some of its sizes 1, in another type now and then.
  void fit_tensor(Input& in) {
    Read r = read(tensors_[in.byte() % tensor_count]);
    if (!r.set) return;
    const std::uint8_t ones = in.byte();
    for (int i = 0; i < r.rank; ++i)
      if (ones % 2 == 1 && (ones >> (i + 1) & 1) != 0) r.dims[i] = 1;
    if (in.byte() > 200) r.type = in.enumerator<kilnDataType_t>();
    write(in, tensors_[in.byte() % tensor_count], r);
  }

  // Of the sizes that pooling a tensor gives.
  void fit_pooled(Input& in) {
    const kilnTensorDescriptor_t x = tensors_[in.byte() % tensor_count];
    Read r = read(x);
    if (!r.set || !succeeded(kilnGetPoolingForwardOutputDim(pooling_, x, r.rank, r.dims.data())))
      return;
    for (int i = 1; i < r.rank; ++i) require(r.dims[i] >= 1);
    write(in, tensors_[in.byte() % tensor_count], r);
  }

  // A filter that goes with a tensor, and the sizes that convolving it gives.
  void fit_convolved(Input& in) {
    const kilnTensorDescriptor_t x = tensors_[in.byte() % tensor_count];
    Read r = read(x);
    if (!r.set) return;
    std::int64_t groups = 1;
    require(succeeded(kilnGetConvolutionGroupCount(convolution_, &groups)));
    Input::Array filter = in.numbers();
    filter[1] = r.dims[1] / groups;
    succeeded(kilnSetFilterNdDescriptor(w_, r.type, KILN_TENSOR_NCHW, r.rank, filter.data()));
    if (!succeeded(kilnGetConvolutionForwardOutputDim(convolution_, x, w_, r.rank, r.dims.data())))
      return;
    write(in, tensors_[in.byte() % tensor_count], r);
  }

  // The filter for each pixel of the output.
  void fit_local(Input& in) {
    const kilnTensorDescriptor_t x = tensors_[in.byte() % tensor_count];
    Read r = read(x), filter;
    filter.set = succeeded(kilnGetFilterNdDescriptor(w_, KILN_DIM_MAX, &filter.type, &filter.rank,
                                                     filter.dims.data(), filter.strides.data()));
    if (!r.set || !filter.set || filter.rank != r.rank ||
        !succeeded(kilnGetConvolutionForwardOutputDim(convolution_, x, w_, r.rank, r.dims.data())))
      return;
    write(in, tensors_[in.byte() % tensor_count], r);
    const int space = r.rank - 2;
    std::copy_n(r.dims.begin() + 2, space, r.dims.begin());
    std::copy_n(filter.dims.begin(), filter.rank, r.dims.begin() + space);
    r.rank = space + filter.rank;
    write(in, tensors_[in.byte() % tensor_count], r);
  }

  // Three matrices of sizes that go together.
  void fit_product(Input& in) {
    Read a = read(tensors_[0]);
    if (!a.set || a.rank < 2 || a.rank > 3) return;
    Read b = a, d = a;
    const int last = a.rank - 1;
    b.dims[last - 1] = a.dims[last];
    d.dims[last] = b.dims[last] = in.number();
    write(in, tensors_[1], b);
    write(in, tensors_[3], d);
  }

  void fit_transposed(Input& in) {
    const kilnTensorDescriptor_t x = tensors_[in.byte() % tensor_count];
    Read r = read(x);
    if (!r.set) return;
    const Input::Array extra = in.numbers();
    if (!succeeded(kilnGetConvolutionTransposedOutputDim(
            convolution_, x, w_, in.byte() % 2 == 0 ? nullptr : extra.data(), r.rank,
            r.dims.data())))
      return;
    for (int i = 1; i < r.rank; ++i) require(r.dims[i] >= 1);
    write(in, tensors_[in.byte() % tensor_count], r);
  }

  std::array<kilnTensorDescriptor_t, tensor_count> tensors_{};
  kilnFilterDescriptor_t w_ = nullptr;
  kilnConvolutionDescriptor_t convolution_ = nullptr;
  kilnPoolingDescriptor_t pooling_ = nullptr;
  kilnActivationDescriptor_t activation_ = nullptr;
  kilnNormalizationDescriptor_t norm_ = nullptr;
  kilnMatmulDescriptor_t product_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  Scene scene;
  for (int steps = 0; steps < 24 && !in.empty(); ++steps) scene.step(in);
  scene.make_plan(in);
  return 0;
}
