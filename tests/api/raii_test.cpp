// kiln.hpp: the C API with owners, exceptions and named arguments.
#include <array>
#include <boost/test/unit_test.hpp>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "api/raii_case.hpp"

namespace {

using kiln::Scalar;
using test::raii::check_twice;
using test::raii::equals;
using test::raii::f32;
using test::raii::f64;
using test::raii::nchw;
using test::raii::throws;

// Neither a pointer nor NULL is a number that scales; numbers are.
static_assert(std::constructible_from<Scalar, int> && std::constructible_from<Scalar, float> &&
              std::constructible_from<Scalar, double>);
static_assert(!std::constructible_from<Scalar, const float*> &&
              !std::constructible_from<Scalar, std::nullptr_t> &&
              !std::constructible_from<Scalar, decltype(NULL)> &&
              !std::constructible_from<Scalar, bool>);
// A span of constants cannot be a result.
static_assert(std::constructible_from<kiln::In, std::span<const float>> &&
              !std::constructible_from<kiln::Out, std::span<const float>> &&
              !std::constructible_from<kiln::Out, const void*>);
// A plan of one operation does not convert to another operation's, nor does a general plan.
static_assert(!std::constructible_from<kiln::PoolingForward, kiln::ActivationForward> &&
              !std::constructible_from<kiln::Plan, kiln::Handle> &&
              std::move_constructible<kiln::PoolingForward> &&
              !std::copy_constructible<kiln::PoolingForward>);

}  // namespace

BOOST_AUTO_TEST_SUITE(raii_layer)

BOOST_AUTO_TEST_CASE(a_convolution_from_descriptor_to_result) {
  test::Geometry geometry;
  geometry.groups = 1;
  geometry.mode = KILN_CONVOLUTION;
  const test::Case<double> problem(geometry);
  const auto& g = problem.g;
  kiln::Handle handle(test::device_kind());
  handle.set_stream(nullptr);
  BOOST_TEST(handle.stream() == nullptr);
  const kiln::TensorDescriptor x(nchw, f64, g.x_dims());
  const kiln::FilterDescriptor w(f64, g.w_dims(), test::dense(g.w_dims()));
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 0},
                                                 .pad_after = {2, 1},
                                                 .stride = {2, 1},
                                                 .dilation = {1, 2},
                                                 .mode = KILN_CONVOLUTION,
                                                 .compute_type = f64});
  const kiln::Sizes sizes = convolution.output_dims(x, w);
  BOOST_TEST(sizes == g.y_dims());
  const kiln::TensorDescriptor y(f64, sizes, test::dense(sizes));
  BOOST_TEST(y.dims() == sizes);
  BOOST_TEST(y.strides() == test::dense(sizes));
  BOOST_TEST(y.type() == f64);
  BOOST_TEST(w.dims() == g.w_dims());
  BOOST_TEST(w.type() == f64);

  kiln::ConvolutionForward made(handle, {.x = x, .w = w, .convolution = convolution, .y = y});
  made.finalize();
  const kiln::ConvolutionForward plan = std::move(made);
  const test::Buffer<double> x_data(problem.x), w_data(problem.w), y_data(problem.y);
  plan.execute(handle, {.x = x_data.data(), .w = w_data.data(), .y = y_data.data()},
               {.alpha = 2, .beta = 0.5});
  const auto once = problem.expected(2, 0.5, problem.y);
  equals(y_data, once);
  kiln::ConvolutionForward::run(handle, {.x = x, .w = w, .convolution = convolution, .y = y},
                                {.x = x_data.data(), .w = w_data.data(), .y = y_data.data()},
                                {.alpha = -1, .beta = 1});
  equals(y_data, problem.expected(-1, 1, once));

  BOOST_TEST(plan.compute_type() == f64);
  BOOST_TEST(plan.info().workspaceBytes == 0u);
  BOOST_TEST(plan.text(KILN_PLAN_PROBLEM).starts_with("conv --arch "));
  BOOST_TEST(plan.text(KILN_PLAN_PROBLEM).find(" --dt f64 ") != std::string::npos);
  BOOST_TEST(!plan.binary().empty());
}

