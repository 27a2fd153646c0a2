// Pooling descriptors, pooling and its gradient.
#include "operation_check.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;
constexpr kilnPoolingMode_t modes[] = {KILN_POOLING_MAX, KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                       KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING};

PoolingSpec spec_of(kilnPoolingMode_t mode) {
  PoolingSpec spec;
  spec.spatial = 2;
  spec.mode = mode;
  spec.window = {3, 2, 1};
  spec.pad_before = {1, 0};
  spec.pad_after = {2, 1};
  spec.stride = {2, 1, 1};
  spec.dilation = {1, 2, 1};
  return spec;
}

void check_forward(const PoolingSpec& spec, const Tensor& from, const Tensor& to) {
  const auto p = describe(spec);
  const auto x = describe(from), y = describe(to);
  check(make_pooling_forward(spec, from, to),
        {.operation = "PoolingForward",
         .names = {"x", "y"},
         .create =
             [=](kilnHandle_t h, kilnPlan_t* plan) {
               return kilnCreatePoolingForwardPlan(h, *p, *x, *y, plan);
             },
         .execute = usual_execute<1>(kilnExecutePoolingForward),
         .immediate =
             [=](kilnHandle_t h, const Arguments& a) {
               return kilnPoolingForward(h, *p, a.alpha, *x, a.at[0], a.beta, *y, a.at[1]);
             }});
}

// Checks the gradient; that of an average has no x, neither descriptor nor pointer.
void check_backward(const PoolingSpec& spec, const Tensor& to, const Tensor& from) {
  const bool max = spec.mode == KILN_POOLING_MAX;
  const auto p = describe(spec);
  const auto x_desc = describe(from), dy = describe(to), dx = describe(from);
  const kilnTensorDescriptor_t x = max ? static_cast<kilnTensorDescriptor_t>(*x_desc) : nullptr;
  const auto x_of = [=](const Arguments& a) { return max ? a.at[1] : nullptr; };
  Calls calls{.operation = "PoolingBackward", .names = {"dy", "dx"}};
  if (max) calls.names.insert(calls.names.begin() + 1, "x");
  calls.create = [=](kilnHandle_t h, kilnPlan_t* plan) {
    return kilnCreatePoolingBackwardPlan(h, *p, *dy, x, *dx, plan);
  };
  calls.execute = [=](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
    return kilnExecutePoolingBackward(h, plan, a.alpha, a.at[0], x_of(a), a.beta, a.at.back());
  };
  calls.immediate = [=, keep = x_desc](kilnHandle_t h, const Arguments& a) {
    return kilnPoolingBackward(h, *p, a.alpha, *dy, a.at[0], x, x_of(a), a.beta, *dx, a.at.back());
  };
  check(make_pooling_backward(spec, to, max ? &from : nullptr, from), calls);
}

struct Read {
  kilnPoolingMode_t mode{};
  kilnNanPropagation_t nan{};
  int count = 0;
  Sizes window = Sizes(3, -7), before = window, after = window, stride = window, dilation = window;
};

Read read(kilnPoolingDescriptor_t descriptor, int requested = 3) {
  Read r;
  succeeds(kilnGetPoolingNdDescriptor(descriptor, requested, &r.mode, &r.nan, &r.count,
                                      r.window.data(), r.before.data(), r.after.data(),
                                      r.stride.data(), r.dilation.data()));
  return r;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pooling)

