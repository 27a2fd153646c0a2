// Descriptors of kiln.hpp: made and set in one step, and never changed.
#ifndef KILN_DESCRIPTORS_HPP
#define KILN_DESCRIPTORS_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "kiln/base.hpp"

namespace kiln {
inline namespace cxx {

// Sizes, strides and the like, outermost first.
using Sizes = std::vector<std::int64_t>;

// The same as an argument: {32, 256, 13, 13}, a Sizes, an array, a span. It owns nothing.
class SizeSpan : public std::span<const std::int64_t> {
 public:
  using span::span;
  SizeSpan(std::initializer_list<std::int64_t> list) : span(list.begin(), list.size()) {}
  int count() const noexcept { return static_cast<int>(size()); }
};

// The memory of a tensor: elements of `type` from the first to the last one addressed.
struct Extent {
  kilnDataType_t type{};
  std::size_t elements = 0;
};

namespace detail {

// Of a descriptor that may be null.
template <class Descriptor>
auto get(const Descriptor* descriptor) {
  return descriptor != nullptr ? descriptor->get() : nullptr;
}

inline void check_counts(SizeSpan strides, SizeSpan dims) {
  if (strides.size() != dims.size())
    throw Exception(KILN_STATUS_BAD_PARAM, "strides differ in number from dims");
}

// Type, sizes and strides of a tensor's or filter's descriptor, as its getter returns them.
struct Shape {
  kilnDataType_t type{};
  Sizes dims, strides;

  template <class Descriptor, class Get>
  Shape(Descriptor descriptor, Get get) : dims(KILN_DIM_MAX), strides(KILN_DIM_MAX) {
    int rank = 0;
    check(get(descriptor, KILN_DIM_MAX, &type, &rank, dims.data(), strides.data()));
    dims.resize(static_cast<std::size_t>(rank));
    strides.resize(static_cast<std::size_t>(rank));
  }
  Extent extent() const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 0) return {type, 0};
      last += static_cast<std::size_t>((dims[i] - 1) * strides[i]);
    }
    return {type, last + 1};
  }
};

}  // namespace detail

// Sizes are N, C, then space; see kilnSetTensorNdDescriptor.
class TensorDescriptor : public Owner<kilnTensorDescriptor_t, kilnDestroyTensorDescriptor> {
 public:
  TensorDescriptor(kilnTensorFormat_t format, kilnDataType_t type, SizeSpan dims)
      : Owner(created(kilnCreateTensorDescriptor)) {
    check(kilnSetTensorNdDescriptorEx(get(), format, type, dims.count(), dims.data()));
  }
  TensorDescriptor(kilnDataType_t type, SizeSpan dims, SizeSpan strides)
      : Owner(created(kilnCreateTensorDescriptor)) {
    detail::check_counts(strides, dims);
    check(kilnSetTensorNdDescriptor(get(), type, dims.count(), dims.data(), strides.data()));
  }

  Sizes dims() const { return shape().dims; }
  Sizes strides() const { return shape().strides; }
  kilnDataType_t type() const { return shape().type; }
  Extent extent() const { return shape().extent(); }

 private:
  detail::Shape shape() const { return {get(), kilnGetTensorNdDescriptor}; }
};

// Sizes are K, C per group, then the filter's space; see kilnSetFilterNdDescriptor.
class FilterDescriptor : public Owner<kilnFilterDescriptor_t, kilnDestroyFilterDescriptor> {
 public:
  FilterDescriptor(kilnTensorFormat_t format, kilnDataType_t type, SizeSpan dims)
      : Owner(created(kilnCreateFilterDescriptor)) {
    check(kilnSetFilterNdDescriptor(get(), type, format, dims.count(), dims.data()));
  }
  FilterDescriptor(kilnDataType_t type, SizeSpan dims, SizeSpan strides)
      : Owner(created(kilnCreateFilterDescriptor)) {
    detail::check_counts(strides, dims);
    check(kilnSetFilterNdDescriptorStrided(get(), type, dims.count(), dims.data(), strides.data()));
  }

  Sizes dims() const { return shape().dims; }
  Sizes strides() const { return shape().strides; }
  kilnDataType_t type() const { return shape().type; }
  Extent extent() const { return shape().extent(); }

 private:
  detail::Shape shape() const { return {get(), kilnGetFilterNdDescriptor}; }
};

namespace detail {
// The compute type of operations on such tensors.
template <class... Descriptors>
kilnDataType_t compute_type_of(const Descriptors&... descriptors) {
  const bool any_double = ((descriptors.type() == KILN_DATA_DOUBLE) || ...);
  return any_double ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
}
}  // namespace detail

// One value per spatial dimension, as many as pad_before has. Defaults of empty fields: pad_after
// is pad_before, stride and dilation are 1.
struct ConvolutionFields {
  Sizes pad_before{0, 0}, pad_after{}, stride{}, dilation{};
  std::int64_t groups = 1;
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  kilnDataType_t compute_type = KILN_DATA_FLOAT;  // DOUBLE for tensors of f64
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

