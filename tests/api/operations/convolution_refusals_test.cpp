// The refusals of the gradients, the transposed convolution and the fused forward pass, with their
// messages.
#include "convolution_shapes.hpp"

using namespace test;

namespace {

// The descriptors of the five operations, each replaceable, and each operation's status for them.
struct Scene {
  Shapes s{KILN_DATA_FLOAT};
  std::shared_ptr<const TensorDesc> x = describe(s.x), y = describe(s.y), bias = describe(s.bias);
  std::shared_ptr<const FilterDesc> w = describe_filter(s.w);
  std::shared_ptr<const ConvolutionDesc> c = describe(spec_of(KILN_DATA_FLOAT));
  ActivationDesc relu{KILN_ACTIVATION_RELU};

  kilnStatus_t dgrad(kilnFilterDescriptor_t w_desc, kilnTensorDescriptor_t dy,
                     kilnConvolutionDescriptor_t conv, kilnTensorDescriptor_t dx) const {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateConvolutionBackwardDataPlan(h, w_desc, dy, conv, dx, plan);
    });
  }
  kilnStatus_t wgrad(kilnTensorDescriptor_t x_desc, kilnTensorDescriptor_t dy,
                     kilnConvolutionDescriptor_t conv, kilnFilterDescriptor_t dw) const {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateConvolutionBackwardFilterPlan(h, x_desc, dy, conv, dw, plan);
    });
  }
  kilnStatus_t bgrad(kilnTensorDescriptor_t dy, kilnTensorDescriptor_t db) const {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateConvolutionBackwardBiasPlan(h, dy, db, plan);
    });
  }
  kilnStatus_t transposed(kilnTensorDescriptor_t x_desc, kilnFilterDescriptor_t w_desc,
                          kilnConvolutionDescriptor_t conv, kilnTensorDescriptor_t y_desc) const {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateConvolutionTransposedPlan(h, x_desc, w_desc, conv, y_desc, plan);
    });
  }
  kilnStatus_t fused(kilnTensorDescriptor_t z, kilnTensorDescriptor_t bias_desc,
                     kilnActivationDescriptor_t activation) const {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateConvolutionBiasActivationForwardPlan(h, *x, *w, *c, z, bias_desc, activation,
                                                            *y, plan);
    });
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(convolution_refusals)

BOOST_AUTO_TEST_CASE(output_sizes_of_the_transposed_convolution) {
  const Scene scene;
  std::int64_t dims[5];
  const auto ask = [&](kilnTensorDescriptor_t x, kilnFilterDescriptor_t w,
                       kilnConvolutionDescriptor_t c, const std::int64_t* extra, int rank = 4) {
    return kilnGetConvolutionTransposedOutputDim(c, x, w, extra, rank, dims);
  };
  // (5 - 1) * 2 + 3 - 1 - 2 = 8, and 7 - 1 + 3 - 0 - 1 = 8: of the two heights whose convolution
  // has 5 rows, 8 and 9, output padding chooses the larger.
  succeeds(ask(*scene.y, *scene.w, *scene.c, nullptr));
  BOOST_TEST(Sizes(dims, dims + 4) == (Sizes{2, 4, 8, 8}));
  const std::int64_t extra[] = {1, 0};
  succeeds(ask(*scene.y, *scene.w, *scene.c, extra));
  BOOST_TEST(Sizes(dims, dims + 4) == (Sizes{2, 4, 9, 8}));

  const TensorDesc unset;
  const ConvolutionDesc unset_convolution;
  const std::int64_t too_much[] = {0, 2}, negative[] = {-1, 0};
  bad_param(ask(nullptr, *scene.w, *scene.c, nullptr), {"xDesc is null"});
  bad_param(ask(*scene.y, nullptr, *scene.c, nullptr), {"wDesc is null"});
  bad_param(ask(*scene.y, *scene.w, nullptr, nullptr), {"convDesc is null"});
  fails(ask(unset, *scene.w, *scene.c, nullptr), KILN_STATUS_NOT_INITIALIZED,
        {"xDesc", "never set"});
  fails(ask(*scene.y, *scene.w, unset_convolution, nullptr), KILN_STATUS_NOT_INITIALIZED,
        {"convDesc", "never set"});
  bad_param(ask(*scene.y, *scene.w, *scene.c, too_much),
            {"outputPadding[1] is 2; expected 0 to 1, below the stride or the dilation"});
  bad_param(ask(*scene.y, *scene.w, *scene.c, negative),
            {"outputPadding[0] is -1; expected 0 to 1"});
  bad_param(ask(*scene.y, *scene.w, *scene.c, nullptr, 3), {"nbDims is 3; expected 4"});
  bad_param(
      kilnGetConvolutionTransposedOutputDim(*scene.c, *scene.y, *scene.w, nullptr, 4, nullptr),
      {"dims is null"});
  bad_param(ask(*scene.x, *scene.w, *scene.c, nullptr),
            {"xDesc has 4 channels (dims[1]); expected 6, the first size of wDesc"});
  bad_param(ask(*scene.y, FilterDesc(KILN_DATA_DOUBLE, {6, 2, 3, 2}), *scene.c, nullptr),
            {"wDesc has data type f64; expected f32, as xDesc has"});
  bad_param(ask(TensorDesc(KILN_DATA_FLOAT, {2, 6, 5}), *scene.w, *scene.c, nullptr),
            {"xDesc has 3 dimensions; expected 4, for convDesc has 2 of space"});
  const ConvolutionDesc shrunk({9, 9}, {9, 9}, {1, 1}, {1, 1});
  bad_param(ask(*scene.y, *scene.w, shrunk, nullptr), {"xDesc: dims[2] is 5", "padding 9 and 9"});
  // Groups that do not divide the filters, in any number.
  const ConvolutionDesc grouped({0, 0}, {0, 0}, {1, 1}, {1, 1}, std::int64_t{1} << 62);
  bad_param(ask(*scene.y, *scene.w, grouped, nullptr),
            {"wDesc has 6 output channels", "multiple of groupCount 4611686018427387904"});
}

