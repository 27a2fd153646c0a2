// kiln.hpp: the same calls through owners and exceptions.
#include <boost/test/unit_test.hpp>
#include <utility>

#include "convolution_case.hpp"
#include "kiln/kiln.hpp"

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
  const kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_DOUBLE, g.x_dims());
  const kiln::FilterDescriptor w(KILN_DATA_DOUBLE, g.w_dims(), test::dense(g.w_dims()));
  const kiln::ConvolutionDescriptor convolution({.pad_before = {1, 0},
                                                 .pad_after = {2, 1},
                                                 .stride = {2, 1},
                                                 .dilation = {1, 2},
                                                 .mode = KILN_CONVOLUTION,
                                                 .compute_type = KILN_DATA_DOUBLE});
  const kiln::Sizes sizes = convolution.output_dims(x, w);
  BOOST_TEST(sizes == g.y_dims());
  const kiln::TensorDescriptor y(KILN_DATA_DOUBLE, sizes, test::dense(sizes));
  BOOST_TEST(y.dims() == sizes);

  kiln::Plan made(handle, x, w, convolution, y);
  made.finalize();
  const kiln::Plan plan = std::move(made);
  const test::Buffer<double> x_data(problem.x), w_data(problem.w), y_data(problem.y);
  plan.execute(handle, 2, x_data.data(), w_data.data(), 0.5, y_data.data());
  const auto once = problem.expected(2, 0.5, problem.y);
  BOOST_TEST(y_data.read() == once, boost::test_tools::per_element());
  kiln::convolution_forward(handle, -1, x, x_data.data(), w, w_data.data(), convolution, 1, y,
                            y_data.data());
  BOOST_TEST(y_data.read() == problem.expected(-1, 1, once), boost::test_tools::per_element());

  BOOST_TEST(plan.info().workspaceBytes == 0u);
  BOOST_TEST(plan.text(KILN_PLAN_PROBLEM).find("conv --dt f64") == 0u);
  BOOST_TEST(!plan.binary().empty());
}

