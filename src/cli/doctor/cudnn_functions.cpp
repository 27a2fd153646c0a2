#include "cli/doctor/cudnn_functions.hpp"

#include <algorithm>
#include <vector>

namespace kiln::cli {
namespace {

// The lists from which Kiln's cuDNN library is built call one of these macros for each function.
#define KILN_SERVED(name) {#name, Service::served, ""},
#define KILN_REFUSED(name, parameters, what) {#name, Service::forwarded, "Kiln has no " what},
#define KILN_REFUSED_WRITING(name, parameters, what, ...) KILN_REFUSED(name, parameters, what)
#define KILN_REFUSED_BY_HAND(name, parameters, what) KILN_REFUSED(name, parameters, what)
#define KILN_REFUSED_ALWAYS(name, parameters, what) {#name, Service::refused, "Kiln has no " what},
#define KILN_UNDECLARED(name, what) {#name, Service::refused, "Kiln has no " what},
constexpr CudnnFunction unsorted[] = {
#include "cudnn/forward/refused.def"
#include "cudnn/served.def"
};

std::vector<CudnnFunction> sorted_by_name() {
  std::vector<CudnnFunction> all(std::begin(unsorted), std::end(unsorted));
  std::ranges::sort(all, {}, &CudnnFunction::name);
  return all;
}

}  // namespace

const std::vector<CudnnFunction>& cudnn_functions() {
  static const std::vector<CudnnFunction> all = sorted_by_name();
  return all;
}

const CudnnFunction* cudnn_function(std::string_view name) {
  const std::vector<CudnnFunction>& all = cudnn_functions();
  const auto found = std::ranges::lower_bound(all, name, {}, &CudnnFunction::name);
  return found != all.end() && found->name == name ? &*found : nullptr;
}

}  // namespace kiln::cli
