// Pooling in every mode, type and layout, forward and backward; ties, NaN, windows without taps.
#include <boost/test/unit_test.hpp>

#include "placed_case.hpp"
#include "random_tensors.hpp"

BOOST_AUTO_TEST_SUITE(pooling)

namespace {

using namespace test;

constexpr kilnPoolingMode_t modes[] = {KILN_POOLING_MAX, KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                       KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING};

PoolingSpec random_spec(RandomProblems& random, int spatial, kilnPoolingMode_t mode) {
  PoolingSpec spec;
  spec.spatial = spatial;
  spec.mode = mode;
  spec.nan = random.coin() ? KILN_PROPAGATE_NAN : KILN_NOT_PROPAGATE_NAN;
  for (int i = 0; i < spatial; ++i) {
    spec.window[i] = random.among(1, 4);
    spec.stride[i] = random.among(1, 4);
    spec.dilation[i] = random.among(1, 4) == 1 ? 2 : 1;
    const std::int64_t extent = (spec.window[i] - 1) * spec.dilation[i] + 1;
    spec.pad_before[i] = random.among(0, extent - 1);
    spec.pad_after[i] = random.among(0, extent - 1);
    // Some cases have windows entirely in the padding, or elements that no window reads.
    if (random.among(0, 3) == 0) spec.pad_before[i] = random.among(-2, 2 * extent + 1);
    if (random.among(0, 3) == 0) spec.pad_after[i] = random.among(-5, 2 * extent + 1);
  }
  spec.ceil = random.coin();
  return spec;
}

PoolingSpec square(kilnPoolingMode_t mode, std::int64_t window, std::int64_t stride,
                   std::int64_t pad) {
  PoolingSpec spec;
  spec.spatial = 2;
  spec.mode = mode;
  spec.window = {window, window};
  spec.stride = {stride, stride};
  spec.pad_before = spec.pad_after = {pad, pad};
  return spec;
}

Tensor dense(DataType type, const TensorDims& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(format, 4, dims);
  return out;
}

Problem backward_of(const PoolingSpec& spec, const Tensor& x, DataType type) {
  const Tensor dy = dense(type, pooling_output_dims(spec, x));
  return make_pooling_backward(spec, dy, &x, x);
}

// Checks a gradient by both engines that compute tiles. In NHWC the staged one takes vectors of
// channels.
void check_tiled(OperationCase& item, bool vectors = true) {
  BOOST_TEST(check(item, "pooling_backward_tiled") == "");
  if (vectors) BOOST_TEST(check(item, "pooling_backward_staged") == "");
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_problems) {
  RandomProblems random(1);
  int compared = 0;
  while (compared < turns(40, 240)) {
    const int rank = static_cast<int>(random.among(3, 5));
    const PoolingSpec spec = random_spec(random, rank - 2, modes[compared % 3]);
    const DataType type = random.type();
    const Tensor x = random.tensor(type, rank, random.sizes(rank));
    TensorDims out{};
    try {
      out = pooling_output_dims(spec, x);
    } catch (const Error&) {
      continue;  // the window does not fit
    }
    const Tensor y = random.tensor(type, rank, out);
    const Tensor dx = random.tensor(type, rank, x.dims);
    const bool forward = compared++ % 2 == 0;
    OperationCase item(forward ? Problem(make_pooling_forward(spec, x, y))
                               : Problem(make_pooling_backward(spec, y, &x, dx)));
    item.scalars = random.scalars();
    // There are few different values, so that windows have several maxima.
    item.fill_integers(random.seed(), 2);
    BOOST_TEST(check(item) == "");
    BOOST_TEST(check(item, "pooling") == "");
  }
}

// dx has several tiles in every direction.
BOOST_AUTO_TEST_CASE(gradients_of_several_tiles) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (kilnPoolingMode_t mode : modes)
    for (DataType type : all_types)
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
        for (std::int64_t stride : {1, 2, 3}) {
          if (!share.takes(cat(mode, " ", stride), type, layout)) continue;
          const PoolingSpec spec = square(mode, 3, stride, 1);
          const Tensor x = dense(type, {2, 40, 19, 35}, layout);
          const Tensor y = dense(type, pooling_output_dims(spec, x), layout);
          OperationCase item(make_pooling_backward(spec, y, &x, x));
          item.fill_integers(4, 2);
          check_tiled(item);
        }
}