BOOST_AUTO_TEST_CASE(descriptors_read_back) {
  PoolingSpec spec = spec_of(KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  spec.nan = KILN_NOT_PROPAGATE_NAN;
  const PoolingDesc pooling(spec);
  const Read got = read(pooling);
  BOOST_TEST(got.mode == KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  BOOST_TEST(got.nan == KILN_NOT_PROPAGATE_NAN);
  BOOST_TEST(got.count == 2);
  BOOST_TEST(got.window == (Sizes{3, 2, -7}));
  BOOST_TEST(got.before == (Sizes{1, 0, -7}));
  BOOST_TEST(got.after == (Sizes{2, 1, -7}));
  BOOST_TEST(got.stride == (Sizes{2, 1, -7}));
  BOOST_TEST(got.dilation == (Sizes{1, 2, -7}));
  BOOST_TEST(read(pooling, 1).window == (Sizes{3, -7, -7}));
  succeeds(kilnGetPoolingNdDescriptor(pooling, 3, nullptr, nullptr, nullptr, nullptr, nullptr,
                                      nullptr, nullptr, nullptr));

  // Left out: padding after as before, dilation 1.
  const std::int64_t window[] = {4, 5, 6}, pad[] = {1, 2, 3}, stride[] = {3, 2, 1};
  succeeds(kilnSetPoolingNdDescriptor(pooling, KILN_POOLING_MAX, KILN_PROPAGATE_NAN, 3, window, pad,
                                      nullptr, stride, nullptr));
  BOOST_TEST(read(pooling).after == (Sizes{1, 2, 3}));
  BOOST_TEST(read(pooling).dilation == (Sizes{1, 1, 1}));
  succeeds(
      kilnSetPooling2dDescriptor(pooling, KILN_POOLING_MAX, KILN_PROPAGATE_NAN, 3, 2, 2, 1, 5, 4));
  BOOST_TEST(read(pooling).window == (Sizes{3, 2, -7}));
  BOOST_TEST(read(pooling).after == (Sizes{2, 1, -7}));
  BOOST_TEST(read(pooling).stride == (Sizes{5, 4, -7}));
}

BOOST_AUTO_TEST_CASE(wrong_values_are_named_and_change_nothing) {
  bad_param(kilnCreatePoolingDescriptor(nullptr), {"descriptor is null"});
  succeeds(kilnDestroyPoolingDescriptor(nullptr));
  const PoolingDesc unset, pooling(spec_of(KILN_POOLING_MAX));
  fails(kilnGetPoolingNdDescriptor(unset, 3, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   nullptr, nullptr),
        KILN_STATUS_NOT_INITIALIZED, {"descriptor was created but never set"});
  bad_param(kilnGetPoolingNdDescriptor(pooling, -1, nullptr, nullptr, nullptr, nullptr, nullptr,
                                       nullptr, nullptr, nullptr),
            {"arrayLengthRequested is -1; expected at least 0"});
  bad_param(kilnGetPoolingNdDescriptor(nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr,
                                       nullptr, nullptr, nullptr),
            {"descriptor is null; expected a pooling descriptor from kilnCreatePoolingDescriptor"});

  const std::int64_t far = std::int64_t{1} << 40;
  struct Row {
    int mode, nan, count;
    Sizes window, before, after, stride, dilation;  // empty: null
    std::vector<const char*> parts;
  };
  constexpr int max = KILN_POOLING_MAX, nan = KILN_PROPAGATE_NAN;
  const Sizes one{1, 1, 1}, none{0, 0, 0}, three{3, 3, 3};
  const Row rows[] = {
      {3, nan, 2, three, none, {}, one, {}, {"mode is 3", "EXCLUDE_PADDING (602)"}},
      {-1, nan, 2, three, none, {}, one, {}, {"mode is -1", "expected KILN_POOLING_MAX (600)"}},
      {max, 2, 2, three, none, {}, one, {}, {"nanPropagation is 2", "NOT_PROPAGATE_NAN (501)"}},
      {max, -1, 2, three, none, {}, one, {}, {"nanPropagation is -1"}},
      {max, nan, 0, three, none, {}, one, {}, {"arrayLength is 0; expected 1, 2 or 3"}},
      {max, nan, 4, three, none, {}, one, {}, {"arrayLength is 4"}},
      {max,
       nan,
       2,
       {},
       none,
       {},
       one,
       {},
       {"window is null; expected an array of arrayLength values"}},
      {max, nan, 2, three, {}, {}, one, {}, {"padBefore is null"}},
      {max, nan, 2, three, none, {}, {}, {}, {"stride is null"}},
      {max, nan, 3, {3, 0, 3}, none, {}, one, {}, {"window[1] is 0; expected 1 to 2147483647"}},
      {max, nan, 3, {3, 3, -2}, none, {}, one, {}, {"window[2] is -2; expected 1"}},
      {max, nan, 1, {far}, none, {}, one, {}, {"window[0] is 1099511627776"}},
      {max, nan, 2, three, none, {}, {1, 0}, {}, {"stride[1] is 0; expected 1"}},
      {max, nan, 2, three, none, {}, {-1, 1}, {}, {"stride[0] is -1; expected 1"}},
      {max, nan, 2, three, none, {}, one, {1, 0}, {"dilation[1] is 0; expected 1"}},
      {max, nan, 2, three, none, {}, one, {far, 1}, {"dilation[0] is 1099511627776"}},
      {max, nan, 2, three, {far, 0}, {}, one, {}, {"padBefore[0] is 1099511627776; expected -21"}},
      {max, nan, 2, three, {0, -far}, {}, one, {}, {"padBefore[1] is -1099511627776"}},
      {max, nan, 2, three, none, {0, far}, one, {}, {"padAfter[1] is 1099511627776"}},
      {max, nan, 2, three, none, {-far, 0}, one, {}, {"padAfter[0] is -1099511627776"}},
  };
  const auto data = [](const Sizes& sizes) { return sizes.empty() ? nullptr : sizes.data(); };
  for (const Row& row : rows) {
    bad_param(kilnSetPoolingNdDescriptor(pooling, static_cast<kilnPoolingMode_t>(row.mode),
                                         static_cast<kilnNanPropagation_t>(row.nan), row.count,
                                         data(row.window), data(row.before), data(row.after),
                                         data(row.stride), data(row.dilation)),
              {});
    for (const char* part : row.parts) message_has(part);
  }
  const auto set2d = [&](std::int64_t wh, std::int64_t ww, std::int64_t ph, std::int64_t pw,
                         std::int64_t sh, std::int64_t sw) {
    return kilnSetPooling2dDescriptor(pooling, KILN_POOLING_MAX, KILN_PROPAGATE_NAN, wh, ww, ph, pw,
                                      sh, sw);
  };
  bad_param(set2d(0, 2, 0, 0, 1, 1), {"windowH is 0; expected 1 to 2147483647"});
  bad_param(set2d(2, far, 0, 0, 1, 1), {"windowW is 1099511627776"});
  bad_param(set2d(2, 2, -far, 0, 1, 1), {"padH is -1099511627776; expected -2147483647"});
  bad_param(set2d(2, 2, 0, far, 1, 1), {"padW is 1099511627776"});
  bad_param(set2d(2, 2, 0, 0, 0, 1), {"strideH is 0"});
  bad_param(set2d(2, 2, 0, 0, 1, -1), {"strideW is -1"});
  BOOST_TEST(read(pooling).window == (Sizes{3, 2, -7}));
  BOOST_TEST(read(pooling).stride == (Sizes{2, 1, -7}));
}

BOOST_AUTO_TEST_CASE(ceil_mode_reads_back_and_stays) {
  PoolingDesc pooling(spec_of(KILN_POOLING_MAX));
  int ceil = -7;
  succeeds(kilnGetPoolingCeilMode(pooling, &ceil));
  BOOST_TEST(ceil == 0);
  succeeds(kilnSetPoolingCeilMode(pooling, 1));
  succeeds(
      kilnSetPooling2dDescriptor(pooling, KILN_POOLING_MAX, KILN_PROPAGATE_NAN, 3, 3, 1, 1, 2, 2));
  succeeds(kilnGetPoolingCeilMode(pooling, &ceil));
  BOOST_TEST(ceil == 1);
  std::int64_t dims[4];
  succeeds(kilnGetPoolingForwardOutputDim(pooling, TensorDesc(f32, {1, 1, 4, 5}), 4, dims));
  BOOST_TEST(Sizes(dims, dims + 4) == (Sizes{1, 1, 3, 3}));
  bad_param(kilnSetPoolingCeilMode(pooling, 2), {"ceilMode is 2; expected 0", "or 1 (up)"});
  bad_param(kilnSetPoolingCeilMode(nullptr, 1), {"descriptor is null"});
  bad_param(kilnGetPoolingCeilMode(pooling, nullptr), {"ceilMode is null"});
}

// torch.nn.functional.avg_pool2d(x, (1, 3), (1, 2), (0, 1), ceil_mode=True), worked out by its
// definition: windows begin at -1, 1 and 3, and of the last one, 3 to 6, only 3 and the place of
// the padding after, 4, count. Without ceil mode the same output, a padding of 2 after, divides
// by 3.
BOOST_AUTO_TEST_CASE(the_divisor_of_an_overhang) {
  const float x[] = {1, 2, 3, 4}, dy[] = {3, 6, 8}, one = 1, zero = 0;
  const std::pair<int, std::vector<float>> cases[] = {{1, {1, 3, 2, 1, 3, 2, 6}},
                                                      {0, {1, 3, 4.f / 3, 1, 3, 2, 14.f / 3}}};
  const TestHandle handle;
  const TensorDesc x_desc(f32, {1, 1, 1, 4}), y_desc(f32, {1, 1, 1, 3});
  for (const auto& [ceil, expected] : cases) {
    PoolingDesc pooling;
    const std::int64_t window[] = {1, 3}, before[] = {0, 1}, after[] = {0, ceil == 1 ? 1 : 2},
                       stride[] = {1, 2};
    succeeds(kilnSetPoolingNdDescriptor(pooling, KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                        KILN_PROPAGATE_NAN, 2, window, before, after, stride,
                                        nullptr));
    succeeds(kilnSetPoolingCeilMode(pooling, ceil));
    const Buffer<float> in({x, x + 4}), out({9, 9, 9}), out_gradient({dy, dy + 3}),
        in_gradient({9, 9, 9, 9});
    succeeds(
        kilnPoolingForward(handle, pooling, &one, x_desc, in.data(), &zero, y_desc, out.data()));
    succeeds(kilnPoolingBackward(handle, pooling, &one, y_desc, out_gradient.data(), nullptr,
                                 nullptr, &zero, x_desc, in_gradient.data()));
    std::vector<float> got = out.read();
    for (const float value : in_gradient.read()) got.push_back(value);
    BOOST_TEST_REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      BOOST_TEST(got[i] == expected[i], boost::test_tools::tolerance(1e-6f));
  }
}

BOOST_AUTO_TEST_CASE(output_sizes) {
  const PoolingDesc pooling(spec_of(KILN_POOLING_MAX)), unset;
  const TensorDesc x(f32, {2, 3, 9, 8}), unset_x;
  std::int64_t dims[] = {-7, -7, -7, -7, -7};
  // (9 + 1 + 2 - 3) / 2 + 1, and 8 + 0 + 1 - 3 + 1
  succeeds(kilnGetPoolingForwardOutputDim(pooling, x, 4, dims));
  BOOST_TEST(Sizes(dims, dims + 5) == (Sizes{2, 3, 5, 7, -7}));
  bad_param(kilnGetPoolingForwardOutputDim(nullptr, x, 4, dims), {"poolingDesc is null"});
  bad_param(kilnGetPoolingForwardOutputDim(pooling, nullptr, 4, dims), {"xDesc is null"});
  fails(kilnGetPoolingForwardOutputDim(unset, x, 4, dims), KILN_STATUS_NOT_INITIALIZED,
        {"poolingDesc was created but never set"});
  fails(kilnGetPoolingForwardOutputDim(pooling, unset_x, 4, dims), KILN_STATUS_NOT_INITIALIZED,
        {"xDesc was created but never set"});
  bad_param(kilnGetPoolingForwardOutputDim(pooling, x, 5, dims), {"nbDims is 5; expected 4"});
  bad_param(kilnGetPoolingForwardOutputDim(pooling, x, 4, nullptr), {"dims is null"});
  bad_param(kilnGetPoolingForwardOutputDim(pooling, TensorDesc(f32, {2, 3, 9}), 3, dims),
            {"xDesc has 3 dimensions; expected 4, for poolingDesc has 2 of space"});
  PoolingSpec large = spec_of(KILN_POOLING_MAX);
  large.window = {20, 2, 1};
  bad_param(kilnGetPoolingForwardOutputDim(PoolingDesc(large), x, 4, dims),
            {"window[0] is 20", "xDesc's dims[2] 9", "padding 1 and 2"});
  large.dilation = {INT32_MAX, 2, 1};
  large.window = {INT32_MAX, 2, 1};
  bad_param(kilnGetPoolingForwardOutputDim(PoolingDesc(large), x, 4, dims),
            {"window[0] is 2147483647 with dilation 2147483647"});
}

BOOST_AUTO_TEST_CASE(forward) {
  for (const kilnPoolingMode_t mode : modes) {
    check_forward(spec_of(mode), tensor(f32, {2, 3, 9, 8}), tensor(f32, {2, 3, 5, 7}));
    check_forward(spec_of(mode), tensor(KILN_DATA_DOUBLE, {2, 3, 9, 8}, KILN_TENSOR_NHWC),
                  tensor(KILN_DATA_DOUBLE, {2, 3, 5, 7}, KILN_TENSOR_NHWC));
  }
  check_forward(spec_of(KILN_POOLING_MAX), tensor(KILN_DATA_HALF, {2, 3, 9, 8}, {0, 100, 11, 1}),
                tensor(KILN_DATA_HALF, {2, 3, 5, 7}, {1, 2, 6, 30}));
}

BOOST_AUTO_TEST_CASE(backward) {
  for (const kilnPoolingMode_t mode : modes) {
    check_backward(spec_of(mode), tensor(f32, {2, 3, 5, 7}), tensor(f32, {2, 3, 9, 8}));
    check_backward(spec_of(mode), tensor(KILN_DATA_DOUBLE, {2, 3, 5, 7}, KILN_TENSOR_NHWC),
                   tensor(KILN_DATA_DOUBLE, {2, 3, 9, 8}, KILN_TENSOR_NHWC));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  const PoolingDesc max(spec_of(KILN_POOLING_MAX)), unset,
      average(spec_of(KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING));
  const TensorDesc x(f32, {2, 3, 9, 8}), y(f32, {2, 3, 5, 7}), wrong(f32, {2, 3, 5, 8}),
      wide(KILN_DATA_DOUBLE, {2, 3, 5, 7}), line(f32, {2, 3, 9}), never,
      folded_y(f32, {2, 3, 5, 7}, Sizes{0, 35, 7, 1}),
      folded_x(f32, {2, 3, 9, 8}, Sizes{216, 72, 0, 1});
  const auto forward = [&](kilnPoolingDescriptor_t p, kilnTensorDescriptor_t from,
                           kilnTensorDescriptor_t to) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreatePoolingForwardPlan(h, p, from, to, plan);
    });
  };
  const auto backward = [&](kilnPoolingDescriptor_t p, kilnTensorDescriptor_t dy,
                            kilnTensorDescriptor_t saved, kilnTensorDescriptor_t dx) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreatePoolingBackwardPlan(h, p, dy, saved, dx, plan);
    });
  };
  bad_param(forward(nullptr, x, y), {"poolingDesc is null"});
  bad_param(forward(max, nullptr, y), {"xDesc is null"});
  bad_param(forward(max, x, nullptr), {"yDesc is null"});
  fails(forward(unset, x, y), KILN_STATUS_NOT_INITIALIZED, {"poolingDesc was created"});
  fails(forward(max, never, y), KILN_STATUS_NOT_INITIALIZED, {"xDesc was created"});
  fails(forward(max, x, never), KILN_STATUS_NOT_INITIALIZED, {"yDesc was created"});
  bad_param(forward(max, x, wrong),
            {"yDesc has sizes 2x3x5x8; the pooling of xDesc gives 2x3x5x7"});
  bad_param(forward(max, x, wide), {"yDesc has data type f64; expected f32, as xDesc has"});
  bad_param(forward(max, line, y), {"xDesc has 3 dimensions; expected 4"});
  bad_param(forward(max, x, line), {"yDesc has sizes 2x3x9; the pooling of xDesc gives"});
  bad_param(forward(max, x, folded_y), {"yDesc: strides are 0:35:7:1", "share an address"});

  bad_param(backward(nullptr, y, x, x), {"poolingDesc is null"});
  bad_param(backward(max, nullptr, x, x), {"dyDesc is null"});
  bad_param(backward(max, y, x, nullptr), {"dxDesc is null"});
  bad_param(backward(max, y, nullptr, x), {"xDesc is null", "where the maximum was"});
  succeeds(backward(average, y, nullptr, x));
  fails(backward(max, y, never, x), KILN_STATUS_NOT_INITIALIZED, {"xDesc was created"});
  bad_param(backward(max, wrong, x, x),
            {"dyDesc has sizes 2x3x5x8; the pooling of dxDesc gives 2x3x5x7"});
  bad_param(backward(max, wide, x, x), {"dyDesc has data type f64; expected f32, as dxDesc has"});
  bad_param(backward(max, y, wrong, x), {"xDesc has sizes 2x3x5x8; expected 2x3x9x8, as dxDesc"});
  bad_param(backward(max, y, x, line), {"dxDesc has 3 dimensions; expected 4"});
  bad_param(backward(max, y, x, folded_x), {"dxDesc: strides are 216:72:0:1"});
  PoolingSpec large = spec_of(KILN_POOLING_MAX);
  large.window = {20, 2, 1};
  bad_param(backward(PoolingDesc(large), y, x, x), {"window[0] is 20", "dxDesc's dims[2] 9"});
}

