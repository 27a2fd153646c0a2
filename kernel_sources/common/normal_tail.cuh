// The tail of the normal distribution divided by exp(-x^2 / 2).
#pragma once

#include "common/two_parts.cuh"
#include "target/math.cuh"

// M(x) = (1 - Phi(x)) exp(x^2 / 2) for x >= 0, where Phi is the cumulative normal distribution.
// This is Mills' ratio divided by sqrt(2 pi). It is computed as t P(t - 1/2) with t = 1 / (1 + STEP
// x) and a polynomial P.
template <class T>
struct MillsStep;
template <>
struct MillsStep<float> {
  static constexpr float STEP = 0.296875f;  // allows a polynomial of one degree less
};
template <>
struct MillsStep<double> {
  static constexpr double STEP = 0.25;
};
device_inline float mills_polynomial(float s) {  // 0 <= x <= 15; relative error 2^-28.4 (Remez)
  float p = -0.020307363799324892f;
  p = math_fma(p, s, 0.022722595219416345f);
  p = math_fma(p, s, 0.032828442647037535f);
  p = math_fma(p, s, -0.041699958904945227f);
  p = math_fma(p, s, -0.074779130484952173f);
  p = math_fma(p, s, 0.039376336809503395f);
  p = math_fma(p, s, 0.231465483668641643f);
  p = math_fma(p, s, 0.349477221846785940f);
  p = math_fma(p, s, 0.327931341959313817f);
  return math_fma(p, s, 0.219953658183354305f);
}
device_inline double mills_polynomial(double s) {  // 0 <= x <= 39; 2^-57.8 (Chebyshev nodes)
  double p = 0.0015230398230240070041;
  p = math_fma(p, s, -0.0026446129611439588365);
  p = math_fma(p, s, -0.0010057296224574978196);
  p = math_fma(p, s, 0.0051431632696391918525);
  p = math_fma(p, s, -0.0017407407275783392911);
  p = math_fma(p, s, -0.0055973260923274035055);
  p = math_fma(p, s, 0.0050778904140996445694);
  p = math_fma(p, s, 0.0044532454133912102121);
  p = math_fma(p, s, -0.0083685706727104637621);
  p = math_fma(p, s, -0.0025792371121421612359);
  p = math_fma(p, s, 0.012124514965536978774);
  p = math_fma(p, s, 0.00073386631631063359347);
  p = math_fma(p, s, -0.017994079259137773036);
  p = math_fma(p, s, -0.00048851417082199887576);
  p = math_fma(p, s, 0.029580151701690753846);
  p = math_fma(p, s, 0.0085340359942173271406);
  p = math_fma(p, s, -0.052186190642838438116);
  p = math_fma(p, s, -0.055675077878297522407);
  p = math_fma(p, s, 0.060321511733814332598);
  p = math_fma(p, s, 0.24158629956374624275);
  p = math_fma(p, s, 0.3730437159193144936);
  p = math_fma(p, s, 0.38713740074221454099);
  p = math_fma(p, s, 0.30394832098594605379);
  return math_fma(p, s, 0.18882128260393787332);
}

// M(x); the error is a fraction of a unit in the last place of `high`.
template <class T>
device_inline TwoParts<T> mills_ratio(T x) {
  constexpr T STEP = MillsStep<T>::STEP;
  const T d = math_fma(x, STEP, T(1)), r = math_fast_reciprocal(d);
  // The rounding error of d; together with the fused product below, it corrects the reciprocal.
  const T lost = math_fma(x, STEP, math_add(T(1), -d));
  const T t = math_fma(r, math_fma(-r, lost, math_fma(-r, d, T(1))), r);
  return product_of(t, mills_polynomial(math_add(t, T(-0.5))));
}

// x M(x), computed as u P(1/2 - STEP u) with u = x / (1 + STEP x). Both factors are accurate to
// about a unit in the last place.
template <class T>
device_inline TwoParts<T> times_mills_ratio(T x) {
  constexpr T STEP = MillsStep<T>::STEP;
  const T d = math_fma(x, STEP, T(1)), r = math_fast_reciprocal(d), near = math_mul(x, r);
  const T u = math_fma(r, math_fma(-d, near, x), near);
  return product_of(u, mills_polynomial(math_fma(u, -STEP, T(0.5))));
}

// M(x) for 0 <= x <= 15 with a relative error of 3.6e-5, in fewer operations; fitted by iterated
// weighted least squares.
template <class T>
device_inline T brief_mills_ratio(T x) {
  const T t = math_fast_reciprocal(T(1) + T(0.38) * x);
  return t * (T(0.15122586895700313) +
              t * (T(0.157823064770614) +
                   t * (T(0.09200010296940496) +
                        t * (T(0.1888489610396365) - t * T(0.08991516459093045)))));
}
