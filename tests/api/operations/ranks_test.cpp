// Tensors of 1 to 8 dimensions against loops over the descriptors' own dimensions, independent of
// how the library folds them.
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "api/objects.hpp"

using namespace test;

namespace {

constexpr auto f64 = KILN_DATA_DOUBLE;

// A tensor of doubles with a random order of dimensions in memory, or dense.
struct Array {
  Sizes dims, strides;
  std::vector<double> values;

  Array(const Sizes& sizes, std::mt19937& random, bool shuffled) : dims(sizes), strides(sizes) {
    std::vector<std::size_t> order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    if (shuffled) std::swap(order.front(), order.back());
    std::int64_t next = 1;
    for (std::size_t i = order.size(); i-- > 0; next *= dims[order[i]]) strides[order[i]] = next;
    std::uniform_real_distribution<double> value(-2, 2);
    for (std::int64_t i = 0; i < next; ++i) values.push_back(value(random));
  }
  // Broadcast where a size is 1.
  double& at(const Sizes& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] != 1) offset += index[i] * strides[i];
    return values[static_cast<std::size_t>(offset)];
  }
};

void for_each(const Sizes& dims, const std::function<void(const Sizes&)>& visit) {
  Sizes index(dims.size(), 0);
  for (;;) {
    visit(index);
    std::size_t i = dims.size();
    while (i > 0 && ++index[i - 1] == dims[i - 1]) index[--i] = 0;
    if (i == 0) return;
  }
}

class Ranks {
 public:
  // Dimensions of 2 or 3, and a longer last one.
  explicit Ranks(int rank) {
    for (int i = 0; i < rank; ++i) dims_.push_back(i + 1 == rank ? 5 : i % 2 + 2);
  }

  void transform(bool shuffled) {
    Array x(dims_, random_, shuffled), y(dims_, random_, false);
    Array expected = y;
    for_each(dims_, [&](const Sizes& i) { expected.at(i) = 2 * x.at(i) - expected.at(i); });
    const double alpha = 2, beta = -1;
    run(y, expected, {&x}, [&](const auto& d, const auto& p) {
      return kilnTransformTensor(handle_, &alpha, *d[0], p[0], &beta, *d[1], p[1]);
    });
  }

  // Every other dimension of b has one element.
  void add() {
    Sizes few = dims_;
    for (std::size_t i = 0; i < few.size(); i += 2) few[i] = 1;
    Array a(dims_, random_, true), b(few, random_, false), c(dims_, random_, false);
    Array expected = c;
    for_each(dims_, [&](const Sizes& i) { expected.at(i) = a.at(i) + 0.5 * b.at(i); });
    const double one = 1, half = 0.5, zero = 0;
    run(c, expected, {&a, &b}, [&](const auto& d, const auto& p) {
      return kilnOpTensor(handle_, KILN_OP_TENSOR_ADD, &one, *d[0], p[0], &half, *d[1], p[1], &zero,
                          *d[2], p[2]);
    });
  }

  // Over every dimension whose number is odd, or even.
  void sum(std::size_t parity) {
    Sizes few = dims_;
    for (std::size_t i = parity; i < few.size(); i += 2) few[i] = 1;
    Array a(dims_, random_, false), c(few, random_, false);
    Array expected = c;
    for (double& value : expected.values) value = 0;
    for_each(dims_, [&](const Sizes& i) { expected.at(i) += a.at(i); });
    const double one = 1, zero = 0;
    run(c, expected, {&a}, [&](const auto& d, const auto& p) {
      return kilnReduceTensor(handle_, KILN_REDUCE_SUM, &one, *d[0], p[0], &zero, *d[1], p[1]);
    });
  }

  void softmax(kilnSoftmaxMode_t mode) {
    Array x(dims_, random_, false), y(dims_, random_, false);
    Array expected = y;
    Sizes row(dims_.size(), 1), rest = dims_;  // what a sum runs over, and where there is one
    for (std::size_t i = 1; i < dims_.size(); ++i)
      if (i == 1 || mode == KILN_SOFTMAX_MODE_INSTANCE) row[i] = dims_[i], rest[i] = 1;
    for_each(rest, [&](const Sizes& at) {
      const auto place = [&](const Sizes& in_row) {
        Sizes out = at;
        for (std::size_t i = 0; i < out.size(); ++i) out[i] += in_row[i];
        return out;
      };
      double sum = 0;
      for_each(row, [&](const Sizes& i) { sum += std::exp(x.at(place(i))); });
      for_each(row,
               [&](const Sizes& i) { expected.at(place(i)) = std::exp(x.at(place(i))) / sum; });
    });
    const double one = 1, zero = 0;
    run(y, expected, {&x}, [&](const auto& d, const auto& p) {
      return kilnSoftmaxForward(handle_, KILN_SOFTMAX_ACCURATE, mode, &one, *d[0], p[0], &zero,
                                *d[1], p[1]);
    });
  }

  void relu_gradient() {
    Array y(dims_, random_, false), dy(dims_, random_, true), dx(dims_, random_, false);
    Array expected = dx;
    for_each(dims_, [&](const Sizes& i) { expected.at(i) = y.at(i) > 0 ? dy.at(i) : 0; });
    kilnActivationDescriptor_t relu = nullptr;
    succeeds(kilnCreateActivationDescriptor(&relu));
    succeeds(kilnSetActivationDescriptor(relu, KILN_ACTIVATION_RELU, 0));
    const double one = 1, zero = 0;
    run(dx, expected, {&y, &dy}, [&](const auto& d, const auto& p) {
      return kilnActivationBackward(handle_, relu, &one, *d[0], p[0], *d[1], p[1], nullptr, nullptr,
                                    &zero, *d[2], p[2]);
    });
    succeeds(kilnDestroyActivationDescriptor(relu));
  }

