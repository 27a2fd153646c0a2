// Kiln for C++20: owners of the C API's objects, and exceptions in place of statuses. Nothing else:
// shapes, units, threads and errors are as kiln.h has them.
//
//   kiln::Handle handle(KILN_DEVICE_CUDA);
//   kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {32, 256, 13, 13});
//   kiln::FilterDescriptor w(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {384, 256, 3, 3});
//   kiln::ConvolutionDescriptor convolution({.pad_before = {1, 1}});
//   kiln::TensorDescriptor y(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, convolution.output_dims(x, w));
//   kiln::Plan plan(handle, x, w, convolution, y);
//   plan.finalize();
//   plan.execute(handle, 1.0, x_data, w_data, 0.0, y_data);
//
// Every other operation by the name of its C functions, with these objects for descriptors and
// numbers for scalars:
//   kiln::PoolingDescriptor pooling({.window = {2, 2}, .stride = {2, 2}});
//   kiln::Plan pool(KILN_DATA_FLOAT, kilnCreatePoolingForwardPlan, handle, pooling, x, y);
//   pool.finalize();
//   pool.run(kilnExecutePoolingForward, handle, 1.0, x_data, 0.0, y_data);
// or at once:
//   kiln::run(KILN_DATA_FLOAT, kilnPoolingForward, handle, pooling, 1.0, x, x_data, 0.0, y,
//   y_data);
#ifndef KILN_KILN_HPP
#define KILN_KILN_HPP

#if __cplusplus < 202002L
#error "kiln.hpp needs C++20: compile with -std=c++20, or use kiln.h, which is C99"
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kiln/kiln.h"

