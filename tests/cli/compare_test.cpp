// Tests the comparison behind `kiln conv --check`: it must accept rounding errors and nothing more.
#include "cli/operation/compare.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "cli/operation/random_fill.hpp"
#include "problem/line/problem_line.hpp"
#include "problem/problem.hpp"
#include "reference/element.hpp"

using kiln::ConvolutionProblem;
using kiln::Operand;
using kiln::Scalars;
using namespace kiln::cli;  // NOLINT(google-build-using-namespace)

namespace {

using Bytes = std::vector<std::byte>;

Operand x_of(const ConvolutionProblem& problem) { return operands_of(problem)[0]; }
Operand w_of(const ConvolutionProblem& problem) { return operands_of(problem)[1]; }
Operand y_of(const ConvolutionProblem& problem) { return operands_of(problem)[2]; }

struct Case {
  ConvolutionProblem problem;
  Scalars scaling;
  Bytes x, w, y0, y;

  Comparison compare() const { return kiln::cli::compare(problem, scaling, {x, w, y0}, y, 4); }
};

// The output of a simple kernel: products added one by one in the compute type. `skip` is the flat
// index over c, t, r, s of a product to leave out; negative for none.
template <class T, class Compute>
Case computed(const char* line, kiln::DataType type, Scalars scaling, std::int64_t skip = -1) {
  Case out{make_convolution(kiln::parse_convolution_line(line), type, KILN_TENSOR_NCHW,
                            KILN_CROSS_CORRELATION),
           scaling,
           {},
           {},
           {},
           {}};
  const ConvolutionProblem& p = out.problem;
  out.x = random_operand(x_of(p), type, 1);
  out.w = random_operand(w_of(p), type, 2);
  out.y0 = scaling.beta == 0 ? poisoned_operand(y_of(p), type) : random_operand(y_of(p), type, 3);
  out.y = out.y0;
  const T* const x = reinterpret_cast<const T*>(out.x.data());
  const T* const w = reinterpret_cast<const T*>(out.w.data());
  T* const y = reinterpret_cast<T*>(out.y.data());
  const Operand outputs = y_of(p);
  for (std::int64_t i = 0; i < outputs.count(); ++i) {
    const std::int64_t q = i % p.out[2], row = i / p.out[2] % p.out[1],
                       k = i / p.out_pixels() % p.out_channels,
                       n = i / p.out_pixels() / p.out_channels;
    Compute sum = 0;
    std::int64_t product = 0;
    for (std::int64_t c = 0; c < p.in_channels; ++c) {
      for (std::int64_t r = 0; r < p.filter[1]; ++r) {
        for (std::int64_t s = 0; s < p.filter[2]; ++s) {
          if (product++ == skip) continue;
          const auto a = static_cast<Compute>(kiln::reference::to_double(
              x[n * p.x_strides[0] + c * p.x_strides[1] + (row + r) * p.x_strides[3] + q + s]));
          const auto b = static_cast<Compute>(kiln::reference::to_double(
              w[k * p.w_strides[0] + c * p.w_strides[1] + r * p.w_strides[3] + s]));
          sum = std::fma(a, b, sum);
        }
      }
    }
    T& target = y[outputs.offset(i)];
    Compute value = static_cast<Compute>(scaling.alpha) * sum;
    if (scaling.beta != 0) {
      value += static_cast<Compute>(scaling.beta) *
               static_cast<Compute>(kiln::reference::to_double(target));
    }
    target = kiln::reference::from_double<T>(value);
  }
  return out;
}

// 1728 products an output.
constexpr const char* long_sums = "mb2ic192ih7oc5kh3";

}  // namespace

BOOST_AUTO_TEST_SUITE(compare)

