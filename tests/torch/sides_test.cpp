// Kiln's own convolution operators with padding that differs before and after, and into a part of a
// tensor, against a PyTorch that is not there and sums by definition in double precision.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "called.hpp"

using fake::Tensor;
using kiln::torch::Value;
using namespace test;

BOOST_AUTO_TEST_SUITE(sides)

namespace {

constexpr std::int64_t images = 2, in = 3, out = 4, height = 5, width = 4, taps_h = 3, taps_w = 2;
constexpr std::int64_t above = 2, left = 0, below = 0, right = 1;  // of padding
constexpr std::int64_t out_h = height + above + below - taps_h + 1,
                       out_w = width + left + right - taps_w + 1;

float& at(const Tensor& t, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return t.data<float>()[n * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3]];
}

void put_geometry(std::vector<Value>& stack) {
  stack.push_back(fake::give_list({1, 1}));
  stack.push_back(fake::give_list({above, left, below, right}));
  stack.push_back(fake::give_list({1, 1}));
  stack.push_back(0);
  stack.push_back(fake::give_list({0, 0}));
  stack.push_back(1);
}

void put_forward(std::vector<Value>& stack, const Tensor& x, const Tensor& w) {
  stack.insert(stack.end(), {fake::give(x), fake::give(w), 0, 0});
  put_geometry(stack);
  stack.push_back(700);
  stack.push_back(number(0));
}

// visit(n, k, c, p, q, y, x, r, s) for every product.
template <class Visit>
void every_product(Visit visit) {
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t k = 0; k < out; ++k)
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t p = 0; p < out_h; ++p)
          for (std::int64_t q = 0; q < out_w; ++q)
            for (std::int64_t r = 0; r < taps_h; ++r)
              for (std::int64_t s = 0; s < taps_w; ++s)
                if (const std::int64_t y = p - above + r, x = q - left + s;
                    y >= 0 && x >= 0 && y < height && x < width)
                  visit(n, k, c, p, q, y, x, r, s);
}

using Sums = std::vector<double>;  // NCHW, dense
Sums zeros(const std::vector<std::int64_t>& sizes) {
  return Sums(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]));
}
double& flat(Sums& sums, const std::vector<std::int64_t>& sizes, std::int64_t n, std::int64_t c,
             std::int64_t h, std::int64_t w) {
  return sums[static_cast<std::size_t>(((n * sizes[1] + c) * sizes[2] + h) * sizes[3] + w)];
}

void check_close(const Tensor& got, Sums& want) {
  for (std::int64_t n = 0; n < got.sizes[0]; ++n)
    for (std::int64_t c = 0; c < got.sizes[1]; ++c)
      for (std::int64_t h = 0; h < got.sizes[2]; ++h)
        for (std::int64_t w = 0; w < got.sizes[3]; ++w) {
          const double expected = flat(want, got.sizes, n, c, h, w);
          BOOST_REQUIRE_SMALL(at(got, n, c, h, w) - expected, 1e-4 * (1 + std::abs(expected)));
        }
}

Sums result_of(const Tensor& x, const Tensor& w, const std::vector<std::int64_t>& sizes) {
  Sums sums = zeros(sizes);
  every_product([&](auto n, auto k, auto c, auto p, auto q, auto y, auto v, auto r, auto s) {
    flat(sums, sizes, n, k, p, q) += double{at(x, n, c, y, v)} * double{at(w, k, c, r, s)};
  });
  return sums;
}

const std::vector<std::int64_t> y_sizes{images, out, out_h, out_w};

}  // namespace

BOOST_AUTO_TEST_CASE(result_and_gradients) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  const Tensor x = random({images, in, height, width}), w = random({out, in, taps_h, taps_w});
  std::vector<Value> forward;
  put_forward(forward, x, w);
  call("convolution_bias_activation", forward, 1);
  const Tensor y = fake::take(forward[0]);
  BOOST_REQUIRE(y.sizes == y_sizes);
  Sums want = result_of(x, w, y_sizes);
  check_close(y, want);

  const Tensor dy = random(y_sizes);
  std::vector<Value> backward{fake::give(dy), fake::give(x), fake::give(w), 0};
  put_geometry(backward);
  backward.push_back(fake::give_list({1, 1, 0}));
  call("convolution_backward", backward, 3);
  const Tensor dx = fake::take(backward[0]), dw = fake::take(backward[1]);
  BOOST_CHECK(!fake::take(backward[2]).defined);
  Sums of_x = zeros(x.sizes), of_w = zeros(w.sizes);
  every_product([&](auto n, auto k, auto c, auto p, auto q, auto h, auto v, auto r, auto s) {
    const double d = at(dy, n, k, p, q);
    flat(of_x, x.sizes, n, c, h, v) += d * double{at(w, k, c, r, s)};
    flat(of_w, w.sizes, k, c, r, s) += d * double{at(x, n, c, h, v)};
  });
  check_close(dx, of_x);
  check_close(dw, of_w);
}

// Into some rows of a tensor, of which the others keep what they held.
BOOST_AUTO_TEST_CASE(into_a_part_of_a_tensor) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  const Tensor x = random({images, in, height, width}), w = random({out, in, taps_h, taps_w});
  const Tensor whole = fake::make({images, out, out_h + 3, out_w}, true);
  std::fill_n(whole.data<float>(), images * out * (out_h + 3) * out_w, 7.0F);
  Tensor part = whole;
  part.sizes[2] = out_h;
  part.offset += 2 * whole.strides[2] * std::int64_t{sizeof(float)};
  std::vector<Value> stack{fake::give(part)};
  put_forward(stack, x, w);
  call("convolution_into", stack, 0);
  Sums want = result_of(x, w, y_sizes);
  check_close(part, want);
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t c = 0; c < out; ++c)
      for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, out_h + 2})
        for (std::int64_t v = 0; v < out_w; ++v) BOOST_CHECK_EQUAL(at(whole, n, c, row, v), 7.0F);
}

BOOST_AUTO_TEST_SUITE_END()
