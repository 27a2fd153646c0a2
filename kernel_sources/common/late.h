// Late divisors: the launch passes them, and they may have any value. With t = mulhi(n,
// multiplier), the 32-bit quotient is (((n - t) >> halves) + t) >> shift. The 64-bit quotient, for
// n below 2^63, is mulhi(2 n, multiplier) >> shift. Shared by host code and kernels.
#pragma once

struct LateDivisor {
  unsigned divisor, multiplier, halves, shift;
};
struct LateWideDivisor {
  unsigned long long divisor, multiplier;
  unsigned shift, unused;
};
