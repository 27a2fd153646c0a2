// Plans of kiln.hpp: operations on whole tensors.
#ifndef KILN_TENSOR_OPERATIONS_HPP
#define KILN_TENSOR_OPERATIONS_HPP

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// y = alpha * x + beta * y, between any strides and any types.
class TransformTensor : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    Out y;
  };

  TransformTensor(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateTransformTensorPlan(handle.get(), d.x.get(), d.y.get(), plan);
            },
            d.x, d.y),
        x_(d.x.extent()),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteTransformTensor(handle.get(), get(), s.alpha, o.x.at("x", x_), s.beta,
                                     o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.x, d.y));
    check(kilnTransformTensor(handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), s.beta,
                              d.y.get(), o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, y_;
};

// y = alpha * x + beta * y, x broadcast where its size is 1.
class AddTensor : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& x;
    const TensorDescriptor& y;
  };
  struct Operands {
    In x;
    Out y;
  };

  AddTensor(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateAddTensorPlan(handle.get(), d.x.get(), d.y.get(), plan);
            },
            d.y),
        x_(d.x.extent()),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteAddTensor(handle.get(), get(), s.alpha, o.x.at("x", x_), s.beta,
                               o.y.at("y", y_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.y));
    check(kilnAddTensor(handle.get(), s.alpha, d.x.get(), o.x.at("x", d.x.extent()), s.beta,
                        d.y.get(), o.y.at("y", d.y.extent())));
  }

 private:
  Extent x_, y_;
};

// y = value.
class SetTensor : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& y;
  };
  struct Operands {
    Out y;
  };

  SetTensor(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateSetTensorPlan(handle.get(), d.y.get(), plan);
            },
            d.y),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, Scalar value) const {
    check(kilnExecuteSetTensor(handle.get(), get(), o.y.at("y", y_),
                               detail::HostScalar(value, compute_type())));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o, Scalar value) {
    check(kilnSetTensor(handle.get(), d.y.get(), o.y.at("y", d.y.extent()),
                        detail::HostScalar(value, detail::compute_type_of(d.y))));
  }

 private:
  Extent y_;
};

// y = alpha * y.
class ScaleTensor : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& y;
  };
  struct Operands {
    Out y;
  };

  ScaleTensor(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateScaleTensorPlan(handle.get(), d.y.get(), plan);
            },
            d.y),
        y_(d.y.extent()) {}

  void execute(const Handle& handle, const Operands& o, Scalar alpha) const {
    check(kilnExecuteScaleTensor(handle.get(), get(), o.y.at("y", y_),
                                 detail::HostScalar(alpha, compute_type())));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o, Scalar alpha) {
    check(kilnScaleTensor(handle.get(), d.y.get(), o.y.at("y", d.y.extent()),
                          detail::HostScalar(alpha, detail::compute_type_of(d.y))));
  }

 private:
  Extent y_;
};

struct BinaryScale {
  Scalar alpha1 = 1, alpha2 = 1, beta = 0;
};

// c = op(alpha1 * a, alpha2 * b) + beta * c, a and b broadcast where their size is 1.
class OpTensor : public Plan {
 public:
  struct Descriptors {
    kilnOpTensorOp_t op;
    const TensorDescriptor& a;
    const TensorDescriptor& b;
    const TensorDescriptor& c;
  };
  struct Operands {
    In a;
    In b;
    Out c;
  };
  OpTensor(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateOpTensorPlan(handle.get(), d.op, d.a.get(), d.b.get(), d.c.get(),
                                            plan);
            },
            d.c),
        a_(d.a.extent()),
        b_(d.b.extent()),
        c_(d.c.extent()) {}

  void execute(const Handle& handle, const Operands& o, const BinaryScale& scalars = {}) const {
    check(kilnExecuteOpTensor(handle.get(), get(),
                              detail::HostScalar(scalars.alpha1, compute_type()), o.a.at("a", a_),
                              detail::HostScalar(scalars.alpha2, compute_type()), o.b.at("b", b_),
                              detail::HostScalar(scalars.beta, compute_type()), o.c.at("c", c_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const BinaryScale& scalars = {}) {
    check(kilnOpTensor(
        handle.get(), d.op, detail::HostScalar(scalars.alpha1, detail::compute_type_of(d.c)),
        d.a.get(), o.a.at("a", d.a.extent()),
        detail::HostScalar(scalars.alpha2, detail::compute_type_of(d.c)), d.b.get(),
        o.b.at("b", d.b.extent()), detail::HostScalar(scalars.beta, detail::compute_type_of(d.c)),
        d.c.get(), o.c.at("c", d.c.extent())));
  }

 private:
  Extent a_, b_, c_;
};

// c = alpha * reduce(a) + beta * c, over every dimension in which c has size 1.
class ReduceTensor : public Plan {
 public:
  struct Descriptors {
    kilnReduceTensorOp_t op;
    const TensorDescriptor& a;
    const TensorDescriptor& c;
  };
  struct Operands {
    In a;
    Out c;
  };

  ReduceTensor(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateReduceTensorPlan(handle.get(), d.op, d.a.get(), d.c.get(), plan);
            },
            d.c),
        a_(d.a.extent()),
        c_(d.c.extent()) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    check(kilnExecuteReduceTensor(handle.get(), get(), s.alpha, o.a.at("a", a_), s.beta,
                                  o.c.at("c", c_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.c));
    check(kilnReduceTensor(handle.get(), d.op, s.alpha, d.a.get(), o.a.at("a", d.a.extent()),
                           s.beta, d.c.get(), o.c.at("c", d.c.extent())));
  }

 private:
  Extent a_, c_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_TENSOR_OPERATIONS_HPP
