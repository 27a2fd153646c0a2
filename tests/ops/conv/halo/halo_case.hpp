// The halo engines, each with its layout and the arithmetics that it supports.
#pragma once

#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

namespace test {

struct EngineOfLayout {
  const RecipeEngine<HaloMmaTile>* halo;
  kilnTensorFormat_t layout;
  enum { ANY, WITH_F64, F32, SPLIT } types = ANY;

  const char* name() const { return halo->name(); }
  bool is_for(const Arithmetic& arithmetic) const {
    const bool f32 = arithmetic.type == KILN_DATA_FLOAT;
    if (types == SPLIT) return f32 && arithmetic.math == KILN_MATH_DEFAULT;
    if (types == ANY) return arithmetic.type != KILN_DATA_DOUBLE;
    return types == WITH_F64 || f32;
  }
  // The arithmetics that the engine supports.
  std::vector<Arithmetic> all_arithmetics() const {
    std::vector<Arithmetic> all;
    for (const Arithmetic& arithmetic : with_f64)
      if (is_for(arithmetic)) all.push_back(arithmetic);
    return all;
  }
};

inline const RecipeEngine channels_last(::kiln::halo_nhwc_mma);
inline const RecipeEngine planar(::kiln::halo_nchw_mma);
inline const RecipeEngine channels_last_by_warpgroups(::kiln::halo_nhwc_wgmma_swap);
inline const RecipeEngine planar_by_warpgroups(::kiln::halo_nchw_wgmma_swap);

// The engines that the device supports.
inline std::vector<EngineOfLayout> all_engines() {
  std::vector<EngineOfLayout> all = {{&channels_last, KILN_TENSOR_NHWC},
                                     {&planar, KILN_TENSOR_NCHW, EngineOfLayout::WITH_F64}};
  if (has_warpgroups()) {
    all.push_back({&channels_last_by_warpgroups, KILN_TENSOR_NHWC, EngineOfLayout::SPLIT});
    all.push_back({&planar_by_warpgroups, KILN_TENSOR_NCHW, EngineOfLayout::F32});
  }
  return all;
}

inline ConvolutionProblem halo_problem(const char* line, const EngineOfLayout& engine,
                                       const Arithmetic& arithmetic,
                                       ConvolutionPass pass = ConvolutionPass::fprop,
                                       kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, arithmetic, engine.layout, pass, mode);
}

}  // namespace test
