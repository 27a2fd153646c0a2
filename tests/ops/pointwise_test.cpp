// Pointwise operations: every operation, type and layout; broadcasts, execution in place, special
// values.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "random_tensors.hpp"

BOOST_AUTO_TEST_SUITE(pointwise)

namespace {

using namespace test;

TensorDims broadcast(RandomProblems& random, TensorDims dims, int rank) {
  for (int i = 0; i < rank; ++i)
    if (random.among(0, 2) == 0) dims[i] = 1;
  return dims;
}

Tensor dense(DataType type, const TensorDims& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(format, 4, dims);
  return out;
}

OperationCase filled(const Problem& problem, const Scalars& scalars, unsigned seed,
                     double reach = 4) {
  OperationCase item(problem);
  item.scalars = scalars;
  item.fill_uniform(seed, -reach, reach);
  return item;
}

}  // namespace

BOOST_AUTO_TEST_CASE(transforms_between_all_types_and_layouts) {
  RandomProblems random(1);
  for (DataType from : all_types)
    for (DataType to : all_types)
      for (int turn = 0; turn < turns(1, 6); ++turn) {
        const int rank = static_cast<int>(random.among(3, 5));
        const TensorDims dims = random.sizes(rank);
        const auto problem =
            make_transform(random.tensor(from, rank, dims), random.tensor(to, rank, dims));
        BOOST_TEST(check(filled(problem, random.scalars(), random.seed())) == "");
      }
}

// Planes that are large enough for tiles in shared memory, with and without partial tiles.
BOOST_AUTO_TEST_CASE(transposes) {
  for (DataType type : all_types)
    for (const TensorDims& dims :
         {TensorDims{2, 96, 10, 12}, TensorDims{1, 37, 9, 15}, TensorDims{2, 8, 3, 5}})
      for (kilnTensorFormat_t from : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
        for (double beta : {0.0, 2.0}) {
          const kilnTensorFormat_t to =
              from == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
          const auto problem = make_transform(dense(type, dims, from), dense(type, dims, to));
          const OperationCase item = filled(problem, {.alpha = 1.5, .beta = beta}, 3);
          BOOST_TEST(check(item, "transpose") == "");
          BOOST_TEST(check(item, "pointwise") == "");
        }
}

BOOST_AUTO_TEST_CASE(broadcast_addition_and_binary_operations) {
  RandomProblems random(2);
  const std::vector<kilnOpTensorOp_t> operations = all_of<kilnOpTensorOp_t>();
  for (std::size_t turn = 0; turn < static_cast<std::size_t>(turns(30, 150)); ++turn) {
    const int rank = static_cast<int>(random.among(3, 5));
    const TensorDims dims = random.sizes(rank);
    const DataType type = random.type();
    const Tensor a = random.tensor(type, rank, broadcast(random, dims, rank));
    const Tensor b = random.tensor(type, rank, broadcast(random, dims, rank));
    const Tensor c = random.tensor(type, rank, dims);
    const auto op = operations[turn % operations.size()];
    const Problem problem = turn % 5 == 0 ? make_add(a, c) : make_binary(op, a, b, c);
    BOOST_TEST(check(filled(problem, random.scalars(), random.seed())) == "");
  }
}

BOOST_AUTO_TEST_CASE(set_and_scale) {
  RandomProblems random(3);
  for (DataType type : all_types) {
    const Tensor y = random.tensor(type, 4, random.sizes(4));
    BOOST_TEST(check(filled(make_fill(y), {.alpha = 2.5, .beta = 0}, 1)) == "");
    BOOST_TEST(check(filled(make_fill(y), {.alpha = 0, .beta = -1.5}, 1)) == "");
  }
}

BOOST_AUTO_TEST_CASE(activations) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  RandomProblems random(4);
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>())
    for (DataType type : all_types)
      for (int turn = 0; turn < 2; ++turn) {
        if (!share.takes(mode, type, turn)) continue;
        const Activation activation{mode, 0.5, 2};
        const int rank = static_cast<int>(random.among(3, 5));
        const TensorDims dims = random.sizes(rank);
        const Tensor x = random.tensor(type, rank, dims), y = random.tensor(type, rank, dims),
                     dy = random.tensor(type, rank, dims);
        const Problem forward = make_activation_forward(activation, x, y);
        BOOST_TEST(check(filled(forward, random.scalars(), random.seed(), 12)) == "");
        const Problem backward = make_activation_backward(activation, x, "xDesc", dy, y);
        const double reach = gradient_from_output(activation) ? 1 : 12;
        BOOST_TEST(check(filled(backward, random.scalars(), random.seed(), reach)) == "");
      }
}