namespace kiln {
inline namespace cxx {

// A status other than success; what() is the sentence that goes with it.
class Exception : public std::runtime_error {
 public:
  Exception(kilnStatus_t status, const char* message)
      : std::runtime_error(message), status_(status) {}
  kilnStatus_t status() const noexcept { return status_; }

 private:
  kilnStatus_t status_;
};

// check(kilnSetStream(handle.get(), stream));
inline void check(kilnStatus_t status) {
  if (status != KILN_STATUS_SUCCESS) throw Exception(status, kilnGetLastErrorMessage());
}

// One C object and its end; movable, not copyable. get() serves any C call.
template <class Pointer, kilnStatus_t (*destroy)(Pointer)>
class Owner {
 public:
  Pointer get() const noexcept { return object_.get(); }

 protected:
  explicit Owner(Pointer object) noexcept : object_(object) {}

  // Owner(created([&](Pointer* out) { return kilnCreate...(out); }))
  template <class Create>
  static Pointer created(Create&& create) {
    Pointer object = nullptr;
    check(create(&object));
    return object;
  }

 private:
  struct Destroy {
    void operator()(Pointer object) const noexcept { destroy(object); }
  };
  std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy> object_;
};

class Handle : public Owner<kilnHandle_t, kilnDestroy> {
 public:
  explicit Handle(kilnDeviceKind_t kind, int ordinal = 0)
      : Owner(created([&](kilnHandle_t* out) { return kilnCreate(out, kind, ordinal); })) {}

  void set_stream(void* stream) { check(kilnSetStream(get(), stream)); }
  void* stream() const {
    void* stream = nullptr;
    check(kilnGetStream(get(), &stream));
    return stream;
  }
};

using Sizes = std::vector<std::int64_t>;  // outermost first

// Of N and C, or of K and C per group, then space; see kilnSetTensorNdDescriptor.
class TensorDescriptor : public Owner<kilnTensorDescriptor_t, kilnDestroyTensorDescriptor> {
 public:
  TensorDescriptor() : Owner(created(kilnCreateTensorDescriptor)) {}
  TensorDescriptor(kilnTensorFormat_t format, kilnDataType_t type, const Sizes& dims)
      : TensorDescriptor() {
    check(kilnSetTensorNdDescriptorEx(get(), format, type, static_cast<int>(dims.size()),
                                      dims.data()));
  }
  TensorDescriptor(kilnDataType_t type, const Sizes& dims, const Sizes& strides)
      : TensorDescriptor() {
    if (strides.size() != dims.size()) {
      throw Exception(KILN_STATUS_BAD_PARAM, "strides differ in number from dims");
    }
    check(kilnSetTensorNdDescriptor(get(), type, static_cast<int>(dims.size()), dims.data(),
                                    strides.data()));
  }

  Sizes dims() const {
    Sizes dims(KILN_DIM_MAX);
    int rank = 0;
    check(kilnGetTensorNdDescriptor(get(), KILN_DIM_MAX, nullptr, &rank, dims.data(), nullptr));
    dims.resize(static_cast<std::size_t>(rank));
    return dims;
  }
};

class FilterDescriptor : public Owner<kilnFilterDescriptor_t, kilnDestroyFilterDescriptor> {
 public:
  FilterDescriptor() : Owner(created(kilnCreateFilterDescriptor)) {}
  FilterDescriptor(kilnTensorFormat_t format, kilnDataType_t type, const Sizes& dims)
      : FilterDescriptor() {
    check(
        kilnSetFilterNdDescriptor(get(), type, format, static_cast<int>(dims.size()), dims.data()));
  }
  FilterDescriptor(kilnDataType_t type, const Sizes& dims, const Sizes& strides)
      : FilterDescriptor() {
    if (strides.size() != dims.size()) {
      throw Exception(KILN_STATUS_BAD_PARAM, "strides differ in number from dims");
    }
    check(kilnSetFilterNdDescriptorStrided(get(), type, static_cast<int>(dims.size()), dims.data(),
                                           strides.data()));
  }
};

// Per spatial dimension; pad_before says how many there are. What is left empty: pad_after as
// pad_before, stride and dilation 1.
struct ConvolutionFields {
  Sizes pad_before{0, 0}, pad_after{}, stride{}, dilation{};
  std::int64_t groups = 1;
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  kilnDataType_t compute_type = KILN_DATA_FLOAT;
  kilnMathMode_t math = KILN_MATH_DEFAULT;
  std::int64_t alignment = 16;
};

class ConvolutionDescriptor
    : public Owner<kilnConvolutionDescriptor_t, kilnDestroyConvolutionDescriptor> {
 public:
  explicit ConvolutionDescriptor(ConvolutionFields fields)
      : Owner(created(kilnCreateConvolutionDescriptor)) {
    const std::size_t spatial = fields.pad_before.size();
    if (fields.pad_after.empty()) fields.pad_after = fields.pad_before;
    if (fields.stride.empty()) fields.stride.assign(spatial, 1);
    if (fields.dilation.empty()) fields.dilation.assign(spatial, 1);
    if (fields.pad_after.size() != spatial || fields.stride.size() != spatial ||
        fields.dilation.size() != spatial) {
      throw Exception(KILN_STATUS_BAD_PARAM,
                      "pad_after, stride or dilation differs in number from pad_before");
    }
    check(kilnSetConvolutionNdDescriptor(get(), static_cast<int>(spatial), fields.pad_before.data(),
                                         fields.pad_after.data(), fields.stride.data(),
                                         fields.dilation.data(), fields.mode, fields.compute_type));
    check(kilnSetConvolutionGroupCount(get(), fields.groups));
    check(kilnSetConvolutionMathMode(get(), fields.math));
    check(kilnSetConvolutionAlignment(get(), fields.alignment));
  }

  kilnDataType_t compute_type() const {
    kilnDataType_t type{};
    check(kilnGetConvolutionNdDescriptor(get(), 0, nullptr, nullptr, nullptr, nullptr, nullptr,
                                         nullptr, &type));
    return type;
  }

  // The sizes of y.
  Sizes output_dims(const TensorDescriptor& x, const FilterDescriptor& w) const {
    Sizes dims = x.dims();
    check(kilnGetConvolutionForwardOutputDim(get(), x.get(), w.get(), static_cast<int>(dims.size()),
                                             dims.data()));
    return dims;
  }
};

// Per spatial dimension; window says how many there are. What is left empty: no padding, stride as
// the window, dilation 1.
struct PoolingFields {
  Sizes window{2, 2}, pad_before{}, pad_after{}, stride{}, dilation{};
  kilnPoolingMode_t mode = KILN_POOLING_MAX;
  kilnNanPropagation_t nan_propagation = KILN_PROPAGATE_NAN;
  bool ceil_mode = false;  // kilnSetPoolingCeilMode()
};

class PoolingDescriptor : public Owner<kilnPoolingDescriptor_t, kilnDestroyPoolingDescriptor> {
 public:
  explicit PoolingDescriptor(PoolingFields fields) : Owner(created(kilnCreatePoolingDescriptor)) {
    const std::size_t spatial = fields.window.size();
    if (fields.pad_before.empty()) fields.pad_before.assign(spatial, 0);
    if (fields.pad_after.empty()) fields.pad_after = fields.pad_before;
    if (fields.stride.empty()) fields.stride = fields.window;
    if (fields.dilation.empty()) fields.dilation.assign(spatial, 1);
    if (fields.pad_before.size() != spatial || fields.pad_after.size() != spatial ||
        fields.stride.size() != spatial || fields.dilation.size() != spatial) {
      throw Exception(KILN_STATUS_BAD_PARAM,
                      "pad_before, pad_after, stride or dilation differs in number from window");
    }
    check(kilnSetPoolingNdDescriptor(get(), fields.mode, fields.nan_propagation,
                                     static_cast<int>(spatial), fields.window.data(),
                                     fields.pad_before.data(), fields.pad_after.data(),
                                     fields.stride.data(), fields.dilation.data()));
    check(kilnSetPoolingCeilMode(get(), fields.ceil_mode ? 1 : 0));
  }

  // The sizes of y.
  Sizes output_dims(const TensorDescriptor& x) const {
    Sizes dims = x.dims();
    check(
        kilnGetPoolingForwardOutputDim(get(), x.get(), static_cast<int>(dims.size()), dims.data()));
    return dims;
  }
};

class ActivationDescriptor
    : public Owner<kilnActivationDescriptor_t, kilnDestroyActivationDescriptor> {
 public:
  explicit ActivationDescriptor(kilnActivationMode_t mode, double coef = 0, double coef2 = 0)
      : Owner(created(kilnCreateActivationDescriptor)) {
    check(kilnSetActivationDescriptorEx(get(), mode, coef, coef2));
  }
};

namespace detail {
// alpha or beta in the compute type.
class Scalar {
 public:
  Scalar(double value, kilnDataType_t compute_type)
      : double_(value), float_(static_cast<float>(value)), type_(compute_type) {}
  const void* address() const noexcept {
    return type_ == KILN_DATA_DOUBLE ? static_cast<const void*>(&double_) : &float_;
  }

 private:
  double double_;
  float float_;
  kilnDataType_t type_;
};

// What a C function takes for an argument of these wrappers' callers: a scalar's address for a
// number, the C object for its owner, anything else as it is. A Scalar lives until the call is
// over.
class ScalarArgument : public Scalar {
 public:
  using Scalar::Scalar;
  operator const void*() const noexcept { return address(); }  // NOLINT: that is its purpose
};
inline ScalarArgument pass(double value, kilnDataType_t type) { return {value, type}; }
template <class Pointer, kilnStatus_t (*destroy)(Pointer)>
Pointer pass(const Owner<Pointer, destroy>& owner, kilnDataType_t) {
  return owner.get();
}
template <class Other>
requires(std::is_pointer_v<Other> || std::is_enum_v<Other> || std::is_null_pointer_v<Other>) Other
    pass(Other other, kilnDataType_t) {
  return other;
}
}  // namespace detail

class Plan : public Owner<kilnPlan_t, kilnDestroyPlan> {
 public:
  Plan(const Handle& handle, const TensorDescriptor& x, const FilterDescriptor& w,
       const ConvolutionDescriptor& convolution, const TensorDescriptor& y)
      : Owner(created([&](kilnPlan_t* out) {
          return kilnCreateConvolutionForwardPlan(handle.get(), x.get(), w.get(), convolution.get(),
                                                  y.get(), out);
        })),
        compute_type_(convolution.compute_type()) {}

  // Plan(KILN_DATA_FLOAT, kilnCreatePoolingForwardPlan, handle, pooling, x, y): a plan of any
  // operation, from its C function; compute_type is that of its scalars.
  template <class Create, class... Arguments>
  Plan(kilnDataType_t compute_type, Create create, const Handle& handle,
       const Arguments&... arguments)
      : Owner(created([&](kilnPlan_t* out) {
          return create(handle.get(), detail::pass(arguments, compute_type)..., out);
        })),
        compute_type_(compute_type) {}

  // The engines for the operation, each with its refusal; "" of those that take the problem. The
  // texts live as long as the plan.
  struct Engine {
    std::string_view name, refusal;
  };
  std::vector<Engine> engines() const {
    int count = 0;
    check(kilnGetPlanEngineCount(get(), &count));
    std::vector<Engine> engines;
    for (int i = 0; i < count; ++i) {
      const char *name = nullptr, *refusal = nullptr;
      check(kilnGetPlanEngine(get(), i, &name, &refusal));
      engines.push_back({name, refusal});
    }
    return engines;
  }
  // The engine that finalization takes; null: the library's choice. See kilnSetPlanEngine.
  void set_engine(const char* engine) { check(kilnSetPlanEngine(get(), engine)); }

  void finalize() { check(kilnFinalizePlan(get())); }

  // In the background; see kilnStartFinalizePlan. poll() and wait() throw what finalization failed
  // with.
  void start_finalize() { check(kilnStartFinalizePlan(get())); }
  bool poll_finalize() {
    int done = 0;
    check(kilnPollFinalizePlan(get(), &done));
    return done != 0;
  }
  void wait_finalize() { check(kilnWaitFinalizePlan(get())); }
  bool cancel_finalize() {
    int cancelled = 0;
    check(kilnCancelFinalizePlan(get(), &cancelled));
    return cancelled != 0;
  }

  // run(kilnExecutePoolingForward, handle, 1.0, x, 0.0, y)
  template <class Function, class... Arguments>
  void run(Function function, const Handle& handle, const Arguments&... arguments) const {
    check(function(handle.get(), get(), detail::pass(arguments, compute_type_)...));
  }

  // y = alpha * conv(x, w) + beta * y
  void execute(const Handle& handle, double alpha, const void* x, const void* w, double beta,
               void* y) const {
    const detail::Scalar a(alpha, compute_type_), b(beta, compute_type_);
    check(kilnExecuteConvolutionForward(handle.get(), get(), a.address(), x, w, b.address(), y));
  }

  kilnPlanInfo_t info() const {
    kilnPlanInfo_t info{};
    info.structSize = sizeof info;
    check(kilnGetPlanInfo(get(), &info));
    return info;
  }
  // Both live as long as the plan.
  std::string_view text(kilnPlanText_t which) const {
    const char* text = nullptr;
    check(kilnGetPlanText(get(), which, &text));
    return text;
  }
  std::span<const std::byte> binary() const {
    const void* data = nullptr;
    std::size_t size = 0;
    check(kilnGetPlanBinary(get(), &data, &size));
    return {static_cast<const std::byte*>(data), size};
  }

 private:
  kilnDataType_t compute_type_;
};

// An immediate call of any operation: the handle keeps the plan.
template <class Function, class... Arguments>
void run(kilnDataType_t compute_type, Function function, const Handle& handle,
         const Arguments&... arguments) {
  check(function(handle.get(), detail::pass(arguments, compute_type)...));
}

inline kilnCacheStats_t cache_stats() {
  kilnCacheStats_t stats{};
  stats.structSize = sizeof stats;
  check(kilnGetCacheStats(&stats));
  return stats;
}

inline void convolution_forward(const Handle& handle, double alpha, const TensorDescriptor& x_desc,
                                const void* x, const FilterDescriptor& w_desc, const void* w,
                                const ConvolutionDescriptor& convolution, double beta,
                                const TensorDescriptor& y_desc, void* y) {
  const detail::Scalar a(alpha, convolution.compute_type()), b(beta, convolution.compute_type());
  check(kilnConvolutionForward(handle.get(), a.address(), x_desc.get(), x, w_desc.get(), w,
                               convolution.get(), b.address(), y_desc.get(), y));
}

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_KILN_HPP
