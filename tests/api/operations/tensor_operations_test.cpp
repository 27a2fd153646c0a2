// Transform, add, set, scale, binary operations and reductions of tensors.
#include <cmath>

#include "operation_check.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT, f64 = KILN_DATA_DOUBLE, f16 = KILN_DATA_HALF;
const Sizes sizes{2, 3, 5, 7};

void check_transform(const Tensor& from, const Tensor& to) {
  const auto x = describe(from), y = describe(to);
  Calls calls{
      .operation = "TransformTensor",
      .names = {"x", "y"},
      .create = [=](kilnHandle_t h,
                    kilnPlan_t* plan) { return kilnCreateTransformTensorPlan(h, *x, *y, plan); },
      .execute = usual_execute<1>(kilnExecuteTransformTensor),
      .immediate =
          [=](kilnHandle_t h, const Arguments& a) {
            return kilnTransformTensor(h, a.alpha, *x, a.at[0], a.beta, *y, a.at[1]);
          }};
  if (from == to) calls.in_place = {"x"};
  check(make_transform(from, to), calls);
}

void check_add(const Tensor& from, const Tensor& to) {
  const auto x = describe(from), y = describe(to);
  Calls calls{.operation = "AddTensor",
              .names = {"x", "y"},
              .create = [=](kilnHandle_t h,
                            kilnPlan_t* plan) { return kilnCreateAddTensorPlan(h, *x, *y, plan); },
              .execute = usual_execute<1>(kilnExecuteAddTensor),
              .immediate =
                  [=](kilnHandle_t h, const Arguments& a) {
                    return kilnAddTensor(h, a.alpha, *x, a.at[0], a.beta, *y, a.at[1]);
                  }};
  if (from == to) calls.in_place = {"x"};
  check(make_add(from, to), calls);
}

void check_set(const Tensor& to) {
  const auto y = describe(to);
  check(make_fill(to),
        {.operation = "SetTensor",
         .names = {"y"},
         .create = [=](kilnHandle_t h,
                       kilnPlan_t* plan) { return kilnCreateSetTensorPlan(h, *y, plan); },
         .execute =
             [](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
               return kilnExecuteSetTensor(h, plan, a.at[0], a.alpha);
             },
         .immediate = [=](kilnHandle_t h,
                          const Arguments& a) { return kilnSetTensor(h, *y, a.at[0], a.alpha); },
         .scalars = {{"value", &Arguments::alpha}},
         .values = {{2.5, 0}, {0, 0}}});
}

// With 0, y is not read.
void check_scale(const Tensor& to) {
  const auto y = describe(to);
  check(make_fill(to),
        {.operation = "ScaleTensor",
         .names = {"y"},
         .create = [=](kilnHandle_t h,
                       kilnPlan_t* plan) { return kilnCreateScaleTensorPlan(h, *y, plan); },
         .execute =
             [](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
               return kilnExecuteScaleTensor(h, plan, a.at[0], a.beta);
             },
         .immediate = [=](kilnHandle_t h,
                          const Arguments& a) { return kilnScaleTensor(h, *y, a.at[0], a.beta); },
         .scalars = {{"alpha", &Arguments::beta}},
         .values = {{0, -1.5}, {0, 0}}});
}

void check_binary(kilnOpTensorOp_t op, const Tensor& first, const Tensor& second,
                  const Tensor& to) {
  const auto a = describe(first), b = describe(second), c = describe(to);
  Calls calls{
      .operation = "OpTensor",
      .names = {"a", "b", "c"},
      .create = [=](kilnHandle_t h,
                    kilnPlan_t* plan) { return kilnCreateOpTensorPlan(h, op, *a, *b, *c, plan); },
      .execute =
          [](kilnHandle_t h, kilnPlan_t plan, const Arguments& args) {
            return kilnExecuteOpTensor(h, plan, args.alpha, args.at[0], args.alpha2, args.at[1],
                                       args.beta, args.at[2]);
          },
      .immediate =
          [=](kilnHandle_t h, const Arguments& args) {
            return kilnOpTensor(h, op, args.alpha, *a, args.at[0], args.alpha2, *b, args.at[1],
                                args.beta, *c, args.at[2]);
          },
      .scalars = {{"alpha1", &Arguments::alpha},
                  {"alpha2", &Arguments::alpha2},
                  {"beta", &Arguments::beta}},
      .values = {{1, 0, 1}, {-0.75, 1, 0.5}}};
  if (first == to) calls.in_place.emplace_back("a");
  if (second == to) calls.in_place.emplace_back("b");
  check(make_binary(op, first, second, to), calls);
}

