// Any values in any order: descriptor setters, output sizes and plan creation either succeed or
// refuse with a status and a sentence. No kernel is made.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kiln/kiln.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Values out of the input's bytes; zeros once they are used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }

  std::uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  // Mostly small, so that many inputs get past the first check; sometimes anything.
  std::int64_t number() {
    const std::uint8_t first = byte();
    if (first < 224) return first % 32;
    if (first < 240) return static_cast<std::int64_t>(1) << (first % 16 * 4 + byte() % 4);
    if (first < 248) return -static_cast<std::int64_t>(byte());
    std::uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | byte();
    return static_cast<std::int64_t>(bits);
  }

  // An enumerator of `count`, rarely something else.
  template <class Enum>
  Enum enumerator(int count) {
    const int value = byte();
    return static_cast<Enum>(value < 250 ? value % count : value - 252);
  }

  int rank() {
    const int value = byte();
    return value < 250 ? 3 + value % 3 : value - 252;
  }

  using Array = std::array<std::int64_t, 8>;
  Array numbers() {
    Array out{};
    for (int i = 0; i < KILN_DIM_MAX; ++i) out[i] = number();
    return out;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

bool succeeded(kilnStatus_t status) {
  require(status == KILN_STATUS_SUCCESS || status == KILN_STATUS_BAD_PARAM ||
          status == KILN_STATUS_NOT_INITIALIZED);
  require(status == KILN_STATUS_SUCCESS || std::strlen(kilnGetLastErrorMessage()) > 10);
  return status == KILN_STATUS_SUCCESS;
}

kilnHandle_t handle() {
  static const kilnHandle_t instance = [] {
    kilnHandle_t out = nullptr;
    require(kilnCreate(&out, KILN_DEVICE_HOST, 0) == KILN_STATUS_SUCCESS);
    return out;
  }();
  return instance;
}

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
      case 2: set_filter(in); break;
      case 3: set_convolution(in); break;
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
      require(succeeded(kilnDestroyPlan(plan)));
    } else {
      require(plan == nullptr);
    }
  }

 private:
  void set_tensor(Input& in, kilnTensorDescriptor_t tensor) {
    const int rank = in.rank();
    const auto type = in.enumerator<kilnDataType_t>(4);
    const Input::Array dims = in.numbers();
    const std::uint8_t how = in.byte();
    if (how % 2 == 0) {
      const auto format = in.enumerator<kilnTensorFormat_t>(2);
      if (!succeeded(kilnSetTensorNdDescriptorEx(tensor, format, type, rank, dims.data()))) return;
    } else {
      const Input::Array strides = in.numbers();
      if (!succeeded(kilnSetTensorNdDescriptor(tensor, type, rank, dims.data(), strides.data()))) {
        return;
      }
    }
    int got_rank = 0;
    kilnDataType_t got_type{};
    Input::Array got{};
    require(succeeded(kilnGetTensorNdDescriptor(tensor, KILN_DIM_MAX, &got_type, &got_rank,
                                                got.data(), nullptr)));
    require(got_rank == rank && got_type == type);
    for (int i = 0; i < rank; ++i) require(got[i] == dims[i]);
  }

  void set_filter(Input& in) {
    const int rank = in.rank();
    const auto type = in.enumerator<kilnDataType_t>(4);
    const Input::Array dims = in.numbers();
    if (in.byte() % 2 == 0) {
      const auto format = in.enumerator<kilnTensorFormat_t>(2);
      succeeded(kilnSetFilterNdDescriptor(w_, type, format, rank, dims.data()));
    } else {
      const Input::Array strides = in.numbers();
      succeeded(kilnSetFilterNdDescriptorStrided(w_, type, rank, dims.data(), strides.data()));
    }
  }

  void set_convolution(Input& in) {
    const int count = in.rank() - 2;
    const auto before = in.numbers(), after = in.numbers(), stride = in.numbers(),
               dilation = in.numbers();
    const bool same = in.byte() % 2 == 0;
    const auto mode = in.enumerator<kilnConvolutionMode_t>(2);
    const auto type = in.enumerator<kilnDataType_t>(2);
    succeeded(kilnSetConvolutionNdDescriptor(convolution_, count, before.data(),
                                             same ? nullptr : after.data(), stride.data(),
                                             dilation.data(), mode, type));
  }

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