BOOST_AUTO_TEST_CASE(global_pooling) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (kilnPoolingMode_t mode : modes)
    for (DataType type : all_types)
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        if (!share.takes(mode, type, layout)) continue;
        const Tensor x = dense(type, {2, 24, 7, 7}, layout);
        const PoolingSpec spec = square(mode, 7, 1, 0);
        OperationCase item(make_pooling_forward(spec, x, dense(type, {2, 24, 1, 1}, layout)));
        item.fill_uniform(1);
        BOOST_TEST(check(item) == "");
      }
}

// Single channels, pairs of planes with one left over, and contiguous channels.
BOOST_AUTO_TEST_CASE(nan_goes_where_it_is_read) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (kilnPoolingMode_t mode : modes)
    for (kilnNanPropagation_t propagation : {KILN_PROPAGATE_NAN, KILN_NOT_PROPAGATE_NAN})
      for (DataType type : all_types)
        for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
          if (!share.takes(mode, propagation, type, layout)) continue;
          PoolingSpec spec = square(mode, 3, 2, 1);
          spec.nan = propagation;
          const Tensor x = dense(type, {2, layout == KILN_TENSOR_NCHW ? 3 : 8, 9, 9}, layout);
          const Tensor y = dense(type, pooling_output_dims(spec, x), layout);
          OperationCase forward(make_pooling_forward(spec, x, y));
          forward.fill_integers(1, 2);
          for (std::int64_t i : {0, 1, 9, 10, 100, 200, 201}) forward["x"].at(i) = std::nan("");
          forward["x"].at(300) = HUGE_VAL;
          // All taps of some windows are -infinity, the least value, some of them beside NaN.
          for (std::int64_t i : {30, 31, 32, 39, 40, 41, 48, 49, 50})
            forward["x"].at(i) = -HUGE_VAL;
          forward["x"].at(39) = std::nan("");
          BOOST_TEST(check(forward) == "");
          if (mode != KILN_POOLING_MAX) continue;
          OperationCase backward(make_pooling_backward(spec, y, &x, x));
          backward.fill_uniform(2);
          backward["x"].values = forward["x"].values;
          BOOST_TEST(check(backward) == "");
          check_tiled(backward);
        }
}

// Planes that begin and end at any distance from 16 bytes, strided images and rows, single
// channels, and vectors of channels of less than 16 bytes; memory aligned to elements alone.
BOOST_AUTO_TEST_CASE(staged_places) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (DataType type : all_types)
    for (std::int64_t width : {7, 11, 40})
      for (std::int64_t channels : {1, 3, 12})
        for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
          if (!share.takes(width, channels, type, layout)) continue;
          const PoolingSpec spec = square(
              width == 11 ? KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING : KILN_POOLING_MAX, 3, 2, 1);
          const Tensor x = dense(type, {3, channels, 75, width}, layout);
          const Tensor y = dense(type, pooling_output_dims(spec, x), layout);
          OperationCase item(make_pooling_backward(spec, y, &x, x));
          item.fill_integers(5, 2);
          if (layout != KILN_TENSOR_NCHW && channels != 12) continue;
          const char* const engine = "pooling_backward_staged";
          BOOST_TEST(check(item, engine) == "");
          for (const double beta : {0.0, 0.5}) {
            item.scalars.beta = beta;
            BOOST_TEST(item.fault(run_shifted(item, 1, engine)) == "");
          }
        }
}

// -0 and 0 are equal, so the first of them is the maximum.
BOOST_AUTO_TEST_CASE(zeros_of_either_sign) {
  for (DataType type : all_types)
    for (std::int64_t channels : {3, 8})
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        const PoolingSpec spec = square(KILN_POOLING_MAX, 3, 2, 0);
        const Tensor x = dense(type, {2, channels, 9, 11}, layout);
        const Tensor y = dense(type, pooling_output_dims(spec, x), layout);
        OperationCase item(make_pooling_backward(spec, y, &x, x));
        item.fill_uniform(3);
        std::int64_t i = 0;
        for (double& value : item["x"].values)
          value = i++ % 5 == 0 ? -1.0 : i % 3 == 0 ? 0.0 : -0.0;
        check_tiled(item, layout == KILN_TENSOR_NCHW || channels % 8 == 0);
      }
}