void check_reduction(kilnReduceTensorOp_t op, const Tensor& from, const Tensor& to) {
  const auto a = describe(from), c = describe(to);
  check(
      make_reduction(op, from, to),
      {.operation = "ReduceTensor",
       .names = {"a", "c"},
       .create = [=](kilnHandle_t h,
                     kilnPlan_t* plan) { return kilnCreateReduceTensorPlan(h, op, *a, *c, plan); },
       .execute = usual_execute<1>(kilnExecuteReduceTensor),
       .immediate =
           [=](kilnHandle_t h, const Arguments& args) {
             return kilnReduceTensor(h, op, args.alpha, *a, args.at[0], args.beta, *c, args.at[1]);
           }});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensor_operations)

BOOST_AUTO_TEST_CASE(transform_between_strides_and_types) {
  check_transform(tensor(f32, sizes), tensor(f32, sizes));
  check_transform(tensor(f32, sizes), tensor(f32, sizes, KILN_TENSOR_NHWC));
  check_transform(tensor(f64, sizes), tensor(f16, sizes));
  check_transform(tensor(KILN_DATA_BFLOAT16, sizes), tensor(f64, sizes, {200, 40, 8, 1}));
  check_transform(tensor(f16, sizes, {0, 35, 7, 1}), tensor(f32, sizes));  // one image for all
}

BOOST_AUTO_TEST_CASE(add_with_broadcasting) {
  check_add(tensor(f32, sizes), tensor(f32, sizes));
  check_add(tensor(f32, {1, 3, 1, 1}), tensor(f32, sizes));
  check_add(tensor(f64, {2, 1, 1, 7}), tensor(f64, sizes, KILN_TENSOR_NHWC));
  check_add(tensor(f16, {1, 1, 1, 1}), tensor(f16, sizes, {200, 40, 8, 1}));
}

BOOST_AUTO_TEST_CASE(set_and_scale) {
  check_set(tensor(f32, sizes));
  check_set(tensor(f64, sizes, {200, 40, 8, 1}));
  check_set(tensor(f16, {2, 3, 5}));
  check_scale(tensor(f32, sizes));
  check_scale(tensor(f64, sizes, KILN_TENSOR_NHWC));
  check_scale(tensor(KILN_DATA_BFLOAT16, {2, 3, 5, 7, 2}));
}

BOOST_AUTO_TEST_CASE(binary_operations) {
  for (const kilnOpTensorOp_t which : kiln::all_of<kilnOpTensorOp_t>()) {
    const DataType type = all_types[which % 4];
    check_binary(which, tensor(type, sizes), tensor(type, sizes), tensor(type, sizes));
    check_binary(which, tensor(type, {2, 3, 1, 1}), tensor(type, sizes), tensor(type, sizes));
  }
  check_binary(KILN_OP_TENSOR_ADD, tensor(f32, {1, 3, 1, 7}), tensor(f32, {2, 1, 5, 1}),
               tensor(f32, sizes, KILN_TENSOR_NHWC));
}

