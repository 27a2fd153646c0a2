// Plans of kiln.hpp: products of matrices.
#ifndef KILN_MATMUL_HPP
#define KILN_MATMUL_HPP

#include <vector>

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

// d = epilogue(alpha * a * b); without a residual in the epilogue, beta scales what d held.
class Matmul : public Plan {
 public:
  struct Descriptors {
    const TensorDescriptor& a;
    const TensorDescriptor& b;
    const Epilogue* epilogue = nullptr;
    const TensorDescriptor& d;
    const MatmulDescriptor* matmul = nullptr;
  };
  struct Operands {
    In a;
    In b;
    std::vector<In> epilogue{};  // of the operations, in the list's order
    Out d;
  };

  Matmul(const Handle& handle, const Descriptors& d)
      : Plan(
            [&](kilnPlan_t* plan) {
              return kilnCreateMatmulPlan(handle.get(), detail::get(d.matmul), d.a.get(), d.b.get(),
                                          detail::get(d.epilogue), d.d.get(), plan);
            },
            d.d),
        a_(d.a.extent()),
        b_(d.b.extent()),
        d_(d.d.extent()),
        epilogue_(extents(d)) {}

  void execute(const Handle& handle, const Operands& o, const Scale& scale = {}) const {
    const detail::HostScale s(scale, compute_type());
    const std::vector<const void*> operands = detail::addresses_of(o.epilogue, epilogue_);
    check(kilnExecuteMatmul(handle.get(), get(), s.alpha, o.a.at("a", a_), o.b.at("b", b_), s.beta,
                            static_cast<int>(operands.size()), operands.data(), o.d.at("d", d_)));
  }
  // Immediate call: the handle keeps the plan.
  static void run(const Handle& handle, const Descriptors& d, const Operands& o,
                  const Scale& scale = {}) {
    const detail::HostScale s(scale, detail::compute_type_of(d.d));
    const std::vector<const void*> operands = detail::addresses_of(o.epilogue, extents(d));
    check(kilnMatmul(handle.get(), detail::get(d.matmul), s.alpha, d.a.get(),
                     o.a.at("a", d.a.extent()), d.b.get(), o.b.at("b", d.b.extent()), s.beta,
                     detail::get(d.epilogue), static_cast<int>(operands.size()), operands.data(),
                     d.d.get(), o.d.at("d", d.d.extent())));
  }

 private:
  static std::vector<Extent> extents(const Descriptors& d) {
    return d.epilogue != nullptr ? d.epilogue->extents() : std::vector<Extent>{};
  }

  Extent a_, b_, d_;
  std::vector<Extent> epilogue_;
};

}  // namespace cxx
}  // namespace kiln

#endif  // KILN_MATMUL_HPP
