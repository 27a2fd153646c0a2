// A small two-dimensional convolution with its data and its right answer. The data are small
// integers, so that sums are exact in every order and results can be compared for equality.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "api/objects.hpp"

namespace test {

inline Sizes dense(const Sizes& dims) {
  Sizes strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

struct Geometry {
  std::int64_t n = 2, c = 4, h = 9, w = 8, k = 6, r = 3, s = 2, groups = 2;
  std::array<std::int64_t, 2> pad_before{1, 0}, pad_after{2, 1}, stride{2, 1}, dilation{1, 2};
  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION;
  Sizes x_strides{}, w_strides{}, y_strides{};  // empty: dense

  std::int64_t p() const { return out(h, r, 0); }
  std::int64_t q() const { return out(w, s, 1); }
  Sizes x_dims() const { return {n, c, h, w}; }
  Sizes w_dims() const { return {k, c / groups, r, s}; }
  Sizes y_dims() const { return {n, k, p(), q()}; }

 private:
  std::int64_t out(std::int64_t in, std::int64_t filter, std::size_t i) const {
    return (in + pad_before[i] + pad_after[i] - ((filter - 1) * dilation[i] + 1)) / stride[i] + 1;
  }
};

template <class T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr auto value = KILN_DATA_FLOAT;
};
template <>
struct TypeOf<double> {
  static constexpr auto value = KILN_DATA_DOUBLE;
};

template <class T>
struct Case {
  explicit Case(const Geometry& geometry, unsigned seed = 1)
      : g(geometry),
        x_strides(or_dense(g.x_strides, g.x_dims())),
        w_strides(or_dense(g.w_strides, g.w_dims())),
        y_strides(or_dense(g.y_strides, g.y_dims())),
        x_desc(TypeOf<T>::value, g.x_dims(), x_strides),
        w_desc(TypeOf<T>::value, g.w_dims(), w_strides),
        y_desc(TypeOf<T>::value, g.y_dims(), y_strides),
        convolution({g.pad_before.begin(), g.pad_before.end()},
                    {g.pad_after.begin(), g.pad_after.end()}, {g.stride.begin(), g.stride.end()},
                    {g.dilation.begin(), g.dilation.end()}, g.groups, g.mode, TypeOf<T>::value),
        x(values(g.x_dims(), x_strides, seed)),
        w(values(g.w_dims(), w_strides, seed + 1)),
        y(values(g.y_dims(), y_strides, seed + 2)) {}

  // alpha * conv(x, w) + beta * before, with what lies between the elements of y as it was.
  std::vector<T> expected(T alpha, T beta, std::vector<T> before) const {
    const std::int64_t group_k = g.k / g.groups, group_c = g.c / g.groups;
    for (std::int64_t n = 0; n < g.n; ++n)
      for (std::int64_t k = 0; k < g.k; ++k)
        for (std::int64_t p = 0; p < g.p(); ++p)
          for (std::int64_t q = 0; q < g.q(); ++q) {
            T sum = 0;
            for (std::int64_t c = 0; c < group_c; ++c)
              for (std::int64_t r = 0; r < g.r; ++r)
                for (std::int64_t s = 0; s < g.s; ++s) {
                  const std::int64_t row = p * g.stride[0] - g.pad_before[0] + r * g.dilation[0];
                  const std::int64_t column = q * g.stride[1] - g.pad_before[1] + s * g.dilation[1];
                  if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
                  const bool flip = g.mode == KILN_CONVOLUTION;
                  sum += x[at(x_strides, n, k / group_k * group_c + c, row, column)] *
                         w[at(w_strides, k, c, flip ? g.r - 1 - r : r, flip ? g.s - 1 - s : s)];
                }
            T& out = before[at(y_strides, n, k, p, q)];
            out = alpha * sum + (beta == 0 ? 0 : beta * out);
          }
    return before;
  }

  Geometry g;
  Sizes x_strides, w_strides, y_strides;
  TensorDesc x_desc;
  FilterDesc w_desc;
  TensorDesc y_desc;
  ConvolutionDesc convolution;
  std::vector<T> x, w, y;

 private:
  static Sizes or_dense(const Sizes& strides, const Sizes& dims) {
    return strides.empty() ? dense(dims) : strides;
  }
  static std::size_t at(const Sizes& strides, std::int64_t a, std::int64_t b, std::int64_t c,
                        std::int64_t d) {
    return static_cast<std::size_t>(a * strides[0] + b * strides[1] + c * strides[2] +
                                    d * strides[3]);
  }
  static std::vector<T> values(const Sizes& dims, const Sizes& strides, unsigned seed) {
    std::int64_t span = 1;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 0) return {};
      span += (dims[i] - 1) * strides[i];
    }
    std::vector<T> out(static_cast<std::size_t>(span));
    for (T& value : out) {
      seed = seed * 1664525u + 1013904223u;
      value = static_cast<T>(static_cast<int>(seed >> 29) - 3);
    }
    return out;
  }
};

}  // namespace test
