// The products of a dense filter gradient's consumer warpgroups.
#pragma once

#include "conv/dense/wgrad/stages.cuh"
#include "target/sum_registers.cuh"
#include "target/wgmma.cuh"

// The tensor cores round sums toward zero, so every PROMOTE steps (a run) the accumulators are
// promoted: added to totals in f32. The totals are in local memory or, for 3xTF32, whose runs are
// short, in registers.
using Sums = SumRegisters<float, LEFT, PRODUCTS_A_ROW, SPLIT, !SPLIT>;
using Products = WarpgroupProducts<element_t, LEFT, PRODUCTS_A_ROW>;

// Steps for which wgmma reads both operands where TMA has put them. It transposes 16-bit operands
// of channels-last tensors.
class TransposedSteps {
  Barriers& barriers_;
  SharedMatrix lefts_, rights_;
  Products products_;
  Ring<STAGES> ring_{0};
  int before_ = -1;  // the stage of the previous step, whose products may still be running

 public:
  device_inline TransposedSteps(unsigned char* memory, Barriers& barriers, int group)
      : barriers_(barriers),
        lefts_(SharedMatrix::swizzled<LINE_BYTES>(memory + group * (LEFT * LEFT_OPERAND),
                                                  8 * LINE_BYTES, SLAB_BYTES)),
        rights_(SharedMatrix::swizzled<LINE_BYTES>(memory + LEFT_SLABS * SLAB_BYTES, 8 * LINE_BYTES,
                                                   SLAB_BYTES)) {}

  device_inline void start_run() {}
  // Starts the products of the next step; tail: only those of PLANE_TAIL pixels.
  template <class AnySums>
  device_inline void multiply(AnySums& sums, bool tail) {
    barriers_.landed[ring_.stage].wait(ring_.parity);
    const SharedMatrix left = lefts_.moved(ring_.stage * STAGE_BYTES);
    const SharedMatrix right = rights_.moved(ring_.stage * STAGE_BYTES);
    products_.begin();
    if (PLANE_TAIL > 0 && tail)
      multiply_pixels<PLANE_TAIL>(sums, left, right);
    else
      multiply_pixels<STEP_PIXELS>(sums, left, right);
    products_.commit();
    products_.template wait<1>();
    release();
    before_ = ring_.stage;
    ring_.advance();
  }
  // Waits until the sums include all steps so far. There must have been at least one.
  device_inline void settle() {
    products_.template wait<0>();
    release();
    before_ = -1;
  }

 private:
  static constexpr bool LEFT_PLANAR = PLANAR || DY_PLANAR;
  static constexpr int LEFT_OPERAND = LEFT_PLANAR ? 64 * LINE_BYTES : SLAB_BYTES;

  template <int PIXELS, class AnySums>
  device_inline void multiply_pixels(AnySums& sums, const SharedMatrix& left,
                                     const SharedMatrix& right) {
#pragma unroll
    for (int k = 0; k < PIXELS * static_cast<int>(sizeof(element_t)) / 32; ++k)
      multiply_from<0>(sums, left.moved(k * (LEFT_PLANAR ? 32 : 16 * LINE_BYTES)),
                       right.moved(k * (PLANAR ? 32 : 16 * LINE_BYTES)));
  }
  template <int L, class AnySums>
  device_inline void multiply_from(AnySums& sums, const SharedMatrix& left,
                                   const SharedMatrix& right) {
    products_.template multiply_swizzled<!LEFT_PLANAR, !PLANAR, L>(
        sums, left.moved(L * LEFT_OPERAND), right, true);
    if constexpr (L + 1 < LEFT) multiply_from<L + 1>(sums, left, right);
  }
  device_inline void release() {
    if (thread_x() % 32 == 0 && before_ >= 0) barriers_.free[before_].arrive();
  }
};
