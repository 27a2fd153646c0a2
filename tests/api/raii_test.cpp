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
}

BOOST_AUTO_TEST_SUITE_END()