// A 1x1 filter, so that results can be computed by hand.
BOOST_AUTO_TEST_CASE(every_pass_of_a_convolution) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor x(nchw, f32, {1, 1, 1, 3}), y(nchw, f32, {1, 2, 1, 3}),
      b(nchw, f32, {1, 2, 1, 1});
  const kiln::FilterDescriptor w(nchw, f32, {2, 1, 1, 1});
  const kiln::ConvolutionDescriptor convolution({});
  BOOST_TEST(convolution.transposed_dims(y, w) == x.dims());
  const test::Buffer<float> x_data({1, 2, 3}), w_data({10, -1}), y_data({1, 2, 3, 4, 5, 6}),
      b_data({100, 0}), dx({1, 1, 1}), dw({0, 1}), db({1, 0}), out({1, 1, 1, 1, 1, 1});

  check_twice<kiln::ConvolutionForward>(
      handle, {.x = x, .w = w, .convolution = convolution, .y = y},
      {.x = x_data.data(), .w = w_data.data(), .y = out.data()}, out, {10, 20, 30, -1, -2, -3});
  const kiln::ActivationDescriptor relu(KILN_ACTIVATION_RELU);
  check_twice<kiln::ConvolutionBiasActivationForward>(
      handle,
      {.x = x, .w = w, .convolution = convolution, .z = &y, .bias = &b, .activation = relu, .y = y},
      {.x = x_data.data(),
       .w = w_data.data(),
       .z = y_data.data(),
       .bias = b_data.data(),
       .y = out.data()},
      out, {112, 124, 136, 7, 8, 9}, kiln::Scale{.alpha = 1, .beta = 2});
  check_twice<kiln::ConvolutionBiasActivationForward>(
      handle, {.x = x, .w = w, .convolution = convolution, .activation = relu, .y = y},
      {.x = x_data.data(), .w = w_data.data(), .y = out.data()}, out, {10, 20, 30, 0, 0, 0});
  check_twice<kiln::ConvolutionBackwardData>(
      handle, {.w = w, .dy = y, .convolution = convolution, .dx = x},
      {.w = w_data.data(), .dy = y_data.data(), .dx = dx.data()}, dx, {7, 16, 25},
      kiln::Scale{.beta = 1});
  check_twice<kiln::ConvolutionTransposed>(
      handle, {.x = y, .w = w, .convolution = convolution, .y = x},
      {.x = y_data.data(), .w = w_data.data(), .y = dx.data()}, dx, {6, 15, 24});
  check_twice<kiln::ConvolutionBackwardFilter>(
      handle, {.x = x, .dy = y, .convolution = convolution, .dw = w},
      {.x = x_data.data(), .dy = y_data.data(), .dw = dw.data()}, dw, {14, 33},
      kiln::Scale{.beta = 1});
  check_twice<kiln::ConvolutionBackwardBias>(handle, {.dy = y, .db = b},
                                             {.dy = y_data.data(), .db = db.data()}, db, {6, 15});
}

// Two pixels, each with its own filter of two taps and its own bias.
BOOST_AUTO_TEST_CASE(locally_connected) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor x(nchw, f32, {1, 1, 1, 3}), w(nchw, f32, {1, 2, 1, 1, 1, 2}),
      y(nchw, f32, {1, 1, 1, 2});
  const kiln::ConvolutionDescriptor convolution({.pad_before = {0, 0}});
  const test::Buffer<float> x_data({1, 2, 3}), w_data({1, 10, 100, 1000}), b_data({0.5, 0.25}),
      y_data({1, 1}), dx({0, 0, 0}), dw({0, 0, 0, 0}), dy({1, 2});
  check_twice<kiln::LocalForward>(
      handle, {.x = x, .w = w, .convolution = convolution, .bias = &y, .y = y},
      {.x = x_data.data(), .w = w_data.data(), .bias = b_data.data(), .y = y_data.data()}, y_data,
      {21.5, 3200.25});
  check_twice<kiln::LocalForward>(handle, {.x = x, .w = w, .convolution = convolution, .y = y},
                                  {.x = x_data.data(), .w = w_data.data(), .y = y_data.data()},
                                  y_data, {21, 3200});
  check_twice<kiln::LocalBackwardData>(
      handle, {.w = w, .dy = y, .convolution = convolution, .dx = x},
      {.w = w_data.data(), .dy = dy.data(), .dx = dx.data()}, dx, {1, 210, 2000});
  check_twice<kiln::LocalBackwardFilter>(
      handle, {.x = x, .dy = y, .convolution = convolution, .dw = w},
      {.x = x_data.data(), .dy = dy.data(), .dw = dw.data()}, dw, {1, 2, 4, 6});
}

