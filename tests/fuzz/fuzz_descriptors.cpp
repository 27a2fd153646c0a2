// Any values in any order: descriptor setters, output sizes and plan creation either succeed or
// refuse with a status and a sentence. No kernel is made.
#include "input.hpp"

namespace {

using namespace fuzz;  // NOLINT(google-build-using-namespace)

// The four descriptors of a convolution.
class Scene {
 public:
  Scene() {
    require(succeeded(kilnCreateTensorDescriptor(&x_)) &&
            succeeded(kilnCreateTensorDescriptor(&y_)) &&
            succeeded(kilnCreateFilterDescriptor(&w_)) &&
            succeeded(kilnCreateConvolutionDescriptor(&convolution_)));
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene() {
    kilnDestroyTensorDescriptor(x_);
    kilnDestroyTensorDescriptor(y_);
    kilnDestroyFilterDescriptor(w_);
    kilnDestroyConvolutionDescriptor(convolution_);
  }

  void step(Input& in) {
    switch (in.byte() % 8) {
      case 0: set_tensor(in, x_); break;
      case 1: set_tensor(in, y_); break;
      case 2: set_filter(in, w_); break;
      case 3: set_convolution(in, convolution_); break;
      case 4: succeeded(kilnSetConvolutionGroupCount(convolution_, in.number())); break;
      case 5: fit_filter(in); break;
      case 6: fit_output(in); break;
      default: make_plan();
    }
  }

  void make_plan() {
    kilnPlan_t plan = nullptr;
    if (succeeded(kilnCreateConvolutionForwardPlan(handle(), x_, w_, convolution_, y_, &plan))) {
      const char* line = nullptr;
      require(succeeded(kilnGetPlanText(plan, KILN_PLAN_PROBLEM, &line)));
      require(std::strstr(line, "ic") != nullptr);
      require(!succeeded(kilnGetPlanText(plan, KILN_PLAN_SOURCE, &line)));
      ask_engines(plan);
      require(succeeded(kilnDestroyPlan(plan)));
    } else {
      require(plan == nullptr);
    }
  }

 private:
  // A filter that goes with x in type and rank, and in channels if the groups divide them.
  void fit_filter(Input& in) {
    int rank = 0;
    kilnDataType_t type{};
    Input::Array x{}, dims = in.numbers();
    if (!succeeded(kilnGetTensorNdDescriptor(x_, KILN_DIM_MAX, &type, &rank, x.data(), nullptr))) {
      return;
    }
    std::int64_t groups = 1;
    require(succeeded(kilnGetConvolutionGroupCount(convolution_, &groups)));
    dims[1] = x[1] / groups;
    succeeded(kilnSetFilterNdDescriptor(w_, type, KILN_TENSOR_NHWC, rank, dims.data()));
  }

  // An output of the right sizes, dense or with the input's strides.
  void fit_output(Input& in) {
    int rank = 0;
    kilnDataType_t type{};
    Input::Array strides{}, dims{};
    if (!succeeded(
            kilnGetTensorNdDescriptor(x_, KILN_DIM_MAX, &type, &rank, nullptr, strides.data())) ||
        !succeeded(kilnGetConvolutionForwardOutputDim(convolution_, x_, w_, rank, dims.data()))) {
      return;
    }
    require(dims[0] >= 0);
    for (int i = 1; i < rank; ++i) require(dims[i] >= 1);
    if (in.byte() % 4 == 0) {
      succeeded(kilnSetTensorNdDescriptor(y_, type, rank, dims.data(), strides.data()));
    } else {
      succeeded(kilnSetTensorNdDescriptorEx(y_, KILN_TENSOR_NCHW, type, rank, dims.data()));
    }
    make_plan();
  }

  kilnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  kilnFilterDescriptor_t w_ = nullptr;
  kilnConvolutionDescriptor_t convolution_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  Scene scene;
  for (int steps = 0; steps < 24 && !in.empty(); ++steps) scene.step(in);
  scene.make_plan();
  return 0;
}
