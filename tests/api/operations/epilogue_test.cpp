// Convolutions with a list of operations: what they compute, and what they refuse.
#include <cmath>

#include "convolution_shapes.hpp"

using namespace test;

namespace {

using Kind = EpilogueOperation::Kind;

struct NormalizationDesc
    : Object<kilnNormalizationDescriptor_t, kilnDestroyNormalizationDescriptor> {
  NormalizationDesc() : Object(kilnCreateNormalizationDescriptor) {}
};

struct EpilogueDesc : Object<kilnEpilogueDescriptor_t, kilnDestroyEpilogueDescriptor> {
  EpilogueDesc() : Object(kilnCreateEpilogueDescriptor) {}
};

// The list as a descriptor; `tensors` keeps those of its operations.
std::shared_ptr<const EpilogueDesc> describe_list(const EpilogueList& list) {
  auto out = std::make_shared<EpilogueDesc>();
  for (const EpilogueOperation& each : list) {
    const auto tensor = each.tensor ? describe(*each.tensor) : nullptr;
    const kilnTensorDescriptor_t desc =
        tensor ? static_cast<kilnTensorDescriptor_t>(*tensor) : nullptr;
    switch (each.kind) {
      case Kind::bias: succeeds(kilnAddEpilogueBias(*out, desc)); break;
      case Kind::residual: succeeds(kilnAddEpilogueResidual(*out, desc)); break;
      case Kind::moments: succeeds(kilnAddEpilogueMoments(*out)); break;
      case Kind::gradient: break;  // has operands of its own: tested apart
      case Kind::activation: succeeds(kilnAddEpilogueActivation(*out, *describe(each.activation)));
    }
  }
  return out;
}

// The addresses of z and bias in the list's order, of arguments in the problem's.
std::vector<const void*> operands_of(const EpilogueList& list, const Arguments& a) {
  std::vector<const void*> out;
  const bool has_z = tensor_of(list, Kind::residual) != nullptr;
  for (const EpilogueOperation& each : list) {
    if (!each.tensor) continue;
    const bool bias = each.kind == Kind::bias;
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
    if (each.tensor) names[each.kind == Kind::bias] = "operands[" + std::to_string(place++) + "]";
  for (const std::string& name : names)
    if (!name.empty()) calls.names.push_back(name);
  calls.names.emplace_back("y");
  const Tensor& result = transposed ? s.x : s.y;
  const Tensor* const z = kiln::tensor_of(list, Kind::residual);
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
  const EpilogueDesc early;
  bad_param(kilnAddEpilogueMoments(nullptr), {"descriptor is null"});
  succeeds(kilnAddEpilogueMoments(early));
  succeeds(creation_of(early));
  succeeds(kilnAddEpilogueBias(early, *bias));
  fails(creation_of(early), KILN_STATUS_NOT_SUPPORTED,
        {"epilogue operation 1 follows the moments; expected the moments last"});

  const NormalizationDesc norm;
  const EpilogueDesc behind;
  bad_param(kilnAddEpilogueNormalizationGradient(nullptr, norm, *z, nullptr),
            {"descriptor is null"});
  bad_param(kilnAddEpilogueNormalizationGradient(behind, nullptr, *z, nullptr),
            {"normDesc is null"});
  bad_param(kilnAddEpilogueNormalizationGradient(behind, norm, nullptr, nullptr),
            {"normXDesc is null"});
  succeeds(kilnAddEpilogueNormalizationGradient(behind, norm, *z, *z));
  int operands_of_gradient = 0;
  succeeds(kilnGetEpilogueCounts(behind, nullptr, &operands_of_gradient));
  BOOST_TEST(operands_of_gradient == 8);
  succeeds(creation_of(behind));
  succeeds(kilnAddEpilogueBias(behind, *bias));
  fails(creation_of(behind), KILN_STATUS_NOT_SUPPORTED,
        {"epilogue operation 1 follows a normalization's gradient; expected the gradient last"});
  const EpilogueDesc behind_activation;
  succeeds(kilnAddEpilogueActivation(behind_activation, relu));
  succeeds(kilnAddEpilogueNormalizationGradient(behind_activation, norm, *z, nullptr));
  fails(creation_of(behind_activation), KILN_STATUS_NOT_SUPPORTED,
        {"epilogue operation 1 is a normalization's gradient after an activation"});
  const EpilogueDesc misfit, misfit_residual;
  succeeds(kilnAddEpilogueNormalizationGradient(misfit, norm, *wrong, nullptr));
  bad_param(creation_of(misfit), {"normXDesc has sizes 2x4x9x8; expected 2x6x5x7, as yDesc has"});
  succeeds(kilnAddEpilogueNormalizationGradient(misfit_residual, norm, *z, *wrong));
  bad_param(creation_of(misfit_residual), {"normResidualDesc has sizes 2x4x9x8; expected 2x6x5x7"});

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

// Those of the result as it is stored, whatever it held before; refusals of their address.
BOOST_AUTO_TEST_CASE(moments_of_the_result) {
  for (const DataType type : {KILN_DATA_DOUBLE, KILN_DATA_HALF})
    for (const bool transposed : {false, true}) {
      const Shapes s(type, type == KILN_DATA_HALF ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW);
      EpilogueList list{{.kind = Kind::residual}, {.kind = Kind::moments}};
      if (!transposed) list.insert(list.begin(), {.kind = Kind::bias, .tensor = s.bias});
      const auto spec = spec_of(type);
      const ConvolutionProblem problem =
          transposed ? make_convolution_transposed(spec, s.y, s.w, s.x, list)
                     : make_convolution(spec, s.x, s.w, s.y, list);
      const auto x = describe(transposed ? s.y : s.x), y = describe(transposed ? s.x : s.y);
      const auto w = describe_filter(s.w);
      const auto c = describe(spec);
      const auto epilogue = describe_list(list);
      int operations = 0, operands = 0;
      succeeds(kilnGetEpilogueCounts(*epilogue, &operations, &operands));
      BOOST_TEST(operations == (transposed ? 2 : 3));
      BOOST_TEST(operands == (transposed ? 1 : 2));

      OperationData data(problem);
      data.scalars = {1, -0.5};
      data.fill_uniform(5, -2, 2);
      const double alpha = 1, beta = -0.5;
      const float float_alpha = 1, float_beta = -0.5f;
      const bool wide = type == KILN_DATA_DOUBLE;
      const void* const a = wide ? static_cast<const void*>(&alpha) : &float_alpha;
      const void* const b = wide ? static_cast<const void*>(&beta) : &float_beta;
      const TestHandle handle;
      std::vector<std::vector<std::byte>> first;
      for (const bool at_once : {false, true}) {
        std::vector<std::unique_ptr<Buffer<std::byte>>> buffers;
        for (const HostTensor& each : data.tensors)
          buffers.push_back(std::make_unique<Buffer<std::byte>>(each.bytes()));
        const std::size_t last = buffers.size() - 1;
        std::vector<const void*> own;
        if (!transposed) own.push_back(buffers[2]->data());
        own.push_back(buffers[last - 1]->data());
        const int count = static_cast<int>(own.size());
        const void *const px = buffers[transposed ? 1 : 0]->data(), *const pw =
                                                                        buffers[transposed ? 0 : 1]
                                                                            ->data();
        void* const py = buffers[last]->data();
        if (at_once) {
          const auto run =
              transposed ? kilnConvolutionTransposedEpilogue : kilnConvolutionForwardEpilogue;
          succeeds(run(handle, a, *x, px, *w, pw, *c, b, *epilogue, count, own.data(), *y, py));
        } else {
          kilnPlan_t plan = nullptr;
          succeeds((transposed ? kilnCreateConvolutionTransposedEpiloguePlan
                               : kilnCreateConvolutionForwardEpiloguePlan)(handle, *x, *w, *c,
                                                                           *epilogue, *y, &plan));
          succeeds(kilnFinalizePlan(plan));
          const auto run = transposed ? kilnExecuteConvolutionTransposedEpilogue
                                      : kilnExecuteConvolutionForwardEpilogue;
          std::vector<const void*> wrong = own;
          wrong.back() = nullptr;
          const std::string name = "operands[" + std::to_string(count - 1) + "]",
                            missing = name + " is null; expected a device address",
                            overlapped = "where it overlaps " + name;
          bad_param(run(handle, plan, a, px, pw, b, count, wrong.data(), py), {missing.c_str()});
          wrong.back() = py;
          bad_param(run(handle, plan, a, px, pw, b, count, wrong.data(), py), {overlapped.c_str()});
          succeeds(run(handle, plan, a, px, pw, b, count, own.data(), py));
          succeeds(kilnDestroyPlan(plan));
        }
        HostTensor result = data.result(), moments = data.tensors[last - 1];
        result.read(buffers[last]->read());
        moments.read(buffers[last - 1]->read());
        BOOST_TEST(data.fault(result) == "");
        const std::int64_t channels = result.operand.dims[1],
                           space = result.operand.count() / 2 / channels;
        for (std::int64_t k = 0; k < channels; ++k) {
          double sum = 0, squares = 0;
          const auto each = [&](const auto& body) {
            for (std::int64_t n = 0; n < 2; ++n)
              for (std::int64_t i = 0; i < space; ++i)
                body(result.at((n * channels + k) * space + i));
          };
          each([&](double v) { sum += v; });
          const double mean = sum / static_cast<double>(2 * space);
          each([&](double v) { squares += (v - mean) * (v - mean); });
          BOOST_TEST(moments.at(k) == static_cast<double>(2 * space));
          BOOST_TEST(std::fabs(moments.at(channels + k) - mean) < 1e-5);
          BOOST_TEST(std::fabs(moments.at(2 * channels + k) - squares) < 1e-5 * squares);
        }
        if (!at_once)
          first = {buffers[last]->read(), buffers[last - 1]->read()};
        else
          BOOST_TEST((first[0] == buffers[last]->read() && first[1] == buffers[last - 1]->read()),
                     "the immediate call gave other bits");
      }
    }
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