// Any operation's C functions through Plan and run, with numbers for scalars.
BOOST_AUTO_TEST_CASE(pooling_by_plan_and_at_once) {
  kiln::Handle handle(test::device_kind());
  const kiln::PoolingDescriptor pooling({.window = {1, 2}});  // stride as the window
  const kiln::TensorDescriptor x(KILN_TENSOR_NCHW, KILN_DATA_DOUBLE, {1, 1, 2, 4});
  BOOST_TEST(pooling.output_dims(x) == (kiln::Sizes{1, 1, 2, 2}));
  const kiln::TensorDescriptor y(KILN_TENSOR_NCHW, KILN_DATA_DOUBLE, pooling.output_dims(x));
  const test::Buffer<double> x_data({1, 4, 3, 2, -1, -2, -3, -4}), y_data({9, 9, 9, 9}),
      dx_data(std::vector<double>(8, 100));

  kiln::Plan made(KILN_DATA_DOUBLE, kilnCreatePoolingForwardPlan, handle, pooling, x, y);
  made.finalize();
  const kiln::Plan forward = std::move(made);
  forward.run(kilnExecutePoolingForward, handle, 2, x_data.data(), 0, y_data.data());
  BOOST_TEST(y_data.read() == (std::vector<double>{8, 6, -2, -6}),
             boost::test_tools::per_element());
  BOOST_TEST(forward.text(KILN_PLAN_PROBLEM).starts_with("pool --dt f64"));
  kiln::run(KILN_DATA_DOUBLE, kilnPoolingForward, handle, pooling, 1.0, x, x_data.data(), 1.0, y,
            y_data.data());
  BOOST_TEST(y_data.read() == (std::vector<double>{12, 9, -3, -9}),
             boost::test_tools::per_element());

  kiln::Plan backward(KILN_DATA_DOUBLE, kilnCreatePoolingBackwardPlan, handle, pooling, y, x, x);
  backward.finalize();
  backward.run(kilnExecutePoolingBackward, handle, 1.0, y_data.data(), x_data.data(), 1.0,
               dx_data.data());
  BOOST_TEST(dx_data.read() == (std::vector<double>{100, 112, 109, 100, 97, 100, 91, 100}),
             boost::test_tools::per_element());

  // An average: without x.
  const kiln::PoolingDescriptor average(
      {.window = {1, 2}, .mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING});
  kiln::run(KILN_DATA_DOUBLE, kilnPoolingBackward, handle, average, 1.0, y, y_data.data(), nullptr,
            nullptr, 0.0, x, dx_data.data());
  BOOST_TEST(dx_data.read() == (std::vector<double>{6, 6, 4.5, 4.5, -1.5, -1.5, -4.5, -4.5}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(activations_softmax_and_tensor_operations) {
  kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor t(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {1, 2, 1, 2});
  const test::Buffer<float> x({-2, 3, 8, -1}), y({0, 0, 0, 0});
  const kiln::ActivationDescriptor clipped(KILN_ACTIVATION_CLIPPED_RELU, 6);
  kiln::Plan plan(KILN_DATA_FLOAT, kilnCreateActivationForwardPlan, handle, clipped, t, t);
  plan.finalize();
  plan.run(kilnExecuteActivationForward, handle, 0.5, x.data(), 0.0, y.data());
  BOOST_TEST(y.read() == (std::vector<float>{0, 1.5, 3, 0}), boost::test_tools::per_element());

  const kiln::ActivationDescriptor relu(KILN_ACTIVATION_RELU);
  kiln::run(KILN_DATA_FLOAT, kilnActivationForward, handle, relu, 1.0, t, x.data(), 0.0, t,
            x.data());
  BOOST_TEST(x.read() == (std::vector<float>{0, 3, 8, 0}), boost::test_tools::per_element());

  kiln::run(KILN_DATA_FLOAT, kilnOpTensor, handle, KILN_OP_TENSOR_MUL, 2.0, t, x.data(), 1.0, t,
            y.data(), 0.0, t, y.data());
  BOOST_TEST(y.read() == (std::vector<float>{0, 9, 48, 0}), boost::test_tools::per_element());

  const test::Buffer<float> equal({5, 5, 5, 5});
  kiln::run(KILN_DATA_FLOAT, kilnSoftmaxForward, handle, KILN_SOFTMAX_ACCURATE,
            KILN_SOFTMAX_MODE_INSTANCE, 1.0, t, equal.data(), 0.0, t, y.data());
  BOOST_TEST(y.read() == (std::vector<float>{0.25, 0.25, 0.25, 0.25}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(failures_are_exceptions) {
  const auto is_bad_param = [](const kiln::Exception& error) {
    return error.status() == KILN_STATUS_BAD_PARAM &&
           std::string(error.what()).find("dims[1] is 0") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(
      kiln::TensorDescriptor(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, kiln::Sizes{1, 0, 1, 1}),
      kiln::Exception, is_bad_param);
  BOOST_CHECK_THROW(kiln::TensorDescriptor(KILN_DATA_FLOAT, {1, 1, 1}, {1, 1}), kiln::Exception);
  BOOST_CHECK_THROW(kiln::ConvolutionDescriptor({.pad_before = {1, 1}, .stride = {1}}),
                    kiln::Exception);
  BOOST_CHECK_THROW(kiln::Handle(KILN_DEVICE_HOST, 3), kiln::Exception);
  BOOST_CHECK_THROW(kiln::PoolingDescriptor({.window = {2, 2}, .stride = {1}}), kiln::Exception);
  const auto names_coefficient = [](const kiln::Exception& error) {
    return error.status() == KILN_STATUS_BAD_PARAM &&
           std::string(error.what()).find("coef is -1") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(kiln::ActivationDescriptor(KILN_ACTIVATION_ELU, -1), kiln::Exception,
                        names_coefficient);

  kiln::Handle handle(test::device_kind());
  const kiln::TensorDescriptor t(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {1, 2, 1, 2});
  kiln::Plan plan(KILN_DATA_FLOAT, kilnCreateAddTensorPlan, handle, t, t);
  const test::Buffer<float> x({1, 2, 3, 4}), y({0, 0, 0, 0});
  const auto is_unfinalized = [](const kiln::Exception& error) {
    return error.status() == KILN_STATUS_NOT_INITIALIZED;
  };
  BOOST_CHECK_EXCEPTION(plan.run(kilnExecuteAddTensor, handle, 1.0, x.data(), 0.0, y.data()),
                        kiln::Exception, is_unfinalized);
  plan.finalize();
  BOOST_CHECK_THROW(plan.run(kilnExecuteTransformTensor, handle, 1.0, x.data(), 0.0, y.data()),
                    kiln::Exception);
  const kiln::TensorDescriptor other(KILN_TENSOR_NCHW, KILN_DATA_FLOAT, {1, 3, 1, 2});
  BOOST_CHECK_THROW(kiln::Plan(KILN_DATA_FLOAT, kilnCreateTransformTensorPlan, handle, t, other),
                    kiln::Exception);
}

BOOST_AUTO_TEST_SUITE_END()
