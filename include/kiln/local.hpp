// Plans of kiln.hpp: locally connected layers and their gradients.
#ifndef KILN_LOCAL_HPP
#define KILN_LOCAL_HPP

#include "kiln/filter_plans.hpp"
#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// y = alpha * local(x, w) + beta * y + bias.
class LocalForward : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const TensorDescriptor& w;
    const ConvolutionDescriptor& convolution;
    const TensorDescriptor* bias = nullptr;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    In w;
    In bias = nullptr;
    Out y;
  };

  LocalForward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateLocalForwardPlan(handle.get(), d.x.get(), d.w.get(),
                                                d.convolution.get(), detail::get(d.bias), d.y.get(),
                                                plan);
            },
            d.y),
        x_(d.x.extent()),
        w_(d.w.extent()),
        bias_(detail::extent(d.bias)),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteLocalForward(handle.get(), get(), s.alpha, o.x.at("x", x_), o.w.at("w", w_),
                                  s.beta, o.bias.at("bias", bias_), o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.y));
    check(kilnLocalForward(handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), d.w.get(),
                           o.w.at("w", d.w.extent()), d.convolution.get(), s.beta,
                           detail::get(d.bias), o.bias.at("bias", detail::extent(d.bias)),
                           d.y.get(), o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, w_, bias_, y_;
};

// dx = alpha * (gradient of sum(dy * local(x, w)) with respect to x) + beta * dx.
using LocalBackwardData =
    detail::FilterBackwardDataPlan<TensorDescriptor, kilnCreateLocalBackwardDataPlan,
                                   kilnExecuteLocalBackwardData, kilnLocalBackwardData>;

// dw = alpha * (gradient of sum(dy * local(x, w)) with respect to w) + beta * dw.
using LocalBackwardFilter =
    detail::FilterBackwardFilterPlan<TensorDescriptor, kilnCreateLocalBackwardFilterPlan,
                                     kilnExecuteLocalBackwardFilter, kilnLocalBackwardFilter>;

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_LOCAL_HPP
