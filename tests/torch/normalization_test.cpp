// The extension's operators of batch normalization against a PyTorch that is not there.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "called.hpp"
#include "kiln/kiln.h"

using fake::Tensor;
using kiln::torch::Value;
using namespace test;

namespace {

constexpr std::int64_t images = 3, channels = 4, rows = 3, columns = 2;
constexpr std::int64_t pixels = images * rows * columns;

// Of tensors with channels last: element `i` of a channel.
float& element(const Tensor& x, std::int64_t channel, std::int64_t i) {
  return x.data<float>()[i * channels + channel];
}

struct Statistics {
  double mean = 0, m2 = 0;
};
Statistics statistics_of(const Tensor& x, std::int64_t channel) {
  Statistics out;
  for (std::int64_t i = 0; i < pixels; ++i) out.mean += element(x, channel, i) / double(pixels);
  for (std::int64_t i = 0; i < pixels; ++i)
    out.m2 += std::pow(element(x, channel, i) - out.mean, 2);
  return out;
}

void put_geometry(std::vector<Value>& stack) {
  for (const std::int64_t value : {1, 0, 1}) stack.push_back(fake::give_list({value, value}));
  stack.push_back(0);
  stack.push_back(fake::give_list({0, 0}));
  stack.push_back(1);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(normalization)

BOOST_AUTO_TEST_CASE(a_block_is_its_parts_and_keeps_nothing) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  const Tensor x = random({images, channels, rows, columns}, 2);
  const Tensor w = random({channels, channels, 1, 1}), scale = random({channels}, 1);
  const Tensor shift = random({channels}), residual = random({images, channels, rows, columns});
  const Tensor mean = random({channels}), variance = random({channels});
  std::vector<float> before(mean.data<float>(), mean.data<float>() + channels);
  std::vector<Value> stack{fake::give(x), fake::give(w), 0};
  put_geometry(stack);
  for (const Tensor* t : {&scale, &shift, &residual, &mean, &variance})
    stack.push_back(fake::give_optional(t));
  for (const Value value : {number(0.25), number(1e-3), Value{KILN_ACTIVATION_RELU}, number(0)})
    stack.push_back(value);
  call("block", stack, 4);
  const Tensor z = fake::take(stack[0]), y = fake::take(stack[1]);
  const Tensor own_mean = fake::take(stack[2]), inverse = fake::take(stack[3]);
  for (std::int64_t c = 0; c < channels; ++c) {
    const Statistics s = statistics_of(y, c);
    BOOST_TEST(own_mean.data<float>()[c] == s.mean, boost::test_tools::tolerance(1e-3));
    BOOST_TEST(mean.data<float>()[c] == before[c] + 0.25 * (s.mean - before[c]),
               boost::test_tools::tolerance(1e-3));
    const double deviation = 1 / std::sqrt(s.m2 / pixels + 1e-3);
    BOOST_TEST(inverse.data<float>()[c] == deviation, boost::test_tools::tolerance(1e-3));
    for (std::int64_t i = 0; i < pixels; ++i) {
      const double want = (element(y, c, i) - s.mean) * deviation * scale.data<float>()[c] +
                          shift.data<float>()[c] + element(residual, c, i);
      BOOST_REQUIRE_SMALL(element(z, c, i) - std::max(want, 0.0), 1e-4);
    }
  }

  const Tensor dz = random({images, channels, rows, columns});
  std::vector<Value> back{fake::give(dz), fake::give(y), fake::give(own_mean), fake::give(inverse)};
  for (const Tensor* t : {&scale, &shift, &residual}) back.push_back(fake::give_optional(t));
  for (const Value value : {Value{KILN_ACTIVATION_RELU}, number(0), Value{1}})
    back.push_back(value);
  back.insert(back.end(), {fake::give(x), fake::give(w), 0});
  put_geometry(back);
  back.push_back(fake::give_list({1, 1, 0}));
  call("block_backward", back, 6);
  fake::take(back[0]);
  fake::take(back[1]);
  fake::take(back[2]);
  const Tensor dresidual = fake::take(back[3]);
  fake::take(back[4]);
  const Tensor dshift = fake::take(back[5]);
  for (std::int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (std::int64_t i = 0; i < pixels; ++i) {
      const double g = element(z, c, i) > 0 ? element(dz, c, i) : 0;
      BOOST_REQUIRE_EQUAL(element(dresidual, c, i), static_cast<float>(g));
      sum += g;
    }
    BOOST_REQUIRE_SMALL(dshift.data<float>()[c] - sum, 1e-4);
  }
  BOOST_TEST(fake::torch().tensors == 0);
  BOOST_TEST(fake::torch().lists == 0);
}

// The gradient of a convolution, with what else reaches its input, through the normalization before
// it: that of each operator, one after the other.
BOOST_AUTO_TEST_CASE(a_link_is_its_parts_and_keeps_nothing) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  const auto tensor = [] { return random({images, channels, rows, columns}); };
  const Tensor y = tensor(), z = tensor(), residual = tensor(), dy = tensor(), other = tensor();
  const Tensor w = random({channels, channels, 1, 1}), scale = random({channels}, 1);
  const Tensor shift = random({channels}), mean = random({channels}),
               inverse = random({channels}, 2);
  const auto put_norm = [&](std::vector<Value>& stack) {
    stack.insert(stack.end(), {fake::give(y), fake::give(mean), fake::give(inverse)});
    for (const Tensor* t : {&scale, &shift, &residual}) stack.push_back(fake::give_optional(t));
    stack.insert(stack.end(), {Value{KILN_ACTIVATION_RELU}, number(0)});
  };
  const auto put_convolution = [&](std::vector<Value>& stack) {
    stack.insert(stack.end(), {fake::give(dy), fake::give(z), fake::give(w), 0});
    put_geometry(stack);
    stack.push_back(fake::give_list({1, 1, 0}));
  };
  std::vector<Value> link{fake::give_optional(&other)};
  put_norm(link);
  link.push_back(1);
  put_convolution(link);
  call("link_backward", link, 6);

