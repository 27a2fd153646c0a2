// The reference's activations, their gradients, binary operations and transforms against oneDNN's.
#include "onednn.hpp"

using namespace kiln;

namespace {

using onednn::compare;
using onednn::elements;
using onednn::layout;
using onednn::Memory;
using onednn::wrap;

struct Eltwise {
  kilnActivationMode_t mode;
  dnnl::algorithm algorithm;
  float alpha = 0, beta = 0;
  double coefficient = 0, coefficient2 = 0;
};

#if DNNL_VERSION_MAJOR >= 3
constexpr float sixth = 1.0f / 6, half = 0.5f, one = 1;
#else
constexpr float sixth = 0, half = 0, one = 0;  // this version has no such arguments
#endif

// All activations that oneDNN has, in the order of kilnActivationMode_t.
const Eltwise eltwise[] = {
    {KILN_ACTIVATION_IDENTITY, dnnl::algorithm::eltwise_linear, 1, 0},
    {KILN_ACTIVATION_SIGMOID, dnnl::algorithm::eltwise_logistic},
    {KILN_ACTIVATION_RELU, dnnl::algorithm::eltwise_relu},
    {KILN_ACTIVATION_TANH, dnnl::algorithm::eltwise_tanh},
    {KILN_ACTIVATION_CLIPPED_RELU, dnnl::algorithm::eltwise_clip, 0, 1.5f, 1.5},
    {KILN_ACTIVATION_LEAKY_RELU, dnnl::algorithm::eltwise_relu, 0.25f, 0, 0.25},
    {KILN_ACTIVATION_LEAKY_RELU, dnnl::algorithm::eltwise_relu, -0.25f, 0, -0.25},
    {KILN_ACTIVATION_ELU, dnnl::algorithm::eltwise_elu, 0.75f, 0, 0.75},
    {KILN_ACTIVATION_GELU_ERF, dnnl::algorithm::eltwise_gelu_erf},
    {KILN_ACTIVATION_GELU_TANH, dnnl::algorithm::eltwise_gelu_tanh},
    {KILN_ACTIVATION_SILU, dnnl::algorithm::eltwise_swish, 1, 0},
    {KILN_ACTIVATION_SOFTPLUS, dnnl::algorithm::eltwise_soft_relu, one},
    {KILN_ACTIVATION_HARD_SWISH, dnnl::algorithm::eltwise_hardswish, sixth, half},
    {KILN_ACTIVATION_ABS, dnnl::algorithm::eltwise_abs},
    {KILN_ACTIVATION_EXP, dnnl::algorithm::eltwise_exp},
    {KILN_ACTIVATION_SQUARE, dnnl::algorithm::eltwise_square},
    {KILN_ACTIVATION_POW, dnnl::algorithm::eltwise_pow, 0.5f, 3, 0.5, 3},
    {KILN_ACTIVATION_MISH, dnnl::algorithm::eltwise_mish},
#if DNNL_VERSION_MAJOR >= 3
    {KILN_ACTIVATION_HARD_SIGMOID, dnnl::algorithm::eltwise_hardsigmoid, 0.25f, 0.5f, 0.25, 0.5},
#endif
    {KILN_ACTIVATION_CLIP, dnnl::algorithm::eltwise_clip_v2, -1, 1.5f, -1, 1.5},
    {KILN_ACTIVATION_LINEAR, dnnl::algorithm::eltwise_linear, 0.5f, -2, 0.5, -2},
};

// oneDNN 3 also needs the result's layout.
dnnl::eltwise_forward::primitive_desc describe(const Eltwise& e, const Memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return onednn::describe_forward<dnnl::eltwise_forward>(dnnl::prop_kind::forward_training,
                                                         e.algorithm, desc, desc, e.alpha, e.beta);
#else
  return onednn::describe_forward<dnnl::eltwise_forward>(dnnl::prop_kind::forward_training,
                                                         e.algorithm, desc, e.alpha, e.beta);
#endif
}
dnnl::eltwise_backward::primitive_desc describe_gradient(const Eltwise& e,
                                                         const Memory::desc& desc) {
  const dnnl::eltwise_forward::primitive_desc forward = describe(e, desc);
#if DNNL_VERSION_MAJOR >= 3
  return {onednn::cpu(), e.algorithm, desc, desc, desc, e.alpha, e.beta, forward};
#else
  return {dnnl::eltwise_backward::desc(e.algorithm, desc, desc, e.alpha, e.beta), onednn::cpu(),
          forward};
#endif
}

dnnl::algorithm algorithm_of(kilnOpTensorOp_t op) {
  switch (op) {
    case KILN_OP_TENSOR_ADD: return dnnl::algorithm::binary_add;
    case KILN_OP_TENSOR_MUL: return dnnl::algorithm::binary_mul;
    case KILN_OP_TENSOR_MIN: return dnnl::algorithm::binary_min;
    case KILN_OP_TENSOR_SUB: return dnnl::algorithm::binary_sub;
    case KILN_OP_TENSOR_DIV: return dnnl::algorithm::binary_div;
    case KILN_OP_TENSOR_EQ: return dnnl::algorithm::binary_eq;
    case KILN_OP_TENSOR_NE: return dnnl::algorithm::binary_ne;
    case KILN_OP_TENSOR_LT: return dnnl::algorithm::binary_lt;
    case KILN_OP_TENSOR_LE: return dnnl::algorithm::binary_le;
    case KILN_OP_TENSOR_GT: return dnnl::algorithm::binary_gt;
    case KILN_OP_TENSOR_GE: return dnnl::algorithm::binary_ge;
    case KILN_OP_TENSOR_MAX: break;
  }
  return dnnl::algorithm::binary_max;
}

TensorDims sizes(onednn::Random& random, int rank) {
  TensorDims dims{};
  for (int i = 0; i < rank; ++i) dims[i] = random.among(1, i == 1 ? 20 : rank > 5 ? 4 : 7);
  return dims;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pointwise_onednn)

// oneDNN's approximations of exp, erf and tanh in f32 have errors of some 1e-6. A wrong formula
// would differ in the first digits.
BOOST_AUTO_TEST_CASE(activations_and_gradients) {
  onednn::Random random(8);
  for (const Eltwise& e : eltwise) {
    for (int turn = 0; turn < 6; ++turn) {
      const int rank = static_cast<int>(random.among(1, 6));
      const Tensor t = random.tensor(rank, sizes(random, rank));
      const Memory::desc desc = layout(t);
      const Activation activation{e.mode, e.coefficient, e.coefficient2};
      std::vector<float> x = random.values(elements(t), -5, 5), y(x.size()), dx(x.size());
      onednn::execute(dnnl::eltwise_forward(describe(e, desc)),
                      {{DNNL_ARG_SRC, wrap(desc, x)}, {DNNL_ARG_DST, wrap(desc, y)}});
      compare(make_activation_forward(activation, t, t), {x.data()}, y, 4, 4e-6);

      std::vector<float> dy = random.values(x.size());
      onednn::execute(dnnl::eltwise_backward(describe_gradient(e, desc)),
                      {{DNNL_ARG_SRC, wrap(desc, x)},
                       {DNNL_ARG_DIFF_DST, wrap(desc, dy)},
                       {DNNL_ARG_DIFF_SRC, wrap(desc, dx)}});
      // Some of Kiln's gradients are functions of y; oneDNN's are always of x here.
      const bool from_y = gradient_from_output(activation);
      compare(make_activation_backward(activation, t, "saved", t, t),
              {from_y ? y.data() : x.data(), dy.data()}, dx, 4, 1e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(binary_operations) {
  onednn::Random random(9);
  for (int turn = 0; turn < 120; ++turn) {
    const std::vector<kilnOpTensorOp_t> all = all_of<kilnOpTensorOp_t>();
    const kilnOpTensorOp_t op = all[static_cast<std::size_t>(turn) % all.size()];
    const int rank = static_cast<int>(random.among(1, 5));
    const Tensor c = random.tensor(rank, sizes(random, rank));
    TensorDims narrow = c.dims;  // oneDNN broadcasts its second operand
    for (int i = 0; i < rank; ++i)
      if (random.coin()) narrow[i] = 1;
    const Tensor a = random.tensor(rank, c.dims), b = random.tensor(rank, narrow);
    std::vector<float> from_a = random.values(elements(a)), from_b = random.values(elements(b)),
                       to(elements(c));
    onednn::execute(dnnl::binary(onednn::describe_forward<dnnl::binary>(algorithm_of(op), layout(a),
                                                                        layout(b), layout(c))),
                    {{DNNL_ARG_SRC_0, wrap(layout(a), from_a)},
                     {DNNL_ARG_SRC_1, wrap(layout(b), from_b)},
                     {DNNL_ARG_DST, wrap(layout(c), to)}});
    compare(make_binary(op, a, b, c), {from_a.data(), from_b.data()}, to);
  }
}

// oneDNN's reorder is a transform with alpha 1, so the bits are equal.
BOOST_AUTO_TEST_CASE(transforms) {
  onednn::Random random(10);
  for (int turn = 0; turn < 60; ++turn) {
    const int rank = static_cast<int>(random.among(1, 6));
    const TensorDims dims = sizes(random, rank);
    const Tensor x = random.tensor(rank, dims), y = random.tensor(rank, dims);
    std::vector<float> from = random.values(elements(x)), to(elements(y));
    const Memory in = wrap(layout(x), from), out = wrap(layout(y), to);
    onednn::execute(dnnl::reorder(in, out), {{DNNL_ARG_FROM, in}, {DNNL_ARG_TO, out}});
    compare(make_transform(x, y), {from.data()}, to, 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
