// Plans of kiln.hpp: what layers with a filter have in common, whether one filter serves all output
// pixels (convolution.hpp) or each has its own (local.hpp).
#ifndef KILN_FILTER_PLANS_HPP
#define KILN_FILTER_PLANS_HPP

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {
namespace detail {

// y from x and w.
template <class Filter, auto create, auto execute_plan, auto run_at_once>
class FilterForwardPlan : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const Filter& w;
    const ConvolutionDescriptor& convolution;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    In w;
    Out y;
  };

  FilterForwardPlan(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return create(handle.get(), d.x.get(), d.w.get(), d.convolution.get(), d.y.get(),
                            plan);
            },
            d.y),
        x_(d.x.extent()),
        w_(d.w.extent()),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const HostScale s(scale, compute_type());
    check(execute_plan(handle.get(), get(), s.alpha, o.x.at("x", x_), o.w.at("w", w_), s.beta,
                       o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const HostScale s(scale, compute_type_of(d.y));
    check(run_at_once(handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), d.w.get(),
                      o.w.at("w", d.w.extent()), d.convolution.get(), s.beta, d.y.get(),
                      o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, w_, y_;
};

// dx from w and dy.
template <class Filter, auto create, auto execute_plan, auto run_at_once>
class FilterBackwardDataPlan : public Plan {
 public:
  struct Descriptors {
    const Filter& w;
    const TensorDescriptor& dy;
    const ConvolutionDescriptor& convolution;
    const TensorDescriptor& dx;
  };
  struct Operands {
    In w;
    In dy;
    Out dx;
  };

  FilterBackwardDataPlan(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return create(handle.get(), d.w.get(), d.dy.get(), d.convolution.get(), d.dx.get(),
                            plan);
            },
            d.dx),
        w_(d.w.extent()),
        dy_(d.dy.extent()),
        dx_(d.dx.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const HostScale s(scale, compute_type());
    check(execute_plan(handle.get(), get(), s.alpha, o.w.at("w", w_), o.dy.at("dy", dy_), s.beta,
                       o.dx.at("dx", dx_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const HostScale s(scale, compute_type_of(d.dx));
    check(run_at_once(handle.get(), s.alpha, d.w.get(), o.w.at("w", d.w.extent()), d.dy.get(),
                      o.dy.at("dy", d.dy.extent()), d.convolution.get(), s.beta, d.dx.get(),
                      o.dx.at("dx", d.dx.extent())));
  }

 private:
  Extent w_, dy_, dx_;
};

// dw from x and dy.
template <class Filter, auto create, auto execute_plan, auto run_at_once>
class FilterBackwardFilterPlan : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const TensorDescriptor& dy;
    const ConvolutionDescriptor& convolution;
    const Filter& dw;
  };
  struct Operands {
    In x;
    In dy;
    Out dw;
  };

  FilterBackwardFilterPlan(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return create(handle.get(), d.x.get(), d.dy.get(), d.convolution.get(), d.dw.get(),
                            plan);
            },
            d.dw),
        x_(d.x.extent()),
        dy_(d.dy.extent()),
        dw_(d.dw.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const HostScale s(scale, compute_type());
    check(execute_plan(handle.get(), get(), s.alpha, o.x.at("x", x_), o.dy.at("dy", dy_), s.beta,
                       o.dw.at("dw", dw_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const HostScale s(scale, compute_type_of(d.dw));
    check(run_at_once(handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), d.dy.get(),
                      o.dy.at("dy", d.dy.extent()), d.convolution.get(), s.beta, d.dw.get(),
                      o.dw.at("dw", d.dw.extent())));
  }

 private:
  Extent x_, dy_, dw_;
};

}  // namespace detail
}  // namespace cxx
}  // namespace kiln

#endif  // KILN_FILTER_PLANS_HPP
