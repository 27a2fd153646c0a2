// The epilogue of gathers of one phase whose source TMA loads.
#pragma once

#include "conv/geometry/boxed_gather_params.h"
#include "conv/store/epilogue.cuh"

// For outputs from the first image and the first group on.
device_inline Epilogue boxed_epilogue(const BoxedGatherParams& params) {
  Epilogue epilogue;
  epilogue.out = static_cast<output_t*>(params.common.out) + OUT_FIRST[0];
  epilogue.z = static_cast<const output_t*>(params.common.z) + OUT_FIRST[0];
  epilogue.bias = static_cast<const output_t*>(params.common.bias);
  epilogue.alpha = static_cast<compute_t>(params.common.alpha);
  epilogue.beta = static_cast<compute_t>(params.common.beta);
  epilogue.coef = coefficients_of<compute_t>(params.common);
  return epilogue;
}