 private:
  // The immediate call of the inputs' and the result's descriptors and addresses.
  template <class Call>
  void run(const Array& result, const Array& expected, std::vector<Array*> operands,
           const Call& call) {
    Array before = result;
    operands.push_back(&before);
    std::vector<std::unique_ptr<TensorDesc>> descriptors;
    std::vector<std::unique_ptr<Buffer<double>>> buffers;
    std::vector<void*> addresses;
    for (const Array* array : operands) {
      descriptors.push_back(std::make_unique<TensorDesc>(f64, array->dims, array->strides));
      buffers.push_back(std::make_unique<Buffer<double>>(array->values));
      addresses.push_back(buffers.back()->data());
    }
    succeeds(call(descriptors, addresses));
    const std::vector<double> got = buffers.back()->read();
    for (std::size_t i = 0; i < got.size(); ++i)
      BOOST_TEST_REQUIRE(std::fabs(got[i] - expected.values[i]) < 1e-13);
  }

  Sizes dims_;
  std::mt19937 random_{5};
  TestHandle handle_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(ranks)

BOOST_AUTO_TEST_CASE(one_and_two_dimensions) {
  Ranks(1).transform(false);
  Ranks(1).add();
  Ranks(1).sum(0);
  Ranks(2).transform(true);
  Ranks(2).sum(1);
  Ranks(2).softmax(KILN_SOFTMAX_MODE_CHANNEL);
  Ranks(2).relu_gradient();
}

BOOST_AUTO_TEST_CASE(six_to_eight_dimensions) {
  Ranks(6).transform(true);
  Ranks(6).softmax(KILN_SOFTMAX_MODE_INSTANCE);
  Ranks(7).softmax(KILN_SOFTMAX_MODE_CHANNEL);
  Ranks(7).relu_gradient();
  Ranks(8).transform(true);
}

// {2, 3, 2, 3, 2, 5} with every other dimension summed or broadcast has six axes that cannot be
// joined, which kernels do not support; five are supported.
BOOST_AUTO_TEST_CASE(alternating_dimensions) {
  Ranks(5).sum(1);
  Ranks(5).add();
  const TestHandle handle;
  const TensorDesc a(f64, {2, 3, 2, 3, 2, 5}), c(f64, {2, 1, 2, 1, 2, 1}),
      joined(f64, {2, 3, 1, 1, 2, 5});
  kilnPlan_t plan = nullptr;
  fails(kilnCreateReduceTensorPlan(handle, KILN_REDUCE_SUM, a, c, &plan), KILN_STATUS_NOT_SUPPORTED,
        {"the tensors have 6 dimensions, of which 6 are left", "expected at most 5"});
  BOOST_TEST(plan == nullptr);
  const char* line = nullptr;
  succeeds(kilnCreateReduceTensorPlan(handle, KILN_REDUCE_SUM, a, joined, &plan));
  succeeds(kilnGetPlanText(plan, KILN_PLAN_PROBLEM, &line));
  BOOST_TEST(std::string(line).ends_with(" --op reduce_sum --dt f64 2x3x6x10:2x3x1x10"), line);
  succeeds(kilnDestroyPlan(plan));
}

BOOST_AUTO_TEST_CASE(descriptors_of_any_rank_read_back) {
  const Sizes eight{2, 3, 4, 5, 6, 7, 8, 9};
  const TensorDesc last(KILN_DATA_FLOAT, eight, KILN_TENSOR_NHWC);
  Sizes dims(8), strides(8);
  int rank = 0;
  succeeds(
      kilnGetTensorNdDescriptor(last, KILN_DIM_MAX, nullptr, &rank, dims.data(), strides.data()));
  BOOST_TEST(rank == 8);
  BOOST_TEST(dims == eight);
  BOOST_TEST(strides == (Sizes{181440, 1, 45360, 9072, 1512, 216, 27, 3}));
  const TensorDesc one(KILN_DATA_FLOAT, {7}, KILN_TENSOR_NHWC);
  succeeds(kilnGetTensorNdDescriptor(one, 8, nullptr, &rank, dims.data(), strides.data()));
  BOOST_TEST(rank == 1);
  BOOST_TEST(dims[0] == 7);
  BOOST_TEST(strides[0] == 1);
  bad_param(kilnSetTensorNdDescriptor(one, KILN_DATA_FLOAT, 9, dims.data(), dims.data()),
            {"nbDims is 9; expected 1 to 8"});
  bad_param(kilnSetTensorNdDescriptor(one, KILN_DATA_FLOAT, 0, dims.data(), dims.data()),
            {"nbDims is 0; expected 1 to 8"});
  const FilterDesc filter(KILN_DATA_FLOAT, {2, 3, 4, 5});
  bad_param(kilnSetFilterNdDescriptor(filter, KILN_DATA_FLOAT, KILN_TENSOR_NCHW, 6, dims.data()),
            {"nbDims is 6; expected 3, 4 or 5"});
}

BOOST_AUTO_TEST_SUITE_END()
