// Transforms between every two types round once, to nearest, ties to even.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "operation_case.hpp"

BOOST_AUTO_TEST_SUITE(conversion)

namespace {

using namespace test;

Tensor dense(DataType type, const TensorDims& dims, kilnTensorFormat_t format) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(format, 4, dims);
  return out;
}

// The nearest number of a type, ties to even. From half a unit beyond the largest number on, it is
// infinity.
double nearest(DataType type, double value) {
  return reference::within(type, reference::round_to_format(value, reference::format_of(type)));
}

// Numbers of `from` that are numbers of `to`, halfway between two of them, and just beside both,
// over the whole range of `to` and a little beyond, with both signs; and NaN and the infinities.
std::vector<double> arguments(DataType from, DataType to) {
  const reference::Format format = reference::format_of(to), own = reference::format_of(from);
  const int top = std::ilogb(reference::largest_of(to)) + 2;
  std::mt19937 random(3);
  std::vector<double> out = {std::nan(""),         HUGE_VAL, reference::largest_of(to), 0, 1,
                             1 + 0x1p-11 + 0x1p-40};
  const int bottom = format.min_exponent - format.precision - 2;
  for (int exponent = bottom; exponent < top; exponent += (top - bottom) / 220 + 1) {
    const int unit = std::max(exponent, format.min_exponent) - format.precision + 1;
    const double half = std::ldexp(1.0, unit - 1);
    const double base =
        nearest(to, std::ldexp(1 + std::generate_canonical<double, 53>(random), exponent));
    for (double value : {base, base + half, base + 3 * half}) {
      const int step = std::max(std::ilogb(value), own.min_exponent) - own.precision + 1;
      for (double beside : {0.0, std::ldexp(1.0, step), -std::ldexp(1.0, step), half / 1024})
        out.push_back(value + beside);
    }
  }
  std::vector<double> both;
  for (double value : out)
    for (double each : {value, -value})
      if (std::isnan(each) || nearest(from, each) == each) both.push_back(each);
  return both;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_pair_rounds_once) {
  for (DataType from : all_types)
    for (DataType to : all_types)
      for (kilnTensorFormat_t format : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        if (from == to) continue;
        std::vector<double> x = arguments(from, to);
        x.resize((x.size() + 15) / 16 * 16);  // 16 channels
        const TensorDims dims{1, 16, 1, static_cast<std::int64_t>(x.size() / 16)};
        OperationCase item(
            make_transform(dense(from, dims, KILN_TENSOR_NCHW), dense(to, dims, format)));
        item["x"].values = x;
        const HostTensor got = item.run_plan();
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double y = got.at(static_cast<std::int64_t>(i)), want = nearest(to, x[i]);
          const bool same =
              std::isnan(want) ? std::isnan(y) : y == want && std::signbit(y) == std::signbit(want);
          BOOST_TEST(same, name_of(from) << " to " << name_of(to) << " of " << x[i] << " is " << y
                                         << ", expected " << want);
        }
      }
}

BOOST_AUTO_TEST_SUITE_END()