// dx of the kernels against difference quotients of y of the kernels.
BOOST_AUTO_TEST_CASE(gradients_are_differences) {
  const Tensor t = dense(KILN_DATA_DOUBLE, {2, 3, 4, 5});
  constexpr double step = 1e-6;
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>()) {
    const Activation activation{mode, 1.5, 2.5};
    const bool of_positive =
        mode == KILN_ACTIVATION_LOG || mode == KILN_ACTIVATION_SQRT || mode == KILN_ACTIVATION_POW;
    OperationCase forward(make_activation_forward(activation, t, t));
    forward.fill_uniform(7, of_positive ? 0.5 : -4, 4);
    HostTensor& x = forward["x"];
    const HostTensor center = x, y = forward.run_plan();
    for (double& value : x.values) value += step;
    const HostTensor above = forward.run_plan();
    x = center;
    for (double& value : x.values) value -= step;
    const HostTensor below = forward.run_plan();

    OperationCase backward(make_activation_backward(activation, t, "saved", t, t));
    backward.tensors[0].values = gradient_from_output(activation) ? y.values : center.values;
    std::fill(backward["dy"].values.begin(), backward["dy"].values.end(), 1.0);
    const HostTensor dx = backward.run_plan();
    for (std::size_t i = 0; i < dx.values.size(); ++i) {
      const double difference = (above.values[i] - below.values[i]) / (2 * step);
      BOOST_TEST(std::fabs(dx.values[i] - difference) < 1e-7);
    }
  }
}

// The output may be an input, because every thread reads before it writes.
BOOST_AUTO_TEST_CASE(in_place) {
  const std::shared_ptr<Device> on = device();
  for (DataType type : all_types)
    for (const TensorDims& dims : {TensorDims{2, 16, 6, 8}, TensorDims{3, 5, 7, 3}}) {
      const Tensor t = dense(type, dims);
      OperationCase item(make_activation_forward({KILN_ACTIVATION_SIGMOID, 0}, t, t));
      item.fill_uniform(1);
      Plan plan(on, item.problem);
      plan.finalize();
      const DeviceBuffer buffer(*on, item["x"].bytes());
      void* const operands[] = {buffer.address(), buffer.address()};
      plan.execute(operands, {}, nullptr);
      HostTensor got = item.result();
      got.read(buffer.read());
      BOOST_TEST(item.fault(got) == "");
    }
}

// Operands that are only aligned to their elements.
BOOST_AUTO_TEST_CASE(any_alignment) {
  const std::shared_ptr<Device> on = device();
  for (DataType type : all_types)
    for (kilnTensorFormat_t to : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      const TensorDims dims{2, 16, 6, 8};
      OperationCase item(make_transform(dense(type, dims), dense(type, dims, to)));
      item.fill_uniform(1);
      Plan plan(on, item.problem);
      plan.finalize();
      auto shifted = [&](std::vector<std::byte> bytes) {
        bytes.insert(bytes.begin(), size_of(type), std::byte{0xff});
        return bytes;
      };
      const DeviceBuffer x(*on, shifted(item["x"].bytes())), y(*on, shifted(item["y"].bytes()));
      void* const operands[] = {static_cast<std::byte*>(x.address()) + size_of(type),
                                static_cast<std::byte*>(y.address()) + size_of(type)};
      plan.execute(operands, {}, nullptr);
      std::vector<std::byte> bytes = y.read();
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size_of(type)));
      HostTensor got = item.result();
      got.read(bytes);
      BOOST_TEST(item.fault(got) == "");
    }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  const Tensor t = dense(KILN_DATA_FLOAT, {1, 1, 1, 4});
  for (const kilnOpTensorOp_t op : all_of<kilnOpTensorOp_t>()) {
    OperationCase item(make_binary(op, t, t, t));
    item["a"].values = {nan, 1, inf, -inf};
    item["b"].values = {1, nan, 2, 2};
    BOOST_TEST(check(item) == "");
  }
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>()) {
    OperationCase item(make_activation_forward({mode, 1, 2}, t, t));
    item["x"].values = {nan, inf, 1e30, -1e30};
    BOOST_TEST(check(item) == "");
  }
}

BOOST_AUTO_TEST_CASE(an_empty_batch_is_legal) {
  const std::shared_ptr<Device> on = device();
  const Tensor t = dense(KILN_DATA_FLOAT, {0, 3, 4, 5});
  for (const Problem& problem :
       {Problem(make_fill(t)), Problem(make_transform(t, t)),
        Problem(make_activation_forward({KILN_ACTIVATION_RELU, 0}, t, t))}) {
    Plan plan(on, problem);
    plan.finalize();
    void* const nothing[] = {nullptr, nullptr, nullptr};
    plan.execute(nothing, {}, nullptr);
  }
}

// Another batch size needs no new kernel.
BOOST_AUTO_TEST_CASE(one_kernel_for_every_batch) {
  std::vector<EngineRefusal> refusals;
  const DeviceDescription& on = device()->description();
  for (kilnTensorFormat_t to : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
    const auto kernel = [&](std::int64_t n) {
      const TensorDims dims{n, 16, 9, 8};
      return choose(make_transform(dense(KILN_DATA_FLOAT, dims), dense(KILN_DATA_FLOAT, dims, to)),
                    on, {}, refusals)
          .first()
          .kernel;
    };
    BOOST_TEST((kernel(1) == kernel(7)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
