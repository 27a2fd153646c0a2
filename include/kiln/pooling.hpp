// Plans of kiln.hpp: pooling and its gradient.
#ifndef KILN_POOLING_HPP
#define KILN_POOLING_HPP

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// y = alpha * pool(x) + beta * y.
class PoolingForward : public Plan {
 public:
  struct Descriptors {
    const PoolingDescriptor& pooling;
    const TensorDescriptor& x;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    Out y;
  };

  PoolingForward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreatePoolingForwardPlan(handle.get(), d.pooling.get(), d.x.get(),
                                                  d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecutePoolingForward(handle.get(), get(), s.alpha, o.x.at("x", x_), s.beta,
                                    o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.y));
    check(kilnPoolingForward(handle.get(), d.pooling.get(), s.alpha, d.x.get(),
                             o.x.at("x", d.x.extent()), s.beta, d.y.get(),
                             o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, y_;
};

// dx = alpha * (gradient of sum(dy * pool(x)) with respect to x) + beta * dx; x for a
// maximum alone.
class PoolingBackward : public Plan {
 public:
  struct Descriptors {
    const PoolingDescriptor& pooling;
    const TensorDescriptor& dy;
    const TensorDescriptor* x = nullptr;
    const TensorDescriptor& dx;
  };
  struct Operands {
    In dy;
    In x{};
    Out dx;
  };

  PoolingBackward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreatePoolingBackwardPlan(handle.get(), d.pooling.get(), d.dy.get(),
                                                   detail::get(d.x), d.dx.get(), plan);
            },
            d.dx),
        dy_(d.dy.extent()),
        x_(detail::extent(d.x)),
        dx_(d.dx.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecutePoolingBackward(handle.get(), get(), s.alpha, o.dy.at("dy", dy_),
                                     o.x.at("x", x_), s.beta, o.dx.at("dx", dx_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.dx));
    check(kilnPoolingBackward(handle.get(), d.pooling.get(), s.alpha, d.dy.get(),
                              o.dy.at("dy", d.dy.extent()), detail::get(d.x),
                              o.x.at("x", detail::extent(d.x)), s.beta, d.dx.get(),
                              o.dx.at("dx", d.dx.extent())));
  }

 private:
  Extent dy_, x_, dx_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_POOLING_HPP