BOOST_AUTO_TEST_CASE(reductions) {
  for (const kilnReduceTensorOp_t which : kiln::all_of<kilnReduceTensorOp_t>()) {
    const DataType type = all_types[which % 4];
    check_reduction(which, tensor(type, sizes), tensor(type, {1, 3, 1, 1}));
    check_reduction(which, tensor(type, sizes, KILN_TENSOR_NHWC), tensor(type, {2, 1, 5, 1}));
  }
  check_reduction(KILN_REDUCE_SUM, tensor(f32, sizes), tensor(f32, {1, 1, 1, 1}));
  check_reduction(KILN_REDUCE_MAX, tensor(f32, sizes), tensor(f32, sizes));  // of nothing
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_named) {
  const TensorDesc t(f32, sizes), channel(f32, {1, 3, 1, 1}), wrong(f32, {2, 2, 5, 7}),
      line(f32, {2, 3, 5}), half(f16, sizes), folded(f32, sizes, Sizes{105, 35, 0, 1}), never,
      empty(f32, {0, 3, 5, 7});
  using T = kilnTensorDescriptor_t;
  const auto transform = [&](T x, T y) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateTransformTensorPlan(h, x, y, plan);
    });
  };
  const auto add = [&](T x, T y) {
    return creation(
        [&](kilnHandle_t h, kilnPlan_t* plan) { return kilnCreateAddTensorPlan(h, x, y, plan); });
  };
  const auto set = [&](T y) {
    return creation(
        [&](kilnHandle_t h, kilnPlan_t* plan) { return kilnCreateSetTensorPlan(h, y, plan); });
  };
  const auto scale = [&](T y) {
    return creation(
        [&](kilnHandle_t h, kilnPlan_t* plan) { return kilnCreateScaleTensorPlan(h, y, plan); });
  };
  const auto binary = [&](int op, T a, T b, T c) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateOpTensorPlan(h, static_cast<kilnOpTensorOp_t>(op), a, b, c, plan);
    });
  };
  const auto reduce = [&](int op, T a, T c) {
    return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
      return kilnCreateReduceTensorPlan(h, static_cast<kilnReduceTensorOp_t>(op), a, c, plan);
    });
  };
  const auto is_never = [](kilnStatus_t status, const char* name) {
    fails(status, KILN_STATUS_NOT_INITIALIZED, {name, "was created but never set"});
  };

  bad_param(transform(nullptr, t), {"xDesc is null"});
  bad_param(transform(t, nullptr), {"yDesc is null"});
  is_never(transform(never, t), "xDesc");
  is_never(transform(t, never), "yDesc");
  bad_param(transform(channel, t), {"xDesc has sizes 1x3x1x1; expected 2x3x5x7, as yDesc has"});
  bad_param(transform(line, t), {"xDesc has 3 dimensions; expected 4, as yDesc has"});
  bad_param(transform(t, folded), {"yDesc: strides are 105:35:0:1", "share an address"});
  succeeds(transform(half, t));

  bad_param(add(nullptr, t), {"xDesc is null"});
  bad_param(add(t, nullptr), {"yDesc is null"});
  is_never(add(never, t), "xDesc");
  bad_param(add(wrong, t), {"xDesc: dims[1] is 2; expected 1 or 3, as yDesc has"});
  bad_param(add(t, channel), {"xDesc: dims[0] is 2; expected 1, as yDesc has"});
  bad_param(add(line, t), {"xDesc has 3 dimensions"});
  bad_param(add(half, t), {"xDesc has data type f16; expected f32, as yDesc has"});
  bad_param(add(t, folded), {"yDesc: strides are"});

  bad_param(set(nullptr), {"yDesc is null"});
  is_never(set(never), "yDesc");
  bad_param(set(folded), {"yDesc: strides are"});
  bad_param(scale(nullptr), {"yDesc is null"});
  is_never(scale(never), "yDesc");
  bad_param(scale(folded), {"yDesc: strides are"});

  bad_param(binary(4, t, t, t), {"op is 4; expected", "KILN_OP_TENSOR_ADD (1000)"});
  bad_param(binary(-1, t, t, t), {"op is -1"});
  bad_param(binary(KILN_OP_TENSOR_ADD, nullptr, t, t), {"aDesc is null"});
  bad_param(binary(KILN_OP_TENSOR_ADD, t, nullptr, t), {"bDesc is null"});
  bad_param(binary(KILN_OP_TENSOR_ADD, t, t, nullptr), {"cDesc is null"});
  is_never(binary(KILN_OP_TENSOR_ADD, never, t, t), "aDesc");
  is_never(binary(KILN_OP_TENSOR_ADD, t, never, t), "bDesc");
  is_never(binary(KILN_OP_TENSOR_ADD, t, t, never), "cDesc");
  bad_param(binary(KILN_OP_TENSOR_ADD, wrong, t, t),
            {"aDesc: dims[1] is 2; expected 1 or 3, as cDesc has"});
  bad_param(binary(KILN_OP_TENSOR_ADD, t, wrong, t), {"bDesc: dims[1] is 2"});
  bad_param(binary(KILN_OP_TENSOR_ADD, half, t, t), {"aDesc has data type f16"});
  bad_param(binary(KILN_OP_TENSOR_ADD, t, half, t), {"bDesc has data type f16"});
  bad_param(binary(KILN_OP_TENSOR_ADD, line, t, t), {"aDesc has 3 dimensions"});
  bad_param(binary(KILN_OP_TENSOR_ADD, t, t, folded), {"cDesc: strides are"});

  bad_param(reduce(5, t, channel), {"op is 5; expected", "KILN_REDUCE_SUM (1100)"});
  bad_param(reduce(-1, t, channel), {"op is -1"});
  bad_param(reduce(KILN_REDUCE_SUM, nullptr, channel), {"aDesc is null"});
  bad_param(reduce(KILN_REDUCE_SUM, t, nullptr), {"cDesc is null"});
  is_never(reduce(KILN_REDUCE_SUM, never, channel), "aDesc");
  is_never(reduce(KILN_REDUCE_SUM, t, never), "cDesc");
  bad_param(reduce(KILN_REDUCE_SUM, t, wrong),
            {"cDesc: dims[1] is 2; expected 1 or 3, as aDesc has"});
  bad_param(reduce(KILN_REDUCE_SUM, t, line), {"cDesc has 3 dimensions; expected 4, as aDesc has"});
  bad_param(reduce(KILN_REDUCE_SUM, t, half),
            {"cDesc has data type f16; expected f32, as aDesc has"});
  bad_param(reduce(KILN_REDUCE_SUM, t, folded), {"cDesc: strides are"});
  succeeds(reduce(KILN_REDUCE_SUM, empty, channel));
  succeeds(reduce(KILN_REDUCE_NORM2, empty, channel));
  succeeds(reduce(KILN_REDUCE_NORM1, empty, channel));
  succeeds(reduce(KILN_REDUCE_MUL, empty, channel));
  for (const int op : {KILN_REDUCE_MEAN, KILN_REDUCE_MAX, KILN_REDUCE_MIN, KILN_REDUCE_AMAX})
    bad_param(reduce(op, empty, channel), {"aDesc: dims[0] is 0; expected at least 1", "no value"});
}