// Objects of other kinds where a descriptor is expected, in the calls that look at it first.
BOOST_AUTO_TEST_CASE(an_object_of_another_kind_is_refused) {
  const TestHandle handle;
  const TensorDesc x(f32, {1, 1, 1, 1});
  const float one = 1;
  const Buffer<float> data(std::vector<float>{1});
  const kilnTensorDescriptor_t right = x;
  kilnPoolingDescriptor_t wrong = nullptr;
  std::memcpy(&wrong, &right, sizeof wrong);
  bad_param(kilnPoolingBackward(handle, wrong, &one, x, data.data(), x, data.data(), &one, x,
                                data.data()),
            {"poolingDesc is not a pooling descriptor", "not destroyed"});
  bad_param(kilnPoolingBackward(handle, nullptr, &one, x, data.data(), x, data.data(), &one, x,
                                data.data()),
            {"poolingDesc is null"});
}

// The descriptor decides whether NaN propagates.
BOOST_AUTO_TEST_CASE(nan_propagation) {
  const TestHandle handle;
  const TensorDesc x(f32, {1, 1, 1, 4}), y(f32, {1, 1, 1, 2});
  const float one = 1, zero = 0, nan = std::nanf("");
  const Buffer<float> from({1, nan, 3, 2}), to({9, 9});
  PoolingSpec spec;
  spec.spatial = 2;
  spec.window = {1, 2, 1};
  spec.stride = {1, 2, 1};
  succeeds(
      kilnPoolingForward(handle, PoolingDesc(spec), &one, x, from.data(), &zero, y, to.data()));
  BOOST_TEST((std::isnan(to.read()[0]) && to.read()[1] == 3));
  spec.nan = KILN_NOT_PROPAGATE_NAN;
  succeeds(
      kilnPoolingForward(handle, PoolingDesc(spec), &one, x, from.data(), &zero, y, to.data()));
  BOOST_TEST(to.read() == (std::vector<float>{1, 3}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
