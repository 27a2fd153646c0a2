// Operations on the elements of tensors, and reductions, against the reference.
#include "cudnn/described.hpp"

using namespace test;

namespace {

constexpr auto f32 = KILN_DATA_FLOAT;
const Sizes image{2, 3, 5, 4};

}  // namespace

BOOST_AUTO_TEST_SUITE(elements)

BOOST_AUTO_TEST_CASE(add_with_broadcast) {
  for (const Layout layout : layouts)
    for (const Sizes& small : {Sizes{1, 3, 1, 1}, Sizes{1, 1, 5, 4}, image}) {
      const Tensor a_tensor = tensor(f32, small), c = tensor(f32, image, layout);
      const auto a_desc = describe(a_tensor), c_desc = describe(c);
      check(make_add(a_tensor, c), [&](const Arguments& a) {
        return cudnnAddTensor(a.handle, a.alpha, *a_desc, a.at[0], a.beta, *c_desc, a.at[1]);
      });
    }
}

BOOST_AUTO_TEST_CASE(binary_operations) {
  const std::pair<cudnnOpTensorOp_t, kilnOpTensorOp_t> operations[] = {
      {CUDNN_OP_TENSOR_ADD, KILN_OP_TENSOR_ADD},
      {CUDNN_OP_TENSOR_MUL, KILN_OP_TENSOR_MUL},
      {CUDNN_OP_TENSOR_MIN, KILN_OP_TENSOR_MIN},
      {CUDNN_OP_TENSOR_MAX, KILN_OP_TENSOR_MAX}};
  for (const auto& [operation, kiln_operation] : operations)
    for (const Layout layout : layouts) {
      const DataType type = layout == Layout::nhwc ? KILN_DATA_HALF : f32;
      const OpTensorDesc desc;
      succeeds(cudnnSetOpTensorDescriptor(desc, operation, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
      const Tensor t = tensor(type, image, layout), small = tensor(type, {1, 3, 1, 1});
      const auto d = describe(t), small_desc = describe(small);
      check(make_binary(kiln_operation, t, small, t),
            [&](const Arguments& a) {
              return cudnnOpTensor(a.handle, desc, a.alpha, *d, a.at[0], a.alpha2, *small_desc,
                                   a.at[1], a.beta, *d, a.at[2]);
            },
            {{1, 0, 1}, {-0.75, 1, 2}});
    }
}

BOOST_AUTO_TEST_CASE(operations_of_one_tensor) {
  const OpTensorDesc root, inverse;
  succeeds(cudnnSetOpTensorDescriptor(root, CUDNN_OP_TENSOR_SQRT, CUDNN_DATA_FLOAT,
                                      CUDNN_PROPAGATE_NAN));
  succeeds(cudnnSetOpTensorDescriptor(inverse, CUDNN_OP_TENSOR_NOT, CUDNN_DATA_FLOAT,
                                      CUDNN_PROPAGATE_NAN));
  const float four = 4;
  for (const Layout layout : layouts) {
    const Tensor t = tensor(f32, image, layout);
    const auto d = describe(t);
    // The square root of 4 a is twice that of a.
    check(
        make_activation_forward({KILN_ACTIVATION_SQRT}, t, t),
        [&](const Arguments& a) {
          return cudnnOpTensor(a.handle, root, &four, *d, a.at[0], a.alpha2, nullptr, nullptr,
                               a.beta, *d, a.at[1]);
        },
        {{2, 0}, {2, 0.5}}, 0.25, 4);
    check(make_activation_forward({KILN_ACTIVATION_LINEAR, -1, 1}, t, t),
          [&](const Arguments& a) {
            return cudnnOpTensor(a.handle, inverse, a.alpha, *d, a.at[0], a.alpha2, nullptr,
                                 nullptr, a.beta, *d, a.at[1]);
          },
          {{1, 0}, {1, 0.5}});
  }
}

BOOST_AUTO_TEST_CASE(set_and_scale) {
  for (const Layout layout : layouts) {
    const Tensor t = tensor(f32, image, layout);
    const auto d = describe(t);
    check(make_fill(t),
          [&](const Arguments& a) { return cudnnSetTensor(a.handle, *d, a.at[0], a.alpha); },
          {{2.5, 0}});
    check(make_fill(t),
          [&](const Arguments& a) { return cudnnScaleTensor(a.handle, *d, a.at[0], a.beta); },
          {{0, -1.5}});
  }
}

BOOST_AUTO_TEST_CASE(reductions) {
  const std::pair<cudnnReduceTensorOp_t, kilnReduceTensorOp_t> operations[] = {
      {CUDNN_REDUCE_TENSOR_ADD, KILN_REDUCE_SUM},
      {CUDNN_REDUCE_TENSOR_MUL, KILN_REDUCE_MUL},
      {CUDNN_REDUCE_TENSOR_MIN, KILN_REDUCE_MIN},
      {CUDNN_REDUCE_TENSOR_MAX, KILN_REDUCE_MAX},
      {CUDNN_REDUCE_TENSOR_AMAX, KILN_REDUCE_AMAX},
      {CUDNN_REDUCE_TENSOR_AVG, KILN_REDUCE_MEAN},
      {CUDNN_REDUCE_TENSOR_NORM1, KILN_REDUCE_NORM1},
      {CUDNN_REDUCE_TENSOR_NORM2, KILN_REDUCE_NORM2}};
  int turn = 0;
  for (const auto& [operation, kiln_operation] : operations) {
    const ReduceTensorDesc desc;
    succeeds(cudnnSetReduceTensorDescriptor(desc, operation, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
                                            CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
    const Layout layout = layouts[turn++ % 3];
    for (const Sizes& left : {Sizes{1, 3, 1, 1}, Sizes{2, 1, 5, 1}}) {
      const Tensor from = tensor(f32, image, layout), to = tensor(f32, left);
      const auto from_desc = describe(from), to_desc = describe(to);
      check(make_reduction(kiln_operation, from, to), [&](const Arguments& a) {
        return cudnnReduceTensor(a.handle, desc, nullptr, 0, nullptr, 0, a.alpha, *from_desc,
                                 a.at[0], a.beta, *to_desc, a.at[1]);
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(transforms) {
  for (const Layout from : layouts)
    for (const Layout to : layouts) {
      const DataType type = to == Layout::nhwc ? KILN_DATA_HALF : f32;
      const Tensor x = tensor(f32, image, from), y = tensor(type, image, to);
      const auto x_desc = describe(x), y_desc = describe(y);
      check(make_transform(x, y), [&](const Arguments& a) {
        return cudnnTransformTensor(a.handle, a.alpha, *x_desc, a.at[0], a.beta, *y_desc, a.at[1]);
      });
    }
  const Tensor x = tensor(f32, image), y = tensor(f32, image, Layout::nhwc);
  const auto x_desc = describe(x), y_desc = describe(y);
  const TransformDesc transform;
  succeeds(cudnnSetTensorTransformDescriptor(transform, 4, CUDNN_TENSOR_NHWC, nullptr, nullptr,
                                             nullptr, CUDNN_TRANSFORM_FOLD));
  check(make_transform(x, y), [&](const Arguments& a) {
    return cudnnTransformTensorEx(a.handle, transform, a.alpha, *x_desc, a.at[0], a.beta, *y_desc,
                                  a.at[1]);
  });
}

// Tensors of six to eight dimensions, as far as they fold into five.
BOOST_AUTO_TEST_CASE(many_dimensions) {
  for (const Sizes& dims :
       {Sizes{2, 3, 2, 2, 3, 2}, Sizes{2, 3, 2, 2, 1, 3, 2}, Sizes{2, 3, 2, 2, 1, 2, 1, 2}}) {
    const Tensor t = tensor(f32, dims);
    const auto d = describe(t);
    const ActivationDesc relu;
    succeeds(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
    check(make_activation_forward({KILN_ACTIVATION_RELU}, t, t), [&](const Arguments& a) {
      return cudnnActivationForward(a.handle, relu, a.alpha, *d, a.at[0], a.beta, *d, a.at[1]);
    });
    check(make_add(t, t), [&](const Arguments& a) {
      return cudnnAddTensor(a.handle, a.alpha, *d, a.at[0], a.beta, *d, a.at[1]);
    });
  }
}

BOOST_AUTO_TEST_SUITE_END()
