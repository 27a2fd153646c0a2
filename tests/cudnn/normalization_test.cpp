// Batch normalization in both families of functions against the reference.
#include <cmath>

#include "cudnn/normalization_case.hpp"

using namespace test;

namespace {

using Case = NormalizationCase;

constexpr DataType types[] = {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_DOUBLE,
                              KILN_DATA_BFLOAT16};

struct Variant {
  DataType type;
  Layout layout;
  Sizes dims;
};

// Another type, layout and rank each time.
Variant next_variant() {
  static std::size_t count = 0;
  const std::size_t i = count++;
  return {types[i % 4], layouts[i % 3], i % 5 == 4 ? Sizes{2, 5, 3, 2, 4} : Sizes{3, 6, 5, 4}};
}

constexpr Scalars scalings[] = {{1, 0, 0.125}, {-0.75, 0.5, 0.125}};

// The same values within some roundings of f32.
void close(const HostTensor& got, const HostTensor& want) {
  for (std::int64_t i = 0; i < want.operand.count(); ++i)
    BOOST_TEST(std::fabs(got.at(i) - want.at(i)) <= 2e-5 * (1 + std::fabs(want.at(i))),
               want.operand.name << " is " << got.at(i) << ", expected " << want.at(i));
}

NormalizationSpec spec_with(const Activation& f) {
  NormalizationSpec spec;
  spec.epsilon = epsilon;
  spec.activation = f;
  return spec;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(normalization)

BOOST_AUTO_TEST_CASE(training) {
  const ActivationDesc relu;
  succeeds(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  for (const auto& [family, operations] : {std::pair{Family::plain, just},
                                           {Family::ex, just},
                                           {Family::norm, activate},
                                           {Family::plain, just},
                                           {Family::ex, add_and_activate},
                                           {Family::norm, add_and_activate},
                                           {Family::ex, activate},
                                           {Family::norm, just}}) {
    const Variant v = next_variant();
    const Tensor t = tensor(v.type, v.dims, v.layout);
    const auto desc = describe(t);
    const NormalizationSpec spec =
        spec_with(operations > just ? Activation{KILN_ACTIVATION_RELU, 0} : Activation{});
    for (const Scalars& scalars : scalings) {
      const Case item(
          make_normalization_training(spec, t, operations == add_and_activate ? &t : nullptr, t),
          scalars);
      train({family, operations}, item, *desc, relu);
      item.check();
    }
  }
}

BOOST_AUTO_TEST_CASE(inference) {
  const ActivationDesc tanh;
  succeeds(cudnnSetActivationDescriptor(tanh, CUDNN_ACTIVATION_TANH, CUDNN_PROPAGATE_NAN, 0));
  for (const bool norm : {false, true, true, false}) {
    const Variant v = next_variant();
    const Tensor t = tensor(v.type, v.dims, v.layout);
    const auto desc = describe(t);
    const auto numbers = derived({norm ? Family::norm : Family::ex}, *desc);
    for (const Scalars& scalars : scalings) {
      const NormalizationSpec spec =
          spec_with(norm ? Activation{KILN_ACTIVATION_TANH, 0} : Activation{});
      const Case item(make_normalization_inference(spec, t, norm ? &t : nullptr, t), scalars);
      if (norm)
        succeeds(cudnnNormalizationForwardInference(
            handle(), CUDNN_NORM_PER_CHANNEL, CUDNN_NORM_OPS_NORM_ADD_ACTIVATION, algo,
            item.alpha(), item.beta(), *desc, item.at("x"), *numbers, item.at("scale"),
            item.at("bias"), *numbers, item.at("mean"), item.at("variance"), *desc,
            item.at("residual"), tanh, *desc, item.at("y"), epsilon, 1));
      else
        succeeds(cudnnBatchNormalizationForwardInference(
            handle(), CUDNN_BATCHNORM_SPATIAL, item.alpha(), item.beta(), *desc, item.at("x"),
            *desc, item.at("y"), *numbers, item.at("scale"), item.at("bias"), item.at("mean"),
            item.at("variance"), epsilon));
      item.check();
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients) {
  const ActivationDesc swish;
  succeeds(cudnnSetActivationDescriptor(swish, CUDNN_ACTIVATION_SWISH, CUDNN_PROPAGATE_NAN, 0));
  for (const auto& [family, operations] : {std::pair{Family::plain, just},
                                           {Family::ex, just},
                                           {Family::norm, activate},
                                           {Family::norm, just},
                                           {Family::ex, activate},
                                           {Family::plain, just}}) {
    const Variant v = next_variant();
    const Tensor t = tensor(v.type, v.dims, v.layout);
    const auto desc = describe(t);
    const NormalizationSpec spec =
        spec_with(operations > just ? Activation{KILN_ACTIVATION_SILU, 0} : Activation{});
    for (const Scalars& scalars : scalings) {
      const Case item(make_normalization_backward(spec, t, nullptr, t, nullptr, t), scalars);
      differentiate({family, operations}, item, *desc, swish);
      item.check();
    }
  }
}

// The activation's gradient is taken from y, because z is not given, and is rounded to dz.
BOOST_AUTO_TEST_CASE(gradients_behind_an_addition) {
  const ActivationDesc relu;
  succeeds(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  const Activation f{KILN_ACTIVATION_RELU, 0};
  for (const Family family : {Family::ex, Family::norm}) {
    const Variant v = next_variant();
    const Tensor t = tensor(v.type, v.dims, v.layout);
    const auto desc = describe(t);
    Case item(make_normalization_backward(spec_with({}), t, nullptr, t, nullptr, t), scalings[1]);
    Case outer(make_activation_backward(f, t, "y", t, t));
    differentiate({family, add_and_activate}, item, *desc, relu, outer.at("y"), outer.at("dy"),
                  outer.at("dx"));
    outer.check();
    // What the reference takes for dy is what was found to be dz.
    item.write("dy", outer.read("dx"));
    item.check();
  }
}

BOOST_AUTO_TEST_CASE(numbers_of_each_activation) {
  const Sizes dims{4, 3, 2, 5};
  for (const Family family : {Family::plain, Family::norm}) {
    const DataType type = family == Family::plain ? KILN_DATA_HALF : KILN_DATA_FLOAT;
    // Images are dense, and there are gaps between them.
    Tensor t = tensor(type, dims), view = tensor(type, {dims[0], 30});
    t.strides[0] = view.strides[0] = 37;
    const auto desc = describe(t);
    const NormalizationCall call{.family = family, .per_activation = true};
    const Case training(make_normalization_training(spec_with({}), view, nullptr, view));
    train(call, training, *desc);
    training.check();
    const Case backward(
        make_normalization_backward(spec_with({}), view, nullptr, view, nullptr, view));
    differentiate(call, backward, *desc);
    backward.check();
    if (family == Family::norm) continue;
    const auto numbers = derived(call, *desc);
    const Case inference(make_normalization_inference(spec_with({}), view, nullptr, view));
    succeeds(cudnnBatchNormalizationForwardInference(
        handle(), call.bn_mode(), inference.alpha(), inference.beta(), *desc, inference.at("x"),
        *desc, inference.at("y"), *numbers, inference.at("scale"), inference.at("bias"),
        inference.at("mean"), inference.at("variance"), epsilon));
    inference.check();
  }
}

// Without what it saves, training is the same; the gradient takes the statistics again.
BOOST_AUTO_TEST_CASE(statistics_that_are_not_saved) {
  for (const Family family : {Family::plain, Family::ex, Family::norm}) {
    const bool wide = family == Family::norm;
    const Tensor t = tensor(wide ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT, {3, 6, 5, 4});
    const auto desc = describe(t);
    NormalizationSpec spec = spec_with({});
    spec.running = false;
    const Problem training = make_normalization_training(spec, t, nullptr, t);
    const Case saving(training), without(training);
    train({.family = family}, saving, *desc);
    saving.check();
    train({.family = family, .saved = false}, without, *desc);
    without.check(false);

    const Problem backward = make_normalization_backward(spec, t, nullptr, t, nullptr, t);
    Case given(backward);
    given.write("mean", saving.read("mean"));
    given.write("deviation", saving.read("deviation"));
    given.write("x", saving.read("x"));
    Case taken(backward);
    taken.write("x", saving.read("x"));
    differentiate({.family = family}, given, *desc);
    given.check();
    differentiate({.family = family, .saved = false}, taken, *desc);
    for (const char* name : {"dscale", "dbias", "dx"}) close(taken.read(name), given.read(name));
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_numbers_that_are_added_to_others) {
  const Tensor t = tensor(KILN_DATA_HALF, {3, 6, 5, 4}, Layout::nhwc);
  const auto desc = describe(t);
  const Problem problem = make_normalization_backward(spec_with({}), t, nullptr, t, nullptr, t);
  const float half = 0.5f, two = 2;
  for (const Family family : {Family::plain, Family::ex, Family::norm}) {
    const Case alone(problem);
    differentiate({.family = family}, alone, *desc);
    alone.check();
    Case added(problem);
    HostTensor before(alone.read("dscale").operand);
    before.fill_uniform(5, -1, 1);
    added.write("dscale", before);
    added.write("dbias", before);
    differentiate({.family = family, .parameters_alpha = &half, .parameters_beta = &two}, added,
                  *desc);
    for (const char* name : {"dscale", "dbias"}) {
      HostTensor want = alone.read(name);
      for (std::int64_t i = 0; i < want.operand.count(); ++i)
        want.at(i) = 0.5 * want.at(i) + 2 * before.at(i);
      close(added.read(name), want);
    }
    BOOST_TEST((added.read("dx").bytes() == alone.read("dx").bytes()));
  }
}

// On a GPU more blocks than a cluster's share a channel where there is workspace.
BOOST_AUTO_TEST_CASE(workspace_is_lent_to_the_sums_or_done_without) {
  const bool on_gpu = device_kind() == KILN_DEVICE_CUDA;
  const std::int64_t side = on_gpu ? 56 : 6;
  const Tensor t = tensor(KILN_DATA_HALF, {64, 8, side, side}, Layout::nhwc);
  const auto desc = describe(t);
  const auto numbers = derived({}, *desc);
  std::size_t bytes = 0;
  succeeds(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
      handle(), CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN, *desc, nullptr, *desc, *numbers,
      nullptr, &bytes));
  constexpr std::size_t rows = 2 * 256, aligning = 256;
  BOOST_TEST((on_gpu ? bytes > rows + aligning : bytes >= rows + aligning), bytes);
  for (const bool no_workspace : {false, true}) {
    const Case training(make_normalization_training(spec_with({}), t, nullptr, t));
    train({.family = Family::ex, .no_workspace = no_workspace}, training, *desc);
    training.check();
    const Case backward(make_normalization_backward(spec_with({}), t, nullptr, t, nullptr, t));
    differentiate({.family = Family::norm, .no_workspace = no_workspace}, backward, *desc);
    backward.check();
  }
}

BOOST_AUTO_TEST_SUITE_END()
