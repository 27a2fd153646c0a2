// Plans of kiln.hpp: normalizations, their gradients, moments. See kiln/normalization.h.
#ifndef KILN_NORMALIZATION_HPP
#define KILN_NORMALIZATION_HPP

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

namespace detail {
inline std::int64_t channels_of(const TensorDescriptor& x) {
  const Sizes dims = x.dims();
  return dims.size() > 1 ? dims[1] : 0;
}
// `times` numbers of the compute type for each channel of x.
inline Extent of_channels(const TensorDescriptor& x, std::size_t times = 1) {
  return {compute_type_of(x), static_cast<std::size_t>(channels_of(x)) * times};
}
// Means, or inverse deviations, of x.
inline Extent of_statistics(const NormalizationDescriptor& normalization,
                            const TensorDescriptor& x) {
  kilnNormalizationStatistics_t over = KILN_NORMALIZATION_BATCH;
  std::int64_t groups = 0;
  check(kilnGetNormalizationStatistics(normalization.get(), &over, &groups, nullptr));
  const Sizes dims = x.dims();
  if (over == KILN_NORMALIZATION_BATCH || dims.size() < 2) return of_channels(x);
  std::int64_t count = dims[0];
  if (over == KILN_NORMALIZATION_INSTANCE) count *= dims[1];
  if (over == KILN_NORMALIZATION_GROUP) count *= groups;
  if (over == KILN_NORMALIZATION_PIXEL)
    for (std::size_t i = 2; i < dims.size(); ++i) count *= dims[i];
  return {compute_type_of(x), static_cast<std::size_t>(count)};
}
}  // namespace detail

// The tensors of a forward pass.
struct NormalizationTensors {
  const NormalizationDescriptor& normalization;
  const TensorDescriptor& x;
  const TensorDescriptor* residual = nullptr;
  const TensorDescriptor& y;
};

namespace detail {
// What the plans that make y from x share. create: the C function that makes the plan.
template <auto create>
class NormalizationForward : public Plan {
 public:
  using Descriptors = NormalizationTensors;

  NormalizationForward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return create(handle.get(), d.normalization.get(), d.x.get(), detail::get(d.residual),
                            d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        residual_(detail::extent(d.residual)),
        y_(d.y.extent()),
        channels_(of_channels(d.x)),
        statistics_(of_statistics(d.normalization, d.x)) {}

 protected:
  Extent x_, residual_, y_, channels_, statistics_;
};
}  // namespace detail

// y = alpha * act(p) + beta * y with the statistics of x, which it writes.
class NormalizationForwardTraining
    : public detail::NormalizationForward<kilnCreateNormalizationForwardTrainingPlan> {
 public:
  struct Operands {
    In x;
    In scale = nullptr, bias = nullptr;
    In residual = nullptr;
    Out running_mean = nullptr, running_variance = nullptr;
    Out mean = nullptr, inverse_deviation;
    Out y;
  };

  using NormalizationForward::NormalizationForward;

  // factor: the share of this batch in the running statistics.
  void execute(const Handle& handle, const Operands& o, Scalar factor = 0.1,
               const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    const detail::HostScalar f(factor, compute_type());
    check(kilnExecuteNormalizationForwardTraining(
        handle.get(), get(), s.alpha, o.x.at("x", x_), o.scale.at("scale", channels_),
        o.bias.at("bias", channels_), o.residual.at("residual", residual_), f,
        o.running_mean.at("runningMean", channels_),
        o.running_variance.at("runningVariance", channels_), o.mean.at("mean", statistics_),
        o.inverse_deviation.at("inverseDeviation", statistics_), s.beta, o.y.at("y", y_)));
  }
};

// The same y from mean and variance.
class NormalizationForwardInference
    : public detail::NormalizationForward<kilnCreateNormalizationForwardInferencePlan> {
 public:
  struct Operands {
    In x;
    In scale = nullptr, bias = nullptr;
    In mean, variance;
    In residual = nullptr;
    Out y;
  };

  using NormalizationForward::NormalizationForward;

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteNormalizationForwardInference(
        handle.get(), get(), s.alpha, o.x.at("x", x_), o.scale.at("scale", channels_),
        o.bias.at("bias", channels_), o.mean.at("mean", channels_),
        o.variance.at("variance", channels_), o.residual.at("residual", residual_), s.beta,
        o.y.at("y", y_)));
  }
};

// The same y from mean and inverse deviation.
class NormalizationApply : public detail::NormalizationForward<kilnCreateNormalizationApplyPlan> {
 public:
  struct Operands {
    In x;
    In scale = nullptr, bias = nullptr;
    In mean, inverse_deviation;
    In residual = nullptr;
    Out y;
  };

  using NormalizationForward::NormalizationForward;

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteNormalizationApply(
        handle.get(), get(), s.alpha, o.x.at("x", x_), o.scale.at("scale", channels_),
        o.bias.at("bias", channels_), o.mean.at("mean", channels_),
        o.inverse_deviation.at("inverseDeviation", channels_), o.residual.at("residual", residual_),
        s.beta, o.y.at("y", y_)));
  }
};