BOOST_AUTO_TEST_CASE(null_and_unset_descriptors) {
  const Scene s;
  const TensorDesc unset;
  const FilterDesc unset_filter;
  const ConvolutionDesc unset_convolution;
  const ActivationDesc unset_activation;
  bad_param(s.dgrad(nullptr, *s.y, *s.c, *s.x), {"wDesc is null"});
  bad_param(s.dgrad(*s.w, nullptr, *s.c, *s.x), {"dyDesc is null"});
  bad_param(s.dgrad(*s.w, *s.y, nullptr, *s.x), {"convDesc is null"});
  bad_param(s.dgrad(*s.w, *s.y, *s.c, nullptr), {"dxDesc is null"});
  bad_param(s.wgrad(nullptr, *s.y, *s.c, *s.w), {"xDesc is null"});
  bad_param(s.wgrad(*s.x, nullptr, *s.c, *s.w), {"dyDesc is null"});
  bad_param(s.wgrad(*s.x, *s.y, nullptr, *s.w), {"convDesc is null"});
  bad_param(s.wgrad(*s.x, *s.y, *s.c, nullptr), {"dwDesc is null"});
  bad_param(s.bgrad(nullptr, *s.bias), {"dyDesc is null"});
  bad_param(s.bgrad(*s.y, nullptr), {"dbDesc is null"});
  bad_param(s.transposed(nullptr, *s.w, *s.c, *s.x), {"xDesc is null"});
  bad_param(s.transposed(*s.y, nullptr, *s.c, *s.x), {"wDesc is null"});
  bad_param(s.transposed(*s.y, *s.w, nullptr, *s.x), {"convDesc is null"});
  bad_param(s.transposed(*s.y, *s.w, *s.c, nullptr), {"yDesc is null"});
  bad_param(s.fused(*s.y, *s.bias, nullptr), {"activationDesc is null"});
  const auto never = [](kilnStatus_t status, const char* name) {
    fails(status, KILN_STATUS_NOT_INITIALIZED, {name, "was created but never set"});
  };
  never(s.dgrad(unset_filter, *s.y, *s.c, *s.x), "wDesc");
  never(s.dgrad(*s.w, unset, *s.c, *s.x), "dyDesc");
  never(s.dgrad(*s.w, *s.y, unset_convolution, *s.x), "convDesc");
  never(s.dgrad(*s.w, *s.y, *s.c, unset), "dxDesc");
  never(s.wgrad(*s.x, *s.y, *s.c, unset_filter), "dwDesc");
  never(s.bgrad(unset, *s.bias), "dyDesc");
  never(s.bgrad(*s.y, unset), "dbDesc");
  never(s.transposed(unset, *s.w, *s.c, *s.x), "xDesc");
  never(s.transposed(*s.y, *s.w, *s.c, unset), "yDesc");
  never(s.fused(unset, *s.bias, s.relu), "zDesc");
  never(s.fused(*s.y, unset, s.relu), "biasDesc");
  never(s.fused(*s.y, *s.bias, unset_activation), "activationDesc");
}