// [1 2; 3 4] by a layer's weights [1 10; 100 1000], with a bias, a residual and an activation.
BOOST_AUTO_TEST_CASE(products_of_matrices) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor a(nchw, f32, {2, 2}), w(f32, {2, 2}, {1, 2}),
      bias(nchw, f32, {1, 2});
  const kiln::ActivationDescriptor relu(KILN_ACTIVATION_RELU);
  const kiln::Epilogue epilogue = kiln::Epilogue().bias(bias).residual(a).activation(relu);
  const kiln::MatmulDescriptor strict(KILN_MATH_STRICT, 4);
  const test::Buffer<float> a_data({1, 2, 3, 4}), w_data({1, 10, 100, 1000}), b_data({0.5, -3000}),
      d({1, 1, 1, 1});
  check_twice<kiln::Matmul>(handle, {.a = a, .b = w, .d = a},
                            {.a = a_data.data(), .b = w_data.data(), .d = d.data()}, d,
                            {21, 2100, 43, 4300});
  check_twice<kiln::Matmul>(handle,
                            {.a = a, .b = w, .epilogue = &epilogue, .d = a, .matmul = &strict},
                            {.a = a_data.data(),
                             .b = w_data.data(),
                             .epilogue = {b_data.data(), a_data.data()},
                             .d = d.data()},
                            d, {22.5, 0, 46.5, 1304}, kiln::Scale{.beta = 1});
}

BOOST_AUTO_TEST_CASE(pooling_and_its_gradient) {
  const kiln::Handle handle(test::device_kind());
  const kiln::PoolingDescriptor pooling({.window = {1, 2}});  // stride as the window
  const kiln::TensorDescriptor x(nchw, f64, {1, 1, 2, 4});
  BOOST_TEST(pooling.output_dims(x) == (kiln::Sizes{1, 1, 2, 2}));
  const kiln::TensorDescriptor y(nchw, f64, pooling.output_dims(x));
  const test::Buffer<double> x_data({1, 4, 3, 2, -1, -2, -3, -4}), y_data({9, 9, 9, 9}),
      dx_data(std::vector<double>(8, 100));
  check_twice<kiln::PoolingForward>(handle, {.pooling = pooling, .x = x, .y = y},
                                    {.x = x_data.data(), .y = y_data.data()}, y_data,
                                    {17, 15, 7, 3}, kiln::Scale{.alpha = 2, .beta = 1});
  check_twice<kiln::PoolingBackward>(
      handle, {.pooling = pooling, .dy = y, .x = &x, .dx = x},
      {.dy = y_data.data(), .x = x_data.data(), .dx = dx_data.data()}, dx_data,
      {100, 117, 115, 100, 107, 100, 103, 100}, kiln::Scale{.beta = 1});
  // The gradient of an average has no x.
  const kiln::PoolingDescriptor average(
      {.window = {1, 2}, .mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING});
  check_twice<kiln::PoolingBackward>(handle, {.pooling = average, .dy = y, .dx = x},
                                     {.dy = y_data.data(), .dx = dx_data.data()}, dx_data,
                                     {8.5, 8.5, 7.5, 7.5, 3.5, 3.5, 1.5, 1.5});
}

BOOST_AUTO_TEST_CASE(activations_and_softmax) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor t(nchw, f32, {1, 2, 1, 2});
  const test::Buffer<float> x({-2, 3, 8, -1}), y({0, 0, 0, 0}), dy({1, 2, 3, 4}), dx({0, 0, 0, 0});
  const kiln::ActivationDescriptor clipped(KILN_ACTIVATION_CLIPPED_RELU, 6),
      identity(KILN_ACTIVATION_IDENTITY), swish(KILN_ACTIVATION_HARD_SWISH);
  check_twice<kiln::ActivationForward>(handle, {.activation = clipped, .x = t, .y = t},
                                       {.x = x.data(), .y = y.data()}, y, {0, 1.5, 3, 0},
                                       kiln::Scale{.alpha = 0.5});
  check_twice<kiln::ActivationBackward>(handle, {.activation = identity, .y = &t, .dy = t, .dx = t},
                                        {.y = y.data(), .dy = dy.data(), .dx = dx.data()}, dx,
                                        {1, 2, 3, 4});
  const test::Buffer<float> far({-9, 9, 9, -9});
  check_twice<kiln::ActivationBackward>(handle, {.activation = swish, .dy = t, .x = &t, .dx = t},
                                        {.dy = dy.data(), .x = far.data(), .dx = dx.data()}, dx,
                                        {0, 2, 3, 0});

  const test::Buffer<float> equal({5, 5, 5, 5});
  check_twice<kiln::SoftmaxForward>(handle, {.mode = KILN_SOFTMAX_MODE_INSTANCE, .x = t, .y = t},
                                    {.x = equal.data(), .y = y.data()}, y,
                                    {0.25, 0.25, 0.25, 0.25});
  check_twice<kiln::SoftmaxBackward>(
      handle, {.mode = KILN_SOFTMAX_MODE_INSTANCE, .y = t, .dy = t, .dx = t},
      {.y = y.data(), .dy = dy.data(), .dx = dx.data()}, dx, {-0.375, -0.125, 0.125, 0.375});
}

