// Divisors that come with the launch, of any value at all: with t = mulhi(n, multiplier) the
// quotient of n is (((n - t) >> halves) + t) >> shift; of 64 bits, for n below 2^63, it is mulhi(2
// n, multiplier) >> shift. Shared by host code and kernels.
#pragma once

struct LateDivisor {
  unsigned divisor, multiplier, halves, shift;
};
struct LateWideDivisor {
  unsigned long long divisor, multiplier;
  unsigned shift, unused;
};