// Messages use the argument names of the function that was called.
BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  const Scene s;
  const auto f32 = KILN_DATA_FLOAT, f64 = KILN_DATA_DOUBLE;
  const TensorDesc tall(f32, {2, 6, 6, 7}), narrow(f32, {2, 5, 9, 8}), line(f32, {2, 6, 5}),
      wide(f64, {2, 6, 5, 7}), three(f32, {1, 3, 1, 1});
  bad_param(s.dgrad(*s.w, tall, *s.c, *s.x),
            {"dyDesc has sizes 2x6x6x7; the convolution of dxDesc gives 2x6x5x7"});
  bad_param(s.dgrad(*s.w, line, *s.c, *s.x), {"dyDesc has sizes 2x6x5; the convolution of dxDesc"});
  bad_param(s.dgrad(*s.w, wide, *s.c, *s.x), {"dyDesc has data type f64; expected f32, as wDesc"});
  bad_param(s.dgrad(*s.w, *s.y, *s.c, narrow), {"dxDesc has 5 channels", "groupCount 2"});
  bad_param(s.dgrad(*s.w, *s.y, *s.c, TensorDesc(f32, {2, 4, 9, 8}, Sizes{0, 72, 8, 1})),
            {"dxDesc: strides are 0:72:8:1", "share an address"});
  bad_param(s.wgrad(*s.x, tall, *s.c, *s.w),
            {"dyDesc has sizes 2x6x6x7; the convolution gives 2x6x5x7"});
  bad_param(s.wgrad(*s.x, *s.y, *s.c, FilterDesc(f32, {6, 3, 3, 2})),
            {"dwDesc has 3 input channels", "expected 2", "xDesc"});
  bad_param(s.wgrad(*s.x, *s.y, *s.c, FilterDesc(f64, {6, 2, 3, 2})), {"dwDesc has data type f64"});
  bad_param(s.wgrad(*s.x, *s.y, *s.c, FilterDesc(f32, {6, 2, 3, 2}, Sizes{0, 6, 2, 1})),
            {"dwDesc: strides are 0:6:2:1", "share an address"});
  bad_param(s.wgrad(*s.x, *s.y, *s.c, FilterDesc(f32, {6, 2, 13, 2})),
            {"dwDesc: dims[2] is 13", "xDesc's dims[2] 9"});
  bad_param(s.bgrad(*s.y, three),
            {"dbDesc has sizes 1x3x1x1; expected 1x6x1x1, one element a channel of dyDesc"});
  bad_param(s.bgrad(*s.y, TensorDesc(f64, {1, 6, 1, 1})), {"dbDesc has data type f64"});
  bad_param(s.bgrad(*s.y, TensorDesc(f32, {1, 6, 1, 1}, Sizes{6, 0, 1, 1})),
            {"dbDesc: strides are 6:0:1:1"});
  bad_param(s.transposed(tall, *s.w, *s.c, *s.x),
            {"xDesc has sizes 2x6x6x7; the convolution of yDesc gives 2x6x5x7"});
  bad_param(s.transposed(*s.y, *s.w, *s.c, narrow), {"yDesc has 5 channels"});
  bad_param(s.fused(tall, *s.bias, s.relu), {"zDesc has sizes 2x6x6x7; expected 2x6x5x7"});
  bad_param(s.fused(wide, *s.bias, s.relu), {"zDesc has data type f64; expected f32"});
  bad_param(s.fused(*s.y, three, s.relu),
            {"biasDesc has sizes 1x3x1x1; expected 1x6x1x1, one element a channel of yDesc"});
  bad_param(s.fused(*s.y, TensorDesc(f64, {1, 6, 1, 1}), s.relu), {"biasDesc has data type f64"});
}

// A data gradient has as many phases as there are positions modulo the stride.
BOOST_AUTO_TEST_CASE(strides_of_very_many_phases_find_no_engine) {
  const TestHandle handle;
  const auto f32 = KILN_DATA_FLOAT;
  const TensorDesc dx(f32, {1, 1, 1000, 1000}), dy(f32, {1, 1, 2, 2});
  const FilterDesc w(f32, {1, 1, 3, 3});
  const ConvolutionDesc convolution({0, 0}, {0, 0}, {900, 900}, {1, 1});
  kilnPlan_t plan = nullptr;
  succeeds(kilnCreateConvolutionBackwardDataPlan(handle, w, dy, convolution, dx, &plan));
  fails(kilnFinalizePlan(plan), KILN_STATUS_NOT_SUPPORTED,
        {"strides are 1x900x900 for a dx of 1x1000x1000", "at most 65536 phases"});
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_SUITE_END()
