// Plans of kiln.hpp: convolutions with an epilogue.
#ifndef KILN_CONVOLUTION_EPILOGUE_HPP
#define KILN_CONVOLUTION_EPILOGUE_HPP

#include <string>
#include <vector>

#include "kiln/plan.hpp"

namespace kiln {
inline namespace cxx {

namespace detail {

// The addresses of an epilogue's tensors, as the C functions take them.
inline std::vector<const void*> addresses_of(const std::vector<In>& operands,
                                             const std::vector<Extent>& extents) {
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "epilogue[" + std::to_string(i) + "]";
    addresses.push_back(operands[i].at(name.c_str(), i < extents.size() ? extents[i] : Extent{}));
  }
  return addresses;
}

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
    std::vector<In> epilogue{};  // of the operations that have a tensor, in the list's order
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
  // At once: the handle keeps the plan.
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

#endif  // KILN_CONVOLUTION_EPILOGUE_HPP
