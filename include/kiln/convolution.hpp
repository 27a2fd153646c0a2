// Plans of kiln.hpp: convolution in all its passes, and with an epilogue.
#ifndef KILN_CONVOLUTION_HPP
#define KILN_CONVOLUTION_HPP

#include <vector>

#include "kiln/filter_plans.hpp"
#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// y = alpha * conv(x, w) + beta * y.
using ConvolutionForward =
    detail::FilterForwardPlan<FilterDescriptor, kilnCreateConvolutionForwardPlan,
                              kilnExecuteConvolutionForward, kilnConvolutionForward>;

// y = act(alpha * conv(x, w) + beta * z + bias); without z, beta scales what y held.
class ConvolutionBiasActivationForward : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const FilterDescriptor& w;
    const ConvolutionDescriptor& convolution;
    const TensorDescriptor* z = nullptr;
    const TensorDescriptor* bias = nullptr;
    const ActivationDescriptor& activation;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    In w;
    In z{};
    In bias{};
    Out y;
  };

  ConvolutionBiasActivationForward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateConvolutionBiasActivationForwardPlan(
                  handle.get(), d.x.get(), d.w.get(), d.convolution.get(), detail::get(d.z),
                  detail::get(d.bias), d.activation.get(), d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        w_(d.w.extent()),
        z_(detail::extent(d.z)),
        bias_(detail::extent(d.bias)),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteConvolutionBiasActivationForward(handle.get(), get(), s.alpha, o.x.at("x", x_),
                                                      o.w.at("w", w_), s.beta, o.z.at("z", z_),
                                                      o.bias.at("bias", bias_), o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.y));
    check(kilnConvolutionBiasActivationForward(
        handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), d.w.get(),
        o.w.at("w", d.w.extent()), d.convolution.get(), s.beta, detail::get(d.z),
        o.z.at("z", detail::extent(d.z)), detail::get(d.bias),
        o.bias.at("bias", detail::extent(d.bias)), d.activation.get(), d.y.get(),
        o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, w_, z_, bias_, y_;
};

// dx = alpha * (gradient of sum(dy * conv(x, w)) with respect to x) + beta * dx.
using ConvolutionBackwardData =
    detail::FilterBackwardDataPlan<FilterDescriptor, kilnCreateConvolutionBackwardDataPlan,
                                   kilnExecuteConvolutionBackwardData, kilnConvolutionBackwardData>;

// dw = alpha * (gradient of sum(dy * conv(x, w)) with respect to w) + beta * dw.
using ConvolutionBackwardFilter =
    detail::FilterBackwardFilterPlan<FilterDescriptor, kilnCreateConvolutionBackwardFilterPlan,
                                     kilnExecuteConvolutionBackwardFilter,
                                     kilnConvolutionBackwardFilter>;

// db[k] = alpha * (sum of dy over the batch and space) + beta * db[k].
class ConvolutionBackwardBias : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& dy;
    const TensorDescriptor& db;
  };
  struct Operands {
    In dy;
    Out db;
  };

  ConvolutionBackwardBias(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateConvolutionBackwardBiasPlan(handle.get(), d.dy.get(), d.db.get(),
                                                           plan);
            },
            d.db),
        dy_(d.dy.extent()),
        db_(d.db.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteConvolutionBackwardBias(handle.get(), get(), s.alpha, o.dy.at("dy", dy_),
                                             s.beta, o.db.at("db", db_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.db));
    check(kilnConvolutionBackwardBias(handle.get(), s.alpha, d.dy.get(),
                                      o.dy.at("dy", d.dy.extent()), s.beta, d.db.get(),
                                      o.db.at("db", d.db.extent())));
  }

 private:
  Extent dy_, db_;
};

// y = alpha * transposed_conv(x, w) + beta * y.
using ConvolutionTransposed =
    detail::FilterForwardPlan<FilterDescriptor, kilnCreateConvolutionTransposedPlan,
                              kilnExecuteConvolutionTransposed, kilnConvolutionTransposed>;

namespace detail {

template <auto create, auto execute_plan, auto run_at_once>
class EpiloguePlan : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const FilterDescriptor& w;
    const ConvolutionDescriptor& convolution;
    const Epilogue& epilogue;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    In w;
    std::vector<In> epilogue{};  // of the operations, in the list's order
    Out y;
  };

  EpiloguePlan(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return create(handle.get(), d.x.get(), d.w.get(), d.convolution.get(),
                            d.epilogue.get(), d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        w_(d.w.extent()),
        y_(d.y.extent()),
        epilogue_(d.epilogue.extents()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const HostScale s(scale, compute_type());
    const std::vector<const void*> operands = addresses_of(o.epilogue, epilogue_);
    check(execute_plan(handle.get(), get(), s.alpha, o.x.at("x", x_), o.w.at("w", w_), s.beta,
                       static_cast<int>(operands.size()), operands.data(), o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const HostScale s(scale, compute_type_of(d.y));
    const std::vector<const void*> operands = addresses_of(o.epilogue, d.epilogue.extents());
    check(run_at_once(handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), d.w.get(),
                      o.w.at("w", d.w.extent()), d.convolution.get(), s.beta, d.epilogue.get(),
                      static_cast<int>(operands.size()), operands.data(), d.y.get(),
                      o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, w_, y_;
  std::vector<Extent> epilogue_;
};

}  // namespace detail

// y = epilogue(alpha * conv(x, w)).
using ConvolutionForwardEpilogue =
    detail::EpiloguePlan<kilnCreateConvolutionForwardEpiloguePlan,
                         kilnExecuteConvolutionForwardEpilogue, kilnConvolutionForwardEpilogue>;

// y = epilogue(alpha * transposed_conv(x, w)).
using ConvolutionTransposedEpilogue =
    detail::EpiloguePlan<kilnCreateConvolutionTransposedEpiloguePlan,
                         kilnExecuteConvolutionTransposedEpilogue,
                         kilnConvolutionTransposedEpilogue>;

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_CONVOLUTION_HPP
