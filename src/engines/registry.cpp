// The engines in the order in which they are asked; nothing legal is left after the last.
#include "engines/direct.hpp"
#include "engines/engine.hpp"
#include "engines/implicit_gemm_fma.hpp"

namespace kiln {

std::span<const Engine* const> engines() {
  static const ImplicitGemmFmaEngine implicit_gemm_fma;
  static const DirectEngine direct;
  static const Engine* const list[] = {&implicit_gemm_fma, &direct};
  return list;
}

}  // namespace kiln
