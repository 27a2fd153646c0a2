// The addresses of a pixel in the output and in the residual.
#pragma once

#include "target/kernel.cuh"

struct Pixel {  // a pixel of the output
  int image, o, p, q;
};

device_inline out_offset_t output_offset(Pixel pixel) {
  return static_cast<out_offset_t>(pixel.image) * OUT_STRIDE_N +
         static_cast<out_offset_t>(pixel.o) * OUT_STRIDE_O +
         static_cast<out_offset_t>(pixel.p) * OUT_STRIDE_P +
         static_cast<out_offset_t>(pixel.q) * OUT_STRIDE_Q;
}
device_inline out_offset_t residual_offset(Pixel pixel) {
  return static_cast<out_offset_t>(pixel.image) * Z_STRIDE_N +
         static_cast<out_offset_t>(pixel.o) * Z_STRIDE_O +
         static_cast<out_offset_t>(pixel.p) * Z_STRIDE_P +
         static_cast<out_offset_t>(pixel.q) * Z_STRIDE_Q;
}
