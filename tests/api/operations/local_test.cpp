// Locally connected layers and their gradients.
#include "operation_check.hpp"

using namespace test;

namespace {

ConvolutionSpec spec_of(DataType type) {
  ConvolutionSpec spec;
  spec.spatial = 2;
  spec.pad_before = {1, 0};
  spec.pad_after = {1, 1};
  spec.stride = {2, 1};
  spec.compute_type = compute_type(type);
  return spec;
}

struct Shapes {
  Tensor x, w, y, bias;
  explicit Shapes(DataType type, kilnTensorFormat_t layout = KILN_TENSOR_NCHW)
      : x(tensor(type, {2, 3, 6, 5}, layout)),
        w(tensor(type, {3, 4, 5, 3, 3, 3})),
        y(tensor(type, {2, 5, 3, 4}, layout)),
        bias(tensor(type, {1, 5, 3, 4}, layout)) {}
};

void check_forward(const Shapes& s, bool biased) {
  const ConvolutionSpec spec = spec_of(s.x.type);
  const auto x = describe(s.x), w = describe(s.w), y = describe(s.y), b = describe(s.bias);
  const auto c = describe(spec);
  const kilnTensorDescriptor_t bias = biased ? static_cast<kilnTensorDescriptor_t>(*b) : nullptr;
  const auto bias_of = [=](const Arguments& a) { return biased ? a.at[2] : nullptr; };
  Calls calls{.operation = "LocalForward", .names = {"x", "w"}};
  if (biased) calls.names.emplace_back("bias");
  calls.names.emplace_back("y");
  calls.create = [=](kilnHandle_t h, kilnPlan_t* plan) {
    return kilnCreateLocalForwardPlan(h, *x, *w, *c, bias, *y, plan);
  };
  calls.execute = [=](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
    return kilnExecuteLocalForward(h, plan, a.alpha, a.at[0], a.at[1], a.beta, bias_of(a),
                                   a.at.back());
  };
  calls.immediate = [=, keep = b](kilnHandle_t h, const Arguments& a) {
    return kilnLocalForward(h, a.alpha, *x, a.at[0], *w, a.at[1], *c, a.beta, bias, bias_of(a), *y,
                            a.at.back());
  };
  check(make_local(spec, s.x, s.w, biased ? &s.bias : nullptr, s.y), calls);
}

void check_data_gradient(const Shapes& s) {
  const ConvolutionSpec spec = spec_of(s.x.type);
  const auto x = describe(s.x), w = describe(s.w), y = describe(s.y);
  const auto c = describe(spec);
  check(make_local_dgrad(spec, s.w, s.y, s.x),
        {.operation = "LocalBackwardData",
         .names = {"w", "dy", "dx"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateLocalBackwardDataPlan(h, *w, *y, *c, *x, plan);
             },
         .execute = usual_execute<2>(kilnExecuteLocalBackwardData),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnLocalBackwardData(h, a.alpha, *w, a.at[0], *y, a.at[1], *c, a.beta, *x,
                                            a.at[2]);
             }});
}

void check_filter_gradient(const Shapes& s) {
  const ConvolutionSpec spec = spec_of(s.x.type);
  const auto x = describe(s.x), w = describe(s.w), y = describe(s.y);
  const auto c = describe(spec);
  check(make_local_wgrad(spec, s.x, s.y, s.w),
        {.operation = "LocalBackwardFilter",
         .names = {"x", "dy", "dw"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreateLocalBackwardFilterPlan(h, *x, *y, *c, *w, plan);
             },
         .execute = usual_execute<2>(kilnExecuteLocalBackwardFilter),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnLocalBackwardFilter(h, a.alpha, *x, a.at[0], *y, a.at[1], *c, a.beta, *w,
                                              a.at[2]);
             }});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(local)

BOOST_AUTO_TEST_CASE(forward) {
  check_forward(Shapes(KILN_DATA_FLOAT), false);
  check_forward(Shapes(KILN_DATA_HALF, KILN_TENSOR_NHWC), true);
}

BOOST_AUTO_TEST_CASE(weights_of_each_image) {
  Shapes s(KILN_DATA_DOUBLE);
  s.w = tensor(KILN_DATA_DOUBLE, {2, 3, 4, 5, 3, 3, 3});
  check_forward(s, true);
  check_data_gradient(s);
  check_filter_gradient(s);
}

BOOST_AUTO_TEST_CASE(gradients) {
  check_data_gradient(Shapes(KILN_DATA_FLOAT));
  Shapes gaps(KILN_DATA_BFLOAT16, KILN_TENSOR_NHWC);
  gaps.w.strides = {900, 225, 45, 15, 5, 1};
  check_filter_gradient(gaps);
}

// A bias is left out as it was left out of the descriptors.
BOOST_AUTO_TEST_CASE(a_bias_where_none_was_described) {
  const TestHandle handle;
  const Shapes s(KILN_DATA_FLOAT);
  const auto x = describe(s.x), w = describe(s.w), y = describe(s.y);
  const auto c = describe(spec_of(KILN_DATA_FLOAT));
  const float one = 1;
  float element = 0;
  void* const p = &element;
  bad_param(kilnLocalForward(handle, &one, *x, p, *w, p, *c, &one, nullptr, p, *y, p),
            {"kilnLocalForward: bias is 0x", "expected null, as biasDesc is"});
  kilnPlan_t plan = nullptr;
  succeeds(kilnCreateLocalForwardPlan(handle, *x, *w, *c, nullptr, *y, &plan));
  succeeds(kilnFinalizePlan(plan));
  bad_param(kilnExecuteLocalForward(handle, plan, &one, p, p, &one, p, p),
            {"kilnExecuteLocalForward: bias is 0x", "expected null, as biasDesc is"});
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_SUITE_END()
