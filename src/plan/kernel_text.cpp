#include "plan/kernel_text.hpp"

#include <utility>

#include "codegen/source.hpp"
#include "core/text.hpp"

namespace kiln {

KernelText kernel_text(const KernelSpec& spec, kilnDeviceKind_t kind, const std::string& arch) {
  std::string source = generate_source(spec, kind), why_not;
  const bool cuda = kind == KILN_DEVICE_CUDA;
  auto compiler = cuda ? find_nvrtc(why_not) : find_host_compiler(why_not);
  auto options = cuda ? nvrtc_options(arch, spec.quick_assembly) : host_compiler_options();
  cache::Key key({{"source", source}, {"options", join(options, " ")}, {"architecture", arch}},
                 compiler ? compiler->identity() : "");
  return {std::move(source), std::move(options), std::move(compiler), std::move(why_not),
          std::move(key)};
}

}  // namespace kiln