// x has one element, and neither of a window's two taps around it is in x.
BOOST_AUTO_TEST_CASE(windows_without_taps) {
  for (kilnPoolingMode_t mode : modes) {
    PoolingSpec spec = square(mode, 2, 1, 1);
    spec.dilation = {2, 2};
    const Tensor x = dense(KILN_DATA_FLOAT, {1, 2, 1, 1});
    const Tensor y = dense(KILN_DATA_FLOAT, pooling_output_dims(spec, x));
    OperationCase forward(make_pooling_forward(spec, x, y));
    forward.fill_uniform(1);
    BOOST_TEST(check(forward) == "");
    OperationCase backward(make_pooling_backward(spec, y, &x, x));
    backward.fill_uniform(1);
    BOOST_TEST(check(backward) == "");
  }
}

// Padding larger than a window on every side, and negative padding, which leaves elements unread,
// in both kernels of the gradient. Windows in the padding contribute nothing.
BOOST_AUTO_TEST_CASE(wide_padding_and_elements_unread) {
  for (kilnPoolingMode_t mode : modes)
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (const std::array<std::int64_t, 4>& pad :
           {std::array<std::int64_t, 4>{5, 4, 7, 0}, {-4, -5, 2, -3}, {3, -6, 0, 6}}) {
        const DataType type = pad[0] == 3 ? KILN_DATA_HALF : KILN_DATA_FLOAT;
        PoolingSpec spec = square(mode, 3, 2, 0);
        spec.pad_before = {pad[0], pad[1]};
        spec.pad_after = {pad[2], pad[3]};
        const Tensor x = dense(type, {2, 8, 13, 17}, layout);
        const Tensor y = dense(type, pooling_output_dims(spec, x), layout);
        OperationCase forward(make_pooling_forward(spec, x, y));
        forward.fill_integers(3, 2);
        BOOST_TEST(check(forward) == "");
        OperationCase backward(make_pooling_backward(spec, y, &x, x));
        backward.fill_integers(4, 2);
        check_tiled(backward);
        BOOST_TEST(check(backward, "pooling") == "");
      }
}

BOOST_AUTO_TEST_CASE(overhangs_of_ceil_mode) {
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      PoolingSpec spec = square(KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 3, 2, 1);
      spec.ceil = true;
      const Tensor x = dense(type, {2, 8, 10, 16}, layout);
      const Tensor y = dense(type, pooling_output_dims(spec, x), layout);
      const PoolingProblem problem = make_pooling_forward(spec, x, y);
      BOOST_TEST((problem.overhang == Spatial{0, 1, 1}));
      OperationCase forward(problem);
      forward.fill_uniform(3);
      BOOST_TEST(check(forward) == "");
      OperationCase backward(make_pooling_backward(spec, y, nullptr, x));
      backward.fill_uniform(4);
      BOOST_TEST(check(backward, "pooling_backward_tiled") == "");
      BOOST_TEST(check(backward, "pooling") == "");
    }
}

BOOST_AUTO_TEST_CASE(gradients_are_differences) {
  constexpr double step = 1e-6;
  RandomProblems random(5);
  for (int turn = 0; turn < turns(4, 12); ++turn) {
    const PoolingSpec spec = square(modes[turn % 3], random.among(1, 3), random.among(1, 3), 0);
    const Tensor x = dense(KILN_DATA_DOUBLE, {1, 2, 6, 7});
    const Tensor y = dense(KILN_DATA_DOUBLE, pooling_output_dims(spec, x));
    OperationCase forward(make_pooling_forward(spec, x, y));
    forward.fill_uniform(random.seed());
    OperationCase backward(make_pooling_backward(spec, y, &x, x));
    backward.fill_uniform(random.seed());
    if (spec.mode == KILN_POOLING_MAX) backward["x"].values = forward["x"].values;
    const HostTensor dx = backward.run_plan();
    for (std::size_t i = 0; i < dx.values.size(); i += 11) {
      const auto objective = [&](double shift) {
        OperationCase moved = forward;
        moved["x"].values[i] += shift;
        const HostTensor pooled = moved.run_plan();
        double sum = 0;
        for (std::size_t j = 0; j < pooled.values.size(); ++j)
          sum += pooled.values[j] * backward["dy"].values[j];
        return sum;
      };
      const double slope = (objective(step) - objective(-step)) / (2 * step);
      BOOST_TEST(std::fabs(slope - dx.values[i]) < 1e-7);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_legal) {
  const std::shared_ptr<Device> on = device();
  const Tensor x = dense(KILN_DATA_FLOAT, {0, 3, 8, 8});
  Plan plan(on, backward_of(square(KILN_POOLING_MAX, 2, 2, 0), x, KILN_DATA_FLOAT));
  plan.finalize();
  void* const nothing[] = {nullptr, nullptr, nullptr};
  plan.execute(nothing, {}, nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