// dx, dscale, dbias and dresidual, from what the forward pass wrote.
class NormalizationBackward : public Plan {
 public:
  struct Descriptors {
    const NormalizationDescriptor& normalization;
    const TensorDescriptor& x;
    const TensorDescriptor* residual = nullptr;
    const TensorDescriptor& dy;
    const TensorDescriptor* dresidual = nullptr;
    const TensorDescriptor& dx;
  };
  struct Operands {
    In x;
    In scale = nullptr, bias = nullptr;
    In mean = nullptr, inverse_deviation;
    In residual = nullptr;
    In dy;
    Out dscale = nullptr, dbias = nullptr;
    Out dresidual = nullptr;
    Out dx;
  };

  NormalizationBackward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateNormalizationBackwardPlan(
                  handle.get(), d.normalization.get(), d.x.get(), detail::get(d.residual),
                  d.dy.get(), detail::get(d.dresidual), d.dx.get(), plan);
            },
            d.dx),
        x_(d.x.extent()),
        residual_(detail::extent(d.residual)),
        dy_(d.dy.extent()),
        dresidual_(detail::extent(d.dresidual)),
        dx_(d.dx.extent()),
        channels_(detail::of_channels(d.x)),
        statistics_(detail::of_statistics(d.normalization, d.x)) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteNormalizationBackward(
        handle.get(), get(), s.alpha, o.x.at("x", x_), o.scale.at("scale", channels_),
        o.bias.at("bias", channels_), o.mean.at("mean", statistics_),
        o.inverse_deviation.at("inverseDeviation", statistics_),
        o.residual.at("residual", residual_), o.dy.at("dy", dy_), o.dscale.at("dscale", channels_),
        o.dbias.at("dbias", channels_), o.dresidual.at("dresidual", dresidual_), s.beta,
        o.dx.at("dx", dx_)));
  }

 private:
  Extent x_, residual_, dy_, dresidual_, dx_, channels_, statistics_;
};

// dx from g and its sums, which a convolution's epilogue has made.
class NormalizationBackwardApply : public Plan {
 public:
  struct Descriptors {
    const NormalizationDescriptor& normalization;
    const TensorDescriptor &x, &dy, &dx;
  };
  struct Operands {
    In x;
    In scale = nullptr;
    In mean, inverse_deviation;
    In dy, dscale, dbias;
    Out dx;
  };

  NormalizationBackwardApply(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateNormalizationBackwardApplyPlan(
                  handle.get(), d.normalization.get(), d.x.get(), d.dy.get(), d.dx.get(), plan);
            },
            d.dx),
        x_(d.x.extent()),
        dy_(d.dy.extent()),
        dx_(d.dx.extent()),
        channels_(detail::of_channels(d.x)) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteNormalizationBackwardApply(
        handle.get(), get(), s.alpha, o.x.at("x", x_), o.scale.at("scale", channels_),
        o.mean.at("mean", channels_), o.inverse_deviation.at("inverseDeviation", channels_),
        o.dy.at("dy", dy_), o.dscale.at("dscale", channels_), o.dbias.at("dbias", channels_),
        s.beta, o.dx.at("dx", dx_)));
  }

 private:
  Extent x_, dy_, dx_, channels_;
};

// n, m and M2 of each channel.
class NormalizationMoments : public Plan {
 public:
  struct Operands {
    In x;
    Out moments;
  };

  NormalizationMoments(const Handle& handle, const TensorDescriptor& x)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateNormalizationMomentsPlan(handle.get(), x.get(), plan);
            },
            x),
        x_(x.extent()),
        moments_(detail::of_channels(x, 3)) {}

  void execute(const Handle& handle, const Operands& o) const {
    check(kilnExecuteNormalizationMoments(handle.get(), get(), o.x.at("x", x_),
                                          o.moments.at("moments", moments_)));
  }

 private:
  Extent x_, moments_;
};

// The moments of a whole from those of its parts, and what training makes of them.
class CombineNormalizationMoments : public Plan {
 public:
  struct Operands {
    In part_moments;
    Out running_mean = nullptr, running_variance = nullptr;
    Out mean, inverse_deviation;
    Out moments;
  };

  // x: a tensor of the type and channels that were measured.
  CombineNormalizationMoments(const Handle& handle, const NormalizationDescriptor& normalization,
                              const TensorDescriptor& x, std::int64_t parts)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateCombineNormalizationMomentsPlan(handle.get(), normalization.get(),
                                                               detail::compute_type_of(x), parts,
                                                               detail::channels_of(x), plan);
            },
            x),
        parts_(detail::of_channels(x, 3 * static_cast<std::size_t>(parts))),
        channels_(detail::of_channels(x)),
        moments_(detail::of_channels(x, 3)) {}

  void execute(const Handle& handle, const Operands& o, Scalar factor = 0.1) const {
    const detail::HostScalar f(factor, compute_type());
    check(kilnExecuteCombineNormalizationMoments(
        handle.get(), get(), o.part_moments.at("partMoments", parts_), f,
        o.running_mean.at("runningMean", channels_),
        o.running_variance.at("runningVariance", channels_), o.mean.at("mean", channels_),
        o.inverse_deviation.at("inverseDeviation", channels_), o.moments.at("moments", moments_)));
  }

 private:
  Extent parts_, channels_, moments_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_NORMALIZATION_HPP
