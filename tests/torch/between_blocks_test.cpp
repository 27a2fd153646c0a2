// The extension's operators of what stands between a model's blocks, pooling and
// squeeze-and-excitation, against a PyTorch that is not there.
#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "called.hpp"

using fake::Tensor;
using kiln::torch::Value;
using namespace test;

BOOST_AUTO_TEST_SUITE(between_blocks)

namespace {

constexpr std::int64_t images = 3, channels = 4, rows = 3, columns = 2;

float& at(const Tensor& t, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return t.data<float>()[n * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3]];
}

template <class Visit>
void every_element(Visit visit) {
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t h = 0; h < rows; ++h)
        for (std::int64_t w = 0; w < columns; ++w) visit(n, c, h, w);
}

// Windows of 2 x 2 at every second row, the last of which ceil mode adds.
void put_windows(std::vector<Value>& stack, Value mode) {
  for (const std::vector<std::int64_t>& list :
       {std::vector<std::int64_t>{2, 2}, {2, 1}, {0, 0}, {1, 1}})
    stack.push_back(fake::give_list(list));
  stack.push_back(1);
  stack.push_back(mode);
}

struct Pooled {
  Tensor y, dx;  // the gradient of y * y / 2
};
Pooled pooled(const Tensor& x, Value mode) {
  std::vector<Value> forward{fake::give(x)};
  put_windows(forward, mode);
  call("pool", forward, 1);
  const Tensor y = fake::take(forward[0]);
  BOOST_REQUIRE((y.sizes == std::vector<std::int64_t>{images, channels, 2, 1}));
  std::vector<Value> backward{fake::give(y), fake::give_optional(mode == 0 ? &x : nullptr),
                              fake::give_list({images, channels, rows, columns})};
  put_windows(backward, mode);
  call("pool_backward", backward, 1);
  return {y, fake::take(backward[0])};
}

}  // namespace

BOOST_AUTO_TEST_CASE(pooling_and_its_gradient) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  {
    const Tensor x = random({images, channels, rows, columns});
    const Pooled most = pooled(x, 0), mean = pooled(x, 1), inside = pooled(x, 2);
    every_element([&](auto n, auto c, auto h, auto w) {
      const float largest = at(most.y, n, c, h / 2, 0), own = at(x, n, c, h, w);
      BOOST_REQUIRE(own <= largest);
      BOOST_REQUIRE_EQUAL(at(most.dx, n, c, h, w), own == largest ? largest : 0);
      // What ceil mode reaches beyond x is counted by neither average.
      float sum = 0, count = 0;
      for (std::int64_t row = h / 2 * 2; row < std::min(h / 2 * 2 + 2, rows); ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          sum += at(x, n, c, row, column), ++count;
      for (const Pooled& average : {mean, inside}) {
        BOOST_REQUIRE_SMALL(at(average.y, n, c, h / 2, 0) - sum / count, 1e-6F);
        BOOST_REQUIRE_SMALL(at(average.dx, n, c, h, w) - sum / count / count, 1e-6F);
      }
    });
  }
  BOOST_TEST(fake::torch().tensors == 0);
  BOOST_TEST(fake::torch().lists == 0);
}

BOOST_AUTO_TEST_CASE(squeeze_and_excitation) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  {
    const Tensor x = random({images, channels, rows, columns}),
                 dy = random({images, channels, rows, columns}),
                 numbers = random({images, channels, 1, 1});
    std::vector<Value> means{fake::give(x)}, product{fake::give(x), fake::give(numbers)},
        gradients{fake::give(dy), fake::give(x), fake::give(numbers)},
        sum{fake::give(x), fake::give(numbers), number(0.5)};
    call("channel_means", means, 1);
    call("multiply_channels", product, 1);
    call("multiply_channels_backward", gradients, 2);
    call("add_channels", sum, 1);
    const Tensor mean = fake::take(means[0]), y = fake::take(product[0]),
                 dx = fake::take(gradients[0]), dnumbers = fake::take(gradients[1]),
                 added = fake::take(sum[0]);
    BOOST_REQUIRE((mean.sizes == numbers.sizes && dnumbers.sizes == numbers.sizes));
    BOOST_REQUIRE((y.strides == x.strides && dx.strides == x.strides));
    every_element([&](auto n, auto c, auto h, auto w) {
      const float own = at(x, n, c, h, w), factor = at(numbers, n, c, 0, 0);
      BOOST_REQUIRE_EQUAL(at(y, n, c, h, w), own * factor);
      BOOST_REQUIRE_EQUAL(at(dx, n, c, h, w), at(dy, n, c, h, w) * factor);
      BOOST_REQUIRE_SMALL(at(added, n, c, h, w) - (own + factor / 2), 1e-6F);
      at(mean, n, c, 0, 0) -= own / float(rows * columns);
      at(dnumbers, n, c, 0, 0) -= own * at(dy, n, c, h, w);
    });
    for (const Tensor& left : {mean, dnumbers})
      for (std::int64_t i = 0; i < images * channels; ++i)
        BOOST_REQUIRE_SMALL(left.data<float>()[i], 1e-5F);
  }
  BOOST_TEST(fake::torch().tensors == 0);
}

// Numbers of another type, or of another size, are for PyTorch.
BOOST_AUTO_TEST_CASE(what_is_not_served_is_composed) {
  BOOST_REQUIRE_EQUAL(kilnTorchLoad(), "");
  fake::torch().operators["kiln_torch::native_multiply_channels"] = [](Value* stack) {
    fake::take(stack[1]);
    return 0;
  };
  std::vector<Value> stack{fake::give(random({images, channels, rows, columns})),
                           fake::give(random({images, 1, 1, 1}))};
  call("multiply_channels", stack, 1);
  fake::take(stack[0]);
  BOOST_TEST(fake::torch().calls["kiln_torch::native_multiply_channels"] == 1);
  BOOST_TEST(std::string(kilnTorchReport()).find("not one number of the tensor's type") !=
             std::string::npos);
  BOOST_TEST(fake::torch().tensors == 0);
}

BOOST_AUTO_TEST_SUITE_END()
