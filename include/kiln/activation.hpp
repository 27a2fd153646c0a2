// Plans of kiln.hpp: activations and their gradients.
#ifndef KILN_ACTIVATION_HPP
#define KILN_ACTIVATION_HPP

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// y = alpha * f(x) + beta * y.
class ActivationForward : public Plan {
 public:
  struct Descriptors {
    const ActivationDescriptor& activation;
    const TensorDescriptor& x;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    Out y;
  };

  ActivationForward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateActivationForwardPlan(handle.get(), d.activation.get(), d.x.get(),
                                                     d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteActivationForward(handle.get(), get(), s.alpha, o.x.at("x", x_), s.beta,
                                       o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.y));
    check(kilnActivationForward(handle.get(), d.activation.get(), s.alpha, d.x.get(),
                                o.x.at("x", d.x.extent()), s.beta, d.y.get(),
                                o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, y_;
};

// dx = alpha * f'(x) * dy + beta * dx, from y or from x, as f is; the other may be left out.
class ActivationBackward : public Plan {
 public:
  struct Descriptors {
    const ActivationDescriptor& activation;
    const TensorDescriptor* y = nullptr;
    const TensorDescriptor& dy;
    const TensorDescriptor* x = nullptr;
    const TensorDescriptor& dx;
  };
  struct Operands {
    In y{};
    In dy;
    In x{};
    Out dx;
  };

  ActivationBackward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateActivationBackwardPlan(handle.get(), d.activation.get(),
                                                      detail::get(d.y), d.dy.get(),
                                                      detail::get(d.x), d.dx.get(), plan);
            },
            d.dx),
        y_(detail::extent(d.y)),
        dy_(d.dy.extent()),
        x_(detail::extent(d.x)),
        dx_(d.dx.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteActivationBackward(handle.get(), get(), s.alpha, o.y.at("y", y_),
                                        o.dy.at("dy", dy_), o.x.at("x", x_), s.beta,
                                        o.dx.at("dx", dx_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.dx));
    check(kilnActivationBackward(handle.get(), d.activation.get(), s.alpha, detail::get(d.y),
                                 o.y.at("y", detail::extent(d.y)), d.dy.get(),
                                 o.dy.at("dy", d.dy.extent()), detail::get(d.x),
                                 o.x.at("x", detail::extent(d.x)), s.beta, d.dx.get(),
                                 o.dx.at("dx", d.dx.extent())));
  }

 private:
  Extent y_, dy_, x_, dx_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_ACTIVATION_HPP