  // The sizes of y = conv(x, w).
  Sizes output_dims(const TensorDescriptor& x, const FilterDescriptor& w) const {
    Sizes dims = x.dims();
    check(kilnGetConvolutionForwardOutputDim(get(), x.get(), w.get(), static_cast<int>(dims.size()),
                                             dims.data()));
    return dims;
  }
  // The sizes of y = transposed_conv(x, w); output_padding empty: all 0.
  Sizes transposed_dims(const TensorDescriptor& x, const FilterDescriptor& w,
                        SizeSpan output_padding = {}) const {
    Sizes dims = x.dims();
    if (!output_padding.empty() && output_padding.size() + 2 != dims.size())
      throw Exception(KILN_STATUS_BAD_PARAM,
                      "output_padding differs in number from the dimensions of space");
    check(kilnGetConvolutionTransposedOutputDim(
        get(), x.get(), w.get(), output_padding.empty() ? nullptr : output_padding.data(),
        static_cast<int>(dims.size()), dims.data()));
    return dims;
  }
};

// One value per spatial dimension, as many as window has. Defaults of empty fields: no padding,
// stride is the window, dilation is 1.
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

class NormalizationDescriptor
    : public Owner<kilnNormalizationDescriptor_t, kilnDestroyNormalizationDescriptor> {
 public:
  struct Fields {
    bool affine = true, running = true, frozen = false;
    double epsilon = 1e-5;
    const ActivationDescriptor* activation = nullptr;
    kilnNormalizationStatistics_t statistics = KILN_NORMALIZATION_BATCH;
    std::int64_t groups = 0;
    bool centered = true, bias = true;
  };
  NormalizationDescriptor() : NormalizationDescriptor(Fields{}) {}
  explicit NormalizationDescriptor(const Fields& fields)
      : Owner(created(kilnCreateNormalizationDescriptor)) {
    check(kilnSetNormalizationDescriptor(get(), fields.affine ? 1 : 0, fields.running ? 1 : 0,
                                         fields.frozen ? 1 : 0, fields.epsilon));
    check(kilnSetNormalizationActivation(get(), detail::get(fields.activation)));
    check(kilnSetNormalizationStatistics(get(), fields.statistics, fields.groups,
                                         fields.centered ? 1 : 0));
    check(kilnSetNormalizationBias(get(), fields.bias ? 1 : 0));
  }
};

class MatmulDescriptor : public Owner<kilnMatmulDescriptor_t, kilnDestroyMatmulDescriptor> {
 public:
  explicit MatmulDescriptor(kilnMathMode_t math = KILN_MATH_DEFAULT, std::int64_t alignment = 16)
      : Owner(created(kilnCreateMatmulDescriptor)) {
    check(kilnSetMatmulDescriptor(get(), math, alignment));
  }
};

// A list of operations in the order in which they are added; see kiln/epilogue.h.
//   const Epilogue epilogue = Epilogue().bias(b).activation(relu).residual(z);
class Epilogue : public Owner<kilnEpilogueDescriptor_t, kilnDestroyEpilogueDescriptor> {
 public:
  Epilogue() : Owner(created(kilnCreateEpilogueDescriptor)) {}

  Epilogue&& bias(const TensorDescriptor& bias) && {
    check(kilnAddEpilogueBias(get(), bias.get()));
    extents_.push_back(bias.extent());
    return std::move(*this);
  }
  Epilogue&& residual(const TensorDescriptor& z) && {
    check(kilnAddEpilogueResidual(get(), z.get()));
    extents_.push_back(z.extent());
    return std::move(*this);
  }
  // z is what the output held.
  Epilogue&& residual() && {
    check(kilnAddEpilogueResidual(get(), nullptr));
    return std::move(*this);
  }
  Epilogue&& activation(const ActivationDescriptor& activation) && {
    check(kilnAddEpilogueActivation(get(), activation.get()));
    return std::move(*this);
  }
  // Of the output y: 3 numbers a channel, of the compute type. Their operand is written, so it is
  // given as an address or a span of elements that are not const.
  Epilogue&& moments(const TensorDescriptor& y) && {
    check(kilnAddEpilogueMoments(get()));
    extents_.push_back({detail::compute_type_of(y), 3 * static_cast<std::size_t>(y.dims().at(1))});
    return std::move(*this);
  }

  // Behind `norm`, whose x and perhaps residual are given: see kilnAddEpilogueNormalizationGradient
  // for its operands, of which the last two, dscale and dbias, are written.
  Epilogue&& normalization_gradient(const NormalizationDescriptor& norm, const TensorDescriptor& x,
                                    const TensorDescriptor* residual = nullptr) && {
    check(kilnAddEpilogueNormalizationGradient(get(), norm.get(), x.get(), detail::get(residual)));
    int affine = 0;
    check(kilnGetNormalizationDescriptor(norm.get(), &affine, nullptr, nullptr, nullptr));
    const Extent of_channels{detail::compute_type_of(x), static_cast<std::size_t>(x.dims().at(1))};
    extents_.push_back(x.extent());
    extents_.insert(extents_.end(), affine != 0 ? 4 : 2, of_channels);
    if (residual != nullptr) extents_.push_back(residual->extent());
    extents_.insert(extents_.end(), 2, of_channels);
    return std::move(*this);
  }

  // Of the operations' operands.
  const std::vector<Extent>& extents() const noexcept { return extents_; }

 private:
  std::vector<Extent> extents_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_DESCRIPTORS_HPP