BOOST_AUTO_TEST_CASE(tensor_operations) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor t(nchw, f32, {1, 2, 1, 2}),
      wide(KILN_TENSOR_NHWC, f64, {1, 2, 1, 2}), channel(nchw, f32, {1, 2, 1, 1});
  const test::Buffer<float> a({1, 2, 3, 4}), b({10, 20}), c({1, 1, 1, 1}), sum({5, 5});
  const test::Buffer<double> turned({0, 0, 0, 0});
  // The compute type is f64: one of the two is.
  check_twice<kiln::TransformTensor>(handle, {.x = t, .y = wide},
                                     {.x = a.data(), .y = turned.data()}, turned,
                                     {0.1, 0.1 * 3, 0.1 * 2, 0.1 * 4}, kiln::Scale{.alpha = 0.1});
  check_twice<kiln::AddTensor>(handle, {.x = channel, .y = t}, {.x = b.data(), .y = c.data()}, c,
                               {11, 11, 21, 21}, kiln::Scale{.beta = 1});
  check_twice<kiln::SetTensor>(handle, {.y = t}, {.y = c.data()}, c, {2.5, 2.5, 2.5, 2.5},
                               Scalar(2.5));
  check_twice<kiln::ScaleTensor>(handle, {.y = t}, {.y = c.data()}, c, {-5, -5, -5, -5},
                                 Scalar(-2));
  check_twice<kiln::OpTensor>(handle, {.op = KILN_OP_TENSOR_MUL, .a = t, .b = channel, .c = t},
                              {.a = a.data(), .b = b.data(), .c = c.data()}, c, {15, 35, 115, 155},
                              kiln::BinaryScale{.alpha1 = 2, .alpha2 = 1, .beta = 1});
  check_twice<kiln::ReduceTensor>(handle, {.op = KILN_REDUCE_SUM, .a = t, .c = channel},
                                  {.a = a.data(), .c = sum.data()}, sum, {11, 19},
                                  kiln::Scale{.alpha = 2, .beta = 1});
}

// A span has a size and a type; both are checked before a launch.
BOOST_AUTO_TEST_CASE(operands_as_spans) {
  const kiln::Handle handle(test::device_kind());
  const std::array<std::int64_t, 4> sizes{1, 2, 3, 4};
  const kiln::TensorDescriptor t(nchw, f32, sizes), half(nchw, KILN_DATA_HALF, std::span(sizes)),
      strided(f32, {1, 2, 3, 4}, {100, 50, 4, 1}), empty(nchw, f32, {0, 2, 3, 4});
  BOOST_TEST(t.extent().elements == 24u);
  BOOST_TEST(strided.extent().elements == 62u);
  BOOST_TEST(empty.extent().elements == 0u);
  const test::Buffer<float> x(std::vector<float>(62, 3)), y(std::vector<float>(62, 0));
  const std::span<const float> all(x.data(), 62), some(x.data(), 24), few(x.data(), 23);
  const std::span<float> out(y.data(), 62);
  const std::span<double> doubles(reinterpret_cast<double*>(y.data()), 24);
  kiln::AddTensor plan(handle, {.x = t, .y = t});
  plan.finalize();
  plan.execute(handle, {.x = some, .y = out});
  BOOST_TEST(y.read()[23] == 3);
  BOOST_TEST(y.read()[24] == 0);
  plan.execute(handle, {.x = std::as_bytes(all), .y = std::as_writable_bytes(out)});
  constexpr auto bad = KILN_STATUS_BAD_PARAM;
  throws([&] { plan.execute(handle, {.x = few, .y = out}); }, bad,
         "x is a span of 23 elements; expected at least 24");
  throws([&] { plan.execute(handle, {.x = some, .y = out.first(20)}); }, bad,
         "y is a span of 20 elements");
  throws([&] { plan.execute(handle, {.x = some, .y = doubles}); }, bad,
         "y is a span of elements of 8 bytes; expected 4");
  throws([&] { plan.execute(handle, {.x = some, .y = nullptr}); }, bad, "y is null");
  throws([&] { kiln::AddTensor::run(handle, {.x = strided, .y = t}, {.x = some, .y = out}); }, bad,
         "x is a span of 24 elements; expected at least 62");
  throws([&] { kiln::TransformTensor::run(handle, {.x = half, .y = t}, {.x = all, .y = out}); },
         bad, "x is a span of elements of 4 bytes; expected 2");
  kiln::AddTensor::run(handle, {.x = empty, .y = empty}, {.x = std::span<float>(), .y = nullptr});
}