  std::vector<Value> convolution;
  put_convolution(convolution);
  call("convolution_backward", convolution, 3);
  const Tensor dz = fake::take(convolution[0]);
  for (std::int64_t i = 0; i < images * channels * rows * columns; ++i)
    dz.data<float>()[i] += other.data<float>()[i];
  std::vector<Value> norm{fake::give(dz)};
  put_norm(norm);
  norm.insert(norm.end(), {1, 1});
  call("normalize_backward", norm, 4);
  norm.resize(4);
  norm.push_back(convolution[1]);  // dw
  for (std::size_t i = 0; i < norm.size(); ++i) {
    const Tensor got = fake::take(link[i]), want = fake::take(norm[i]);
    BOOST_REQUIRE((got.sizes == want.sizes && got.strides == want.strides));
    std::int64_t count = 1;
    for (const std::int64_t size : want.sizes) count *= size;
    for (std::int64_t k = 0; k < count; ++k)
      BOOST_REQUIRE_EQUAL(got.data<float>()[k], want.data<float>()[k]);
  }
  fake::take(link[5]);
  fake::take(convolution[2]);
  BOOST_TEST(fake::torch().tensors == 0);
  BOOST_TEST(fake::torch().lists == 0);
}

// By the statistics of two groups, and not centered of pixels with a scale alone.
BOOST_AUTO_TEST_CASE(rows_and_their_gradient_keep_nothing) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  constexpr std::int64_t space = rows * columns;
  for (const std::int64_t groups : {2, 0}) {
    const Tensor x = random({images, channels, rows, columns}, 2), scale = random({channels}, 1);
    const Tensor shift = random({channels}), dy = random({images, channels, rows, columns});
    const Tensor* const bias = groups > 0 ? &shift : nullptr;
    const auto put = [&](std::vector<Value>& stack) {
      stack.insert(stack.end(), {static_cast<Value>(groups), groups > 0 ? Value{1} : Value{0}});
      for (const Tensor* t : {&scale, bias}) stack.push_back(fake::give_optional(t));
      stack.push_back(fake::give_optional(nullptr));
    };
    std::vector<Value> forward{fake::give(x)};
    put(forward);
    forward.insert(forward.end(), {number(1e-3), Value{KILN_ACTIVATION_IDENTITY}, number(0)});
    call("normalize_rows", forward, 3);
    const Tensor y = fake::take(forward[0]), mean = fake::take(forward[1]),
                 inverse = fake::take(forward[2]);
    const std::int64_t of_image = groups > 0 ? groups : space;
    BOOST_REQUIRE((inverse.sizes == std::vector<std::int64_t>{images, of_image}));
    BOOST_REQUIRE_EQUAL(mean.sizes[0], groups > 0 ? images : 0);
    std::vector<double> sums(channels), products(channels);
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t i = 0; i < pixels; ++i) {
        const std::int64_t row =
            i / space * of_image + (groups > 0 ? c / (channels / groups) : i % space);
        const double normal = (element(x, c, i) - (groups > 0 ? mean.data<float>()[row] : 0)) *
                              inverse.data<float>()[row];
        const double added = bias != nullptr ? shift.data<float>()[c] : 0;
        BOOST_REQUIRE_SMALL(element(y, c, i) - normal * scale.data<float>()[c] - added, 1e-4);
        sums[c] += element(dy, c, i);
        products[c] += element(dy, c, i) * normal;
      }
    std::vector<Value> back{fake::give(dy), fake::give(x), fake::give(mean), fake::give(inverse)};
    put(back);
    back.insert(back.end(), {Value{KILN_ACTIVATION_IDENTITY}, number(0), Value{0}});
    call("normalize_rows_backward", back, 4);
    const Tensor dx = fake::take(back[0]), dresidual = fake::take(back[1]),
                 dscale = fake::take(back[2]), dshift = fake::take(back[3]);
    BOOST_TEST((dx.sizes == x.sizes && dresidual.sizes[0] == 0));
    BOOST_REQUIRE_EQUAL(dshift.sizes[0], bias != nullptr ? channels : 0);
    for (std::int64_t c = 0; c < channels; ++c) {
      BOOST_REQUIRE_SMALL(dscale.data<float>()[c] - products[c], 1e-4);
      if (bias != nullptr) BOOST_REQUIRE_SMALL(dshift.data<float>()[c] - sums[c], 1e-4);
    }
  }
  BOOST_TEST(fake::torch().tensors == 0);
}

BOOST_AUTO_TEST_CASE(what_is_not_served_is_composed) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  fake::torch().operators["kiln_torch::native_moments"] = [](Value* stack) {
    fake::take(stack[0]);
    stack[0] = fake::give(fake::make({3, 7}));
    return 0;
  };
  std::vector<Value> stack{fake::give(fake::make({2, 7, 3}, false, 3))};  // integers
  call("moments", stack, 1);
  BOOST_TEST(fake::take(stack[0]).sizes[1] == 7);
  BOOST_TEST(fake::torch().calls["kiln_torch::native_moments"] == 1);
  BOOST_TEST(std::string(kilnTorchReport()).find("the type is not f32") != std::string::npos);
  BOOST_TEST(fake::torch().tensors == 0);
}

BOOST_AUTO_TEST_SUITE_END()