BOOST_AUTO_TEST_CASE(honest_rounding_passes) {
  using kiln::reference::Bfloat16;
  using kiln::reference::Half;
  const Scalars plain, blend{-1.5, 0.75};
  for (const Scalars& scaling : {plain, blend}) {
    for (const Case& passing :
         {computed<float, float>(long_sums, KILN_DATA_FLOAT, scaling),
          computed<double, double>(long_sums, KILN_DATA_DOUBLE, scaling),
          computed<Half, float>(long_sums, KILN_DATA_HALF, scaling),
          computed<Bfloat16, float>(long_sums, KILN_DATA_BFLOAT16, scaling)}) {
      const Comparison result = passing.compare();
      BOOST_TEST(result.passed(), result.complaint());
      BOOST_TEST(result.complaint() == "");
      BOOST_TEST(result.checked == 250);
      BOOST_TEST(result.outputs == 250);
      BOOST_TEST(result.max_bound_share > 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_lost_product_of_thousands_fails) {
  using kiln::reference::Bfloat16;
  using kiln::reference::Half;
  BOOST_TEST(!(computed<float, float>(long_sums, KILN_DATA_FLOAT, {}, 1000).compare().passed()));
  BOOST_TEST(!(computed<double, double>(long_sums, KILN_DATA_DOUBLE, {}, 1000).compare().passed()));
  BOOST_TEST(!(computed<Half, float>(long_sums, KILN_DATA_HALF, {}, 1000).compare().passed()));
  BOOST_TEST(
      !(computed<Bfloat16, float>(long_sums, KILN_DATA_BFLOAT16, {}, 1000).compare().passed()));
}

BOOST_AUTO_TEST_CASE(single_precision_sums_fail_as_double) {
  BOOST_TEST(!(computed<double, float>(long_sums, KILN_DATA_DOUBLE, {}).compare().passed()));
}

BOOST_AUTO_TEST_CASE(an_output_that_is_not_written_is_found) {
  Case missing = computed<float, float>(long_sums, KILN_DATA_FLOAT, {});
  std::memset(missing.y.data() + 4 * 17, 0xff, 4);
  BOOST_TEST(missing.compare().unwritten == 1);
  BOOST_TEST(missing.compare().complaint() == "1 of 250 outputs were never written");
}

BOOST_AUTO_TEST_CASE(a_nan_is_found) {
  Case wrong = computed<float, float>(long_sums, KILN_DATA_FLOAT, {});
  const float nan = std::nanf("");
  std::memcpy(wrong.y.data() + 4 * 17, &nan, 4);
  BOOST_TEST(wrong.compare().complaint().starts_with("y[0,0,0,3,2] is nan; expected "));
}

// Engines may multiply padding, which is zero, by an infinite weight, or skip the product. Nothing
// else is accepted.
BOOST_AUTO_TEST_CASE(an_infinite_weight_over_padding_has_two_right_answers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const ConvolutionProblem problem =
      make_convolution(kiln::parse_convolution_line("mb1ic1ih2oc1kh3ph1"), KILN_DATA_FLOAT,
                       KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
  const auto bytes_of = [](const std::vector<float>& values) {
    Bytes bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  // The first tap meets the source at the last output alone, and is infinite.
  std::vector<float> weights(9, 1.0f);
  weights[0] = infinity;
  const auto passes = [&](const std::vector<float>& y) {
    return kiln::cli::compare(problem, {},
                              {bytes_of({1, 2, 3, 4}), bytes_of(weights),
                               poisoned_operand(y_of(problem), KILN_DATA_FLOAT)},
                              bytes_of(y), 4)
        .passed();
  };
  const float nan = std::nanf("");
  BOOST_TEST(passes({nan, nan, nan, infinity}));
  BOOST_TEST(passes({10, 10, 10, infinity}));
  BOOST_TEST(passes({10, nan, 10, infinity}));
  BOOST_TEST(!passes({10, 10, 11, infinity}));
  BOOST_TEST(!passes({10, 10, infinity, infinity}));
  BOOST_TEST(!passes({10, 10, 10, nan}));
  BOOST_TEST(!passes({10, 10, 10, 10}));
}

BOOST_AUTO_TEST_CASE(a_write_between_the_outputs_is_found) {
  Case stray = computed<float, float>("mb1ic3ih6oc4kh3", KILN_DATA_FLOAT, {});
  // The same outputs in rows of 6 instead of 4.
  const Bytes dense = stray.y;
  stray.problem.y_strides = {0, 24, 0, 6, 1};
  stray.y0 = stray.y = poisoned_operand(y_of(stray.problem), KILN_DATA_FLOAT);
  for (std::int64_t i = 0; i < 64; ++i) {
    std::memcpy(stray.y.data() + 4 * y_of(stray.problem).offset(i), dense.data() + 4 * i, 4);
  }
  BOOST_TEST(stray.compare().complaint() == "");
  std::memset(stray.y.data() + 4 * 5, 0, 4);
  BOOST_TEST(stray.compare().complaint() == "1 elements between the outputs were written over");
}

BOOST_AUTO_TEST_CASE(large_outputs_are_sampled_with_their_corners) {
  // So many products that the comparison checks only a sample of the outputs.
  const ConvolutionProblem problem =
      make_convolution(kiln::parse_convolution_line("mb4ic2048ih50oc600kh3ph1"), KILN_DATA_FLOAT,
                       KILN_TENSOR_NCHW, KILN_CROSS_CORRELATION);
  const Bytes x(x_of(problem).span() * 4), w(w_of(problem).span() * 4);  // zeros
  const Bytes y0 = poisoned_operand(y_of(problem), KILN_DATA_FLOAT);
  Bytes y(y0.size());
  const Comparison right = kiln::cli::compare(problem, {}, {x, w, y0}, y, 5);
  BOOST_TEST(right.passed());
  BOOST_TEST(right.outputs == 6000000);
  BOOST_TEST(right.checked >= 512);
  BOOST_TEST(right.checked < right.outputs);
  const float one = 1;
  std::memcpy(y.data() + y.size() - 4, &one, 4);  // the last corner
  BOOST_TEST(kiln::cli::compare(problem, {}, {x, w, y0}, y, 5)
                 .complaint()
                 .starts_with("y[3,599,0,49,49] is 1"));
}

BOOST_AUTO_TEST_CASE(random_operands_repeat_and_spread) {
  const Operand operand{"x", KILN_DATA_FLOAT, {1, 1, 1, 100, 1000}, {0, 0, 0, 1000, 1}};
  const Bytes first = random_operand(operand, KILN_DATA_FLOAT, 1);
  BOOST_TEST((first == random_operand(operand, KILN_DATA_FLOAT, 1)));
  BOOST_TEST((first != random_operand(operand, KILN_DATA_FLOAT, 2)));
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 100000; ++i) {
    float value;
    std::memcpy(&value, first.data() + 4 * i, 4);
    BOOST_REQUIRE(std::fabs(value) <= 1);
    sum += value;
    squares += value * value;
  }
  BOOST_TEST(std::fabs(sum / 1e5) < 0.01);
  BOOST_TEST(std::fabs(squares / 1e5 - 1.0 / 3) < 0.01);
}

// Every bit pattern of the 16-bit types survives the way through double; halfway cases go to even.
BOOST_AUTO_TEST_CASE(elements_of_16_bits) {
  using namespace kiln::reference;  // NOLINT(google-build-using-namespace)
  for (int bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const Bfloat16 bfloat{static_cast<std::uint16_t>(bits)};
    if (!std::isnan(to_double(half))) {
      BOOST_REQUIRE(from_double<Half>(to_double(half)).bits == bits);
    }
    if (!std::isnan(to_double(bfloat))) {
      BOOST_REQUIRE(from_double<Bfloat16>(to_double(bfloat)).bits == bits);
    }
  }
  BOOST_TEST(to_double(Half{0x3c00}) == 1.0);
  BOOST_TEST(to_double(Half{0x0001}) == 0x1p-24);
  BOOST_TEST(to_double(Half{0x7bff}) == 65504.0);
  BOOST_TEST(to_double(Bfloat16{0x3f80}) == 1.0);
  BOOST_TEST(to_double(from_double<Half>(1 + 0x1p-11)) == 1.0);
  BOOST_TEST(to_double(from_double<Half>(1 + 3 * 0x1p-11)) == 1 + 0x1p-9);
  BOOST_TEST(to_double(from_double<Half>(1 + 0x1p-11 + 0x1p-40)) == 1 + 0x1p-10);
  BOOST_TEST(to_double(from_double<Half>(0x1p-25)) == 0.0);
  BOOST_TEST(to_double(from_double<Half>(65519.0)) == 65504.0);
  BOOST_TEST(std::isinf(to_double(from_double<Half>(65520.0))));
  BOOST_TEST(to_double(from_double<Bfloat16>(1 + 0x1p-8)) == 1.0);
  BOOST_TEST(to_double(from_double<Bfloat16>(1 + 3 * 0x1p-8)) == 1 + 0x1p-6);
}

BOOST_AUTO_TEST_SUITE_END()
