// A pointer to a tensor that the plan was made without is refused, and messages name the function
// and the arguments as the caller wrote them.
#include <boost/test/unit_test.hpp>

#include "api/operations/operation_check.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;

struct Scene {
  TestHandle handle;
  TensorDesc t{f32, {1, 2, 3, 4}}, bias{f32, {1, 2, 1, 1}};
  FilterDesc w{f32, {2, 2, 1, 1}};
  ConvolutionDesc convolution{{0, 0}, {0, 0}, {1, 1}, {1, 1}};
  Buffer<float> a{std::vector<float>(24, 1)}, b{std::vector<float>(24, 2)},
      y{std::vector<float>(24, 3)};
  float one = 1;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(left_out)

BOOST_AUTO_TEST_CASE(residual_and_bias) {
  const Scene s;
  const ActivationDesc relu(KILN_ACTIVATION_RELU);
  kilnPlan_t plan = nullptr;
  succeeds(kilnCreateConvolutionBiasActivationForwardPlan(s.handle, s.t, s.w, s.convolution,
                                                          nullptr, nullptr, relu, s.t, &plan));
  succeeds(kilnFinalizePlan(plan));
  const auto execute = [&](const void* z, const void* bias) {
    return kilnExecuteConvolutionBiasActivationForward(s.handle, plan, &s.one, s.a.data(),
                                                       s.b.data(), &s.one, z, bias, s.y.data());
  };
  const auto at_once = [&](const void* z, const void* bias) {
    return kilnConvolutionBiasActivationForward(s.handle, &s.one, s.t, s.a.data(), s.w, s.b.data(),
                                                s.convolution, &s.one, nullptr, z, nullptr, bias,
                                                relu, s.t, s.y.data());
  };
  bad_param(execute(s.a.data(), nullptr),
            {"kilnExecuteConvolutionBiasActivationForward: z is 0x", "expected null, as zDesc is"});
  bad_param(execute(nullptr, s.a.data()), {"bias is 0x", "expected null, as biasDesc is"});
  bad_param(at_once(s.a.data(), nullptr),
            {"kilnConvolutionBiasActivationForward: z is 0x", "expected null, as zDesc is"});
  bad_param(at_once(nullptr, s.a.data()), {"bias is 0x", "expected null, as biasDesc is"});
  BOOST_TEST(s.y.read() == std::vector<float>(24, 3), boost::test_tools::per_element());
  succeeds(execute(nullptr, nullptr));
  succeeds(at_once(nullptr, nullptr));
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_CASE(inputs_that_gradients_do_not_look_at) {
  const Scene s;
  PoolingSpec spec;
  spec.spatial = 2;
  spec.mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  const PoolingDesc average(spec);
  const auto pool = [&](kilnTensorDescriptor_t x_desc, const void* x) {
    return kilnPoolingBackward(s.handle, average, &s.one, s.t, s.a.data(), x_desc, x, &s.one, s.t,
                               s.y.data());
  };
  bad_param(pool(nullptr, s.b.data()), {"kilnPoolingBackward: x is 0x", "as xDesc is"});
  succeeds(pool(nullptr, nullptr));
  succeeds(pool(s.t, s.b.data()));  // described, but not read

  const ActivationDesc relu(KILN_ACTIVATION_RELU);
  const auto activate = [&](kilnTensorDescriptor_t x_desc, const void* x) {
    return kilnActivationBackward(s.handle, relu, &s.one, s.t, s.a.data(), s.t, s.b.data(), x_desc,
                                  x, &s.one, s.t, s.y.data());
  };
  bad_param(activate(nullptr, s.b.data()), {"kilnActivationBackward: x is 0x", "as xDesc is"});
  succeeds(activate(nullptr, nullptr));
  succeeds(activate(s.t, s.b.data()));
  kilnPlan_t plan = nullptr;
  succeeds(kilnCreateActivationBackwardPlan(s.handle, relu, s.t, s.t, nullptr, s.t, &plan));
  succeeds(kilnFinalizePlan(plan));
  bad_param(kilnExecuteActivationBackward(s.handle, plan, &s.one, s.a.data(), s.b.data(),
                                          s.b.data(), &s.one, s.y.data()),
            {"kilnExecuteActivationBackward: x is 0x"});
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_CASE(sizes_by_the_names_of_a_setter) {
  const TensorDesc t;
  const FilterDesc w;
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  bad_param(kilnSetTensor4dDescriptor(t, KILN_TENSOR_NCHW, f32, 1, huge, huge, 1),
            {"kilnSetTensor4dDescriptor: h is 1099511627776; expected sizes whose product"});
  bad_param(kilnSetFilter4dDescriptor(w, f32, KILN_TENSOR_NCHW, huge, huge, 1, 1),
            {"kilnSetFilter4dDescriptor: c is 1099511627776; expected sizes whose product"});
  bad_param(kilnSetFilter4dDescriptor(w, f32, KILN_TENSOR_NCHW, 0, 1, 1, 1),
            {"k is 0; expected at least 1"});
}

BOOST_AUTO_TEST_SUITE_END()