BOOST_AUTO_TEST_CASE(failures_are_exceptions) {
  constexpr auto bad = KILN_STATUS_BAD_PARAM;
  throws([] { kiln::TensorDescriptor(nchw, f32, {1, 0, 1, 1}); }, bad, "dims[1] is 0");
  throws([] { kiln::TensorDescriptor(f32, {1, 1, 1}, {1, 1}); }, bad, "strides");
  throws([] { kiln::ConvolutionDescriptor({.pad_before = {1, 1}, .stride = {1}}); }, bad, "stride");
  throws([] { kiln::Handle(KILN_DEVICE_HOST, 3); }, bad, "ordinal is 3");
  throws([] { kiln::PoolingDescriptor({.window = {2, 2}, .stride = {1}}); }, bad, "stride");
  throws([] { kiln::ActivationDescriptor(KILN_ACTIVATION_ELU, -1); }, bad, "coef is -1");

  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor t(nchw, f32, {1, 2, 1, 2}), other(nchw, f32, {1, 3, 1, 2});
  kiln::AddTensor plan(handle, {.x = t, .y = t});
  const test::Buffer<float> x({1, 2, 3, 4}), y({0, 0, 0, 0});
  throws([&] { plan.execute(handle, {.x = x.data(), .y = y.data()}); }, KILN_STATUS_NOT_INITIALIZED,
         "finalize");
  throws([&] { kiln::TransformTensor(handle, {.x = t, .y = other}); }, bad, "xDesc has sizes");
}

// relu(x w + b) + 2 z.
BOOST_AUTO_TEST_CASE(an_epilogue_is_a_list) {
  const kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor x(nchw, f32, {1, 1, 2, 2}), y(nchw, f32, {1, 2, 2, 2});
  const kiln::TensorDescriptor b(nchw, f32, {1, 2, 1, 1});
  const kiln::FilterDescriptor w(nchw, f32, {2, 1, 1, 1});
  const kiln::ConvolutionDescriptor convolution(kiln::ConvolutionFields{});
  const kiln::ActivationDescriptor relu(KILN_ACTIVATION_RELU);
  const kiln::Epilogue epilogue = kiln::Epilogue().bias(b).activation(relu).residual(y);
  const test::Buffer<float> xs({1, -2, 3, 4}), ws({1, -1}), bs({1, -1}),
      zs({1, 2, 3, 4, 5, 6, 7, 8}), ys(std::vector<float>(8, 9));
  using Operation = kiln::ConvolutionForwardEpilogue;
  const Operation::Operands operands{
      .x = xs.data(), .w = ws.data(), .epilogue = {bs.data(), zs.data()}, .y = ys.data()};
  check_twice<Operation>(handle,
                         {.x = x, .w = w, .convolution = convolution, .epilogue = epilogue, .y = y},
                         operands, ys, {4, 4, 10, 13, 10, 13, 14, 16}, kiln::Scale{.beta = 2});
  const std::array<float, 3> few{};
  Operation plan(handle,
                 {.x = x, .w = w, .convolution = convolution, .epilogue = epilogue, .y = y});
  plan.finalize();
  throws(
      [&] {
        plan.execute(handle, {.x = xs.data(),
                              .w = ws.data(),
                              .epilogue = {bs.data(), std::span(few)},
                              .y = ys.data()});
      },
      KILN_STATUS_BAD_PARAM, "epilogue[1] is a span of 3 elements; expected at least 8");
}

BOOST_AUTO_TEST_SUITE_END()
