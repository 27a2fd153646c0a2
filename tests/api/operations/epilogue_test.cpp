// Convolutions with a list of operations: what they compute, and what they refuse.
#include "convolution_shapes.hpp"

using namespace test;

namespace {

struct EpilogueDesc : Object<kilnEpilogueDescriptor_t, kilnDestroyEpilogueDescriptor> {
  EpilogueDesc() : Object(kilnCreateEpilogueDescriptor) {}
};

// The list as a descriptor; `tensors` keeps those of its operations.
std::shared_ptr<const EpilogueDesc> describe_list(const EpilogueList& list) {
  using Kind = EpilogueOperation::Kind;
  auto out = std::make_shared<EpilogueDesc>();
  for (const EpilogueOperation& each : list) {
    const auto tensor = each.tensor ? describe(*each.tensor) : nullptr;
    const kilnTensorDescriptor_t desc =
        tensor ? static_cast<kilnTensorDescriptor_t>(*tensor) : nullptr;
    switch (each.kind) {
      case Kind::bias: succeeds(kilnAddEpilogueBias(*out, desc)); break;
      case Kind::residual: succeeds(kilnAddEpilogueResidual(*out, desc)); break;
      case Kind::activation: succeeds(kilnAddEpilogueActivation(*out, *describe(each.activation)));
    }
  }
  return out;
}

// The addresses of z and bias in the list's order, of arguments in the problem's.
std::vector<const void*> operands_of(const EpilogueList& list, const Arguments& a) {
  std::vector<const void*> out;
  const bool has_z = tensor_of(list, EpilogueOperation::Kind::residual) != nullptr;
  for (const EpilogueOperation& each : list) {
    if (!each.tensor) continue;
    const bool bias = each.kind == EpilogueOperation::Kind::bias;
    out.push_back(a.at[bias && has_z ? 3 : 2]);
  }
  return out;
}

void check_list(const ConvolutionSpec& spec, const Shapes& s, const EpilogueList& list,
                bool transposed) {
  const auto c = describe(spec);
  const auto w = describe_filter(s.w);
  const auto x = describe(transposed ? s.y : s.x), y = describe(transposed ? s.x : s.y);
  const auto epilogue = describe_list(list);
  Calls calls{
      .operation = transposed ? "ConvolutionTransposedEpilogue" : "ConvolutionForwardEpilogue",
      .names =
          transposed ? std::vector<std::string>{"w", "x"} : std::vector<std::string>{"x", "w"}};
  // In the problem's order, z before the bias, by their places in the caller's list.
  std::vector<std::string> names(2);
  int place = 0;
  for (const EpilogueOperation& each : list)
    if (each.tensor)
      names[each.kind == EpilogueOperation::Kind::bias] =
          "operands[" + std::to_string(place++) + "]";
  for (const std::string& name : names)
    if (!name.empty()) calls.names.push_back(name);
  calls.names.emplace_back("y");
  const Tensor& result = transposed ? s.x : s.y;
  const Tensor* const z = kiln::tensor_of(list, EpilogueOperation::Kind::residual);
  if (z != nullptr && z->strides == result.strides) calls.in_place = {names[0]};
  const int first = transposed ? 1 : 0;
  calls.create = [=](kilnHandle_t h, kilnPlan_t* plan) {
    return transposed
               ? kilnCreateConvolutionTransposedEpiloguePlan(h, *x, *w, *c, *epilogue, *y, plan)
               : kilnCreateConvolutionForwardEpiloguePlan(h, *x, *w, *c, *epilogue, *y, plan);
  };
  calls.execute = [=](kilnHandle_t h, kilnPlan_t plan, const Arguments& a) {
    const std::vector<const void*> operands = operands_of(list, a);
    const auto run = transposed ? kilnExecuteConvolutionTransposedEpilogue
                                : kilnExecuteConvolutionForwardEpilogue;
    return run(h, plan, a.alpha, a.at[first], a.at[1 - first], a.beta,
               static_cast<int>(operands.size()), operands.data(), a.at.back());
  };
  calls.immediate = [=](kilnHandle_t h, const Arguments& a) {
    const std::vector<const void*> operands = operands_of(list, a);
    const auto run =
        transposed ? kilnConvolutionTransposedEpilogue : kilnConvolutionForwardEpilogue;
    return run(h, a.alpha, *x, a.at[first], *w, a.at[1 - first], *c, a.beta, *epilogue,
               static_cast<int>(operands.size()), operands.data(), *y, a.at.back());
  };
  check(transposed ? make_convolution_transposed(spec, s.y, s.w, s.x, list)
                   : make_convolution(spec, s.x, s.w, s.y, list),
        calls);
}

kilnStatus_t creation_of(const kilnEpilogueDescriptor_t epilogue) {
  const Shapes s(KILN_DATA_FLOAT);
  const auto x = describe(s.x), y = describe(s.y);
  const auto w = describe_filter(s.w);
  const auto c = describe(spec_of(KILN_DATA_FLOAT));
  return creation([&](kilnHandle_t h, kilnPlan_t* plan) {
    return kilnCreateConvolutionForwardEpiloguePlan(h, *x, *w, *c, epilogue, *y, plan);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(epilogue)

BOOST_AUTO_TEST_CASE(lists_in_any_order) {
  const Shapes s(KILN_DATA_FLOAT), half(KILN_DATA_HALF, KILN_TENSOR_NHWC);
  const Activation silu{KILN_ACTIVATION_SILU, 0};
  using Kind = EpilogueOperation::Kind;
  const EpilogueList plain;
  const EpilogueList bias_last_residual{{.kind = Kind::bias, .tensor = s.bias},
                                        {.kind = Kind::activation, .activation = silu},
                                        {.kind = Kind::residual, .tensor = s.y}};
  const EpilogueList residual_first{{.kind = Kind::residual, .tensor = half.y},
                                    {.kind = Kind::bias, .tensor = half.bias},
                                    {.kind = Kind::activation, .activation = silu}};
  check_list(spec_of(KILN_DATA_FLOAT), s, plain, false);
  check_list(spec_of(KILN_DATA_FLOAT), s, bias_last_residual, false);
  check_list(spec_of(KILN_DATA_HALF), half, residual_first, false);

  Tensor bias = s.x;
  bias.dims = {1, 4, 1, 1};
  const EpilogueList of_transposed{{.kind = Kind::bias, .tensor = bias},
                                   {.kind = Kind::activation, .activation = silu},
                                   {.kind = Kind::residual}};
  check_list(spec_of(KILN_DATA_FLOAT), s, of_transposed, true);
  check_list(spec_of(KILN_DATA_FLOAT), s, {{.kind = Kind::residual, .tensor = s.x}}, true);
}

BOOST_AUTO_TEST_CASE(refusals) {
  const Shapes s(KILN_DATA_FLOAT);
  const auto bias = describe(s.bias), z = describe(s.y), wrong = describe(s.x);
  const ActivationDesc relu(KILN_ACTIVATION_RELU), same(KILN_ACTIVATION_IDENTITY);
  const kilnTensorDescriptor_t never = [] {
    kilnTensorDescriptor_t out = nullptr;
    succeeds(kilnCreateTensorDescriptor(&out));
    return out;
  }();

  bad_param(creation_of(nullptr), {"epilogueDesc is null; expected an epilogue descriptor"});
  const EpilogueDesc list;
  bad_param(kilnAddEpilogueBias(nullptr, *bias), {"descriptor is null"});
  bad_param(kilnAddEpilogueBias(list, nullptr), {"biasDesc is null"});
  bad_param(kilnAddEpilogueActivation(list, nullptr), {"activationDesc is null"});
  fails(kilnAddEpilogueBias(list, never), KILN_STATUS_NOT_INITIALIZED, {"biasDesc", "never set"});
  fails(kilnAddEpilogueResidual(list, never), KILN_STATUS_NOT_INITIALIZED, {"zDesc", "never set"});
  succeeds(kilnDestroyTensorDescriptor(never));

  succeeds(kilnAddEpilogueActivation(list, relu));
  succeeds(kilnAddEpilogueActivation(list, same));
  succeeds(creation_of(list));
  const EpilogueDesc late;
  succeeds(kilnAddEpilogueActivation(late, relu));
  succeeds(kilnAddEpilogueBias(late, *bias));
  fails(creation_of(late), KILN_STATUS_NOT_SUPPORTED,
        {"epilogue operation 1 is a bias after an activation"});
  succeeds(kilnAddEpilogueActivation(list, relu));
  fails(creation_of(list), KILN_STATUS_NOT_SUPPORTED,
        {"epilogue operation 2 is a second activation; expected at most one"});

  const EpilogueDesc sizes;
  succeeds(kilnAddEpilogueResidual(sizes, *wrong));
  bad_param(creation_of(sizes), {"zDesc has sizes 2x4x9x8; expected 2x6x5x7, as yDesc has"});

  const EpilogueDesc full;
  for (int i = 0; i < 8; ++i)
    succeeds(
        kilnAddEpilogueResidual(full, i < 3 ? static_cast<kilnTensorDescriptor_t>(*z) : nullptr));
  bad_param(kilnAddEpilogueResidual(full, nullptr), {"8 operations already; expected at most 8"});
  int operations = 0, operands = 0;
  succeeds(kilnGetEpilogueCounts(full, &operations, &operands));
  BOOST_TEST(operations == 8);
  BOOST_TEST(operands == 3);
}

BOOST_AUTO_TEST_CASE(as_many_operands_as_the_list_has_tensors) {
  const Shapes s(KILN_DATA_FLOAT);
  const auto x = describe(s.x), y = describe(s.y), bias = describe(s.bias);
  const auto w = describe_filter(s.w);
  const auto c = describe(spec_of(KILN_DATA_FLOAT));
  const EpilogueDesc list;
  succeeds(kilnAddEpilogueBias(list, *bias));
  const TestHandle handle;
  kilnPlan_t plan = nullptr;
  succeeds(kilnCreateConvolutionForwardEpiloguePlan(handle, *x, *w, *c, list, *y, &plan));
  succeeds(kilnFinalizePlan(plan));
  const float one = 1, none = 0;
  Buffer<float> memory(std::vector<float>(2000, 1.0f)), out(std::vector<float>(2000, 0.0f));
  const void* const two[] = {memory.data(), memory.data()};
  const auto execute = [&](int count, const void* const operands[]) {
    return kilnExecuteConvolutionForwardEpilogue(handle, plan, &one, memory.data(), memory.data(),
                                                 &none, count, operands, out.data());
  };
  bad_param(execute(2, two), {"operandCount is 2; expected 1"});
  bad_param(execute(0, nullptr), {"operandCount is 0; expected 1"});
  bad_param(execute(1, nullptr), {"operands is null"});
  succeeds(execute(1, two));
  bad_param(kilnExecuteConvolutionTransposedEpilogue(handle, plan, &one, memory.data(),
                                                     memory.data(), &none, 1, two, out.data()),
            {"plan is from kilnCreateConvolutionForwardEpiloguePlan; expected one from "
             "kilnCreateConvolutionTransposedEpiloguePlan"});
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_SUITE_END()
