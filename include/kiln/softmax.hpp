// Plans of kiln.hpp: softmax and its gradient.
#ifndef KILN_SOFTMAX_HPP
#define KILN_SOFTMAX_HPP

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// y = alpha * softmax(x) + beta * y, or of its logarithm.
class SoftmaxForward : public Plan {
 public:
  struct Descriptors {
    kilnSoftmaxAlgorithm_t algorithm = KILN_SOFTMAX_ACCURATE;
    kilnSoftmaxMode_t mode = KILN_SOFTMAX_MODE_CHANNEL;
    const TensorDescriptor& x;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    Out y;
  };

  SoftmaxForward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateSoftmaxForwardPlan(handle.get(), d.algorithm, d.mode, d.x.get(),
                                                  d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteSoftmaxForward(handle.get(), get(), s.alpha, o.x.at("x", x_), s.beta,
                                    o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.y));
    check(kilnSoftmaxForward(handle.get(), d.algorithm, d.mode, s.alpha, d.x.get(),
                             o.x.at("x", d.x.extent()), s.beta, d.y.get(),
                             o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, y_;
};

// dx = alpha * (gradient of sum(dy * softmax(x)) with respect to x) + beta * dx, from y.
class SoftmaxBackward : public Plan {
 public:
  struct Descriptors {
    kilnSoftmaxAlgorithm_t algorithm = KILN_SOFTMAX_ACCURATE;
    kilnSoftmaxMode_t mode = KILN_SOFTMAX_MODE_CHANNEL;
    const TensorDescriptor& y;
    const TensorDescriptor& dy;
    const TensorDescriptor& dx;
  };
  struct Operands {
    In y;
    In dy;
    Out dx;
  };

  SoftmaxBackward(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateSoftmaxBackwardPlan(handle.get(), d.algorithm, d.mode, d.y.get(),
                                                   d.dy.get(), d.dx.get(), plan);
            },
            d.dx),
        y_(d.y.extent()),
        dy_(d.dy.extent()),
        dx_(d.dx.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteSoftmaxBackward(handle.get(), get(), s.alpha, o.y.at("y", y_),
                                     o.dy.at("dy", dy_), s.beta, o.dx.at("dx", dx_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.dx));
    check(kilnSoftmaxBackward(handle.get(), d.algorithm, d.mode, s.alpha, d.y.get(),
                              o.y.at("y", d.y.extent()), d.dy.get(), o.dy.at("dy", d.dy.extent()),
                              s.beta, d.dx.get(), o.dx.at("dx", d.dx.extent())));
  }

 private:
  Extent y_, dy_, dx_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_SOFTMAX_HPP