// Legal problems that no engine supports are refused when the plan is finalized.
BOOST_AUTO_TEST_CASE(tensors_beyond_any_memory_find_no_engine) {
  const TestHandle handle;
  const std::int64_t big = std::int64_t{1} << 25;
  const TensorDesc vast(f32, {1, big, big, 1}),
      spread(f32, {1, 2, 1, 1}, Sizes{1, big * big * 8, 1, 1}), none(f32, {0, big, big, 1});
  const auto refused = [&](kilnTensorDescriptor_t y, std::initializer_list<const char*> parts) {
    kilnPlan_t plan = nullptr;
    succeeds(kilnCreateSetTensorPlan(handle, y, &plan));
    fails(kilnFinalizePlan(plan), KILN_STATUS_NOT_SUPPORTED, parts);
    succeeds(kilnDestroyPlan(plan));
  };
  refused(vast, {"y has 1125899906842624 elements", "expected at most 2^48"});
  refused(none, {"y has 1125899906842624 elements", "expected at most 2^48"});
  refused(spread, {"y has a stride of 9007199254740992", "expected at most 2^52"});
}

BOOST_AUTO_TEST_CASE(nan_in_minima_and_maxima) {
  const TestHandle handle;
  const TensorDesc t(f32, {1, 1, 1, 3}), scalar(f32, {1, 1, 1, 1});
  const float one = 1, zero = 0, nan = std::nanf("");
  const Buffer<float> a({nan, 1, 2}), b({5, nan, 3}), c({0, 0, 0});
  for (const auto op : {KILN_OP_TENSOR_MIN, KILN_OP_TENSOR_MAX}) {
    succeeds(kilnOpTensor(handle, op, &one, t, a.data(), &one, t, b.data(), &zero, t, c.data()));
    const std::vector<float> got = c.read();
    BOOST_TEST((std::isnan(got[0]) && std::isnan(got[1])));
    BOOST_TEST(got[2] == (op == KILN_OP_TENSOR_MIN ? 2 : 3));
  }
  for (const auto op : {KILN_REDUCE_MIN, KILN_REDUCE_MAX, KILN_REDUCE_AMAX}) {
    succeeds(kilnReduceTensor(handle, op, &one, t, a.data(), &zero, scalar, c.data()));
    BOOST_TEST(std::isnan(c.read()[0]));
  }
}

// Both tensors are in one buffer: with interleaved channels their spans overlap, but no elements
// do.
BOOST_AUTO_TEST_CASE(interleaved_tensors_are_no_overlap) {
  const TestHandle handle;
  const TensorDesc half_of_it(f32, {2, 2, 1, 1}, Sizes{4, 1, 4, 4});
  const float one = 1, zero = 0;
  const Buffer<float> both({1, 2, 0, 0, 3, 4, 0, 0});
  succeeds(kilnTransformTensor(handle, &one, half_of_it, both.data(), &zero, half_of_it,
                               both.data() + 2));
  BOOST_TEST(both.read() == (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
