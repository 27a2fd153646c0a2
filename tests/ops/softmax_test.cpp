// Softmax in every algorithm, mode, type and layout, by all engines; extreme values; its gradient.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "engines/softmax/softmax_online.hpp"
#include "placed_case.hpp"
#include "random_tensors.hpp"

BOOST_AUTO_TEST_SUITE(softmax)

namespace {

using namespace test;

constexpr kilnSoftmaxAlgorithm_t algorithms[] = {KILN_SOFTMAX_FAST, KILN_SOFTMAX_ACCURATE,
                                                 KILN_SOFTMAX_LOG};
constexpr kilnSoftmaxMode_t modes[] = {KILN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_INSTANCE};
constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};
constexpr const char* all_engines[] = {"softmax", "softmax_online", "softmax_online_in_turn"};

Tensor dense(DataType type, const TensorDims& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(format, 4, dims);
  return out;
}

OperationCase forward_case(const Tensor& x, const Tensor& y,
                           kilnSoftmaxAlgorithm_t algorithm = KILN_SOFTMAX_ACCURATE,
                           kilnSoftmaxMode_t mode = KILN_SOFTMAX_MODE_CHANNEL) {
  return OperationCase(make_softmax_forward(algorithm, mode, x, y));
}
OperationCase backward_case(const Tensor& y, const Tensor& dy, const Tensor& dx,
                            kilnSoftmaxAlgorithm_t algorithm = KILN_SOFTMAX_ACCURATE,
                            kilnSoftmaxMode_t mode = KILN_SOFTMAX_MODE_CHANNEL) {
  return OperationCase(make_softmax_backward(algorithm, mode, y, dy, dx));
}

Proposal proposal_of(const Problem& problem, const std::string& named = {}) {
  std::vector<EngineRefusal> refusals;
  return choose(problem, device()->description(), {.only_engine = named}, refusals);
}

// The engine that is chosen for a problem, and the number of blocks that share a row.
std::string way_of(const Problem& problem) {
  const Proposal proposal = proposal_of(problem);
  return cat(proposal.first().kernel.engine, " x", proposal.first().launch.shape.cluster);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind) {
  RandomProblems random(1);
  for (int turn = 0; turn < turns(4, 12); ++turn)
    for (kilnSoftmaxAlgorithm_t algorithm : algorithms)
      for (kilnSoftmaxMode_t mode : modes) {
        const int rank = static_cast<int>(random.among(3, 5));
        const TensorDims dims = random.sizes(rank);
        const DataType type = random.type();
        const Tensor x = random.tensor(type, rank, dims), y = random.tensor(type, rank, dims),
                     z = random.tensor(type, rank, dims);
        OperationCase forward = forward_case(x, y, algorithm, mode);
        forward.scalars = random.scalars();
        forward.fill_uniform(random.seed(), -5, 5);
        OperationCase backward = backward_case(x, y, z, algorithm, mode);
        backward.scalars = random.scalars();
        backward.fill_uniform(random.seed(), -1, 1);
        // The first engine refuses rows that do not fit into registers, which the second takes.
        const char* const engine = turn % 2 == 0 ? "" : "softmax_online";
        BOOST_TEST(check(forward, engine) == "");
        BOOST_TEST(check(backward, engine) == "");
      }
}

// Rows of one element to some tens of thousands, along the contiguous dimension and across it: a
// row is computed by a thread, a warp, a block or a cluster.
BOOST_AUTO_TEST_CASE(rows_of_any_length) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF})
    for (kilnTensorFormat_t layout : layouts)
      for (std::int64_t channels : {1, 2, 3, 10, 33, 96, 129, 257, 1000, 2500, 30001}) {
        if (!share.takes(type, layout, channels)) continue;
        const Tensor t = dense(type, {2, channels, 1, channels > 1000 ? 2 : 12}, layout);
        OperationCase forward = forward_case(t, t);
        forward.fill_uniform(2, -8, 8);
        BOOST_TEST(check(forward) == "");
        OperationCase backward = backward_case(t, t, t);
        backward.fill_uniform(3, -1, 1);
        BOOST_TEST(check(backward) == "");
      }
}

// Rows that a cluster shares, some of which do not fit into its shared memory.
BOOST_AUTO_TEST_CASE(rows_of_a_whole_image) {
  for (const TensorDims& dims :
       {TensorDims{2, 40, 32, 33}, TensorDims{1, 1000, 30, 31}, TensorDims{3, 7, 41, 43}}) {
    const Tensor t = dense(KILN_DATA_FLOAT, dims);
    for (kilnSoftmaxAlgorithm_t algorithm : {KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_LOG}) {
      OperationCase forward = forward_case(t, t, algorithm, KILN_SOFTMAX_MODE_INSTANCE);
      forward.fill_uniform(2, -8, 8);
      BOOST_TEST(check(forward) == "", way_of(forward.problem));
    }
    OperationCase backward =
        backward_case(t, t, t, KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_INSTANCE);
    backward.fill_uniform(3, -1, 1);
    BOOST_TEST(check(backward) == "", way_of(backward.problem));
  }
}

// Rows of which only a part fits into shared memory, with one block per multiprocessor and with
// two.
BOOST_AUTO_TEST_CASE(rows_kept_in_part) {
  DeviceDescription small = device()->description();
  small.multiprocessors = 2;
  small.largest_cluster = std::min(small.largest_cluster, 2);
  small.shared_memory_per_block = 24 << 10;
  small.shared_memory_per_multiprocessor = 25 << 10;
  const SoftmaxOnlineEngine one_row;
  const SoftmaxOnlineInTurnEngine in_turn;  // at most 2 clusters for 5 rows
  const Engine* const online_engines[] = {&one_row, &in_turn};
  for (DataType type : all_types)
    for (std::int64_t channels : {5, 8})
      for (bool backward : {false, true}) {
        const Tensor t = dense(type, {5, channels, 61, 67});
        OperationCase item = backward ? backward_case(t, t, t, KILN_SOFTMAX_ACCURATE, modes[1])
                                      : forward_case(t, t, KILN_SOFTMAX_LOG, modes[1]);
        item.fill_uniform(static_cast<unsigned>(channels), -1, 1);
        for (const Engine* engine : online_engines) {
          auto answer = engine->candidates(item.problem, small);
          for (const Candidate& candidate : std::get<std::vector<Candidate>>(answer)) {
            const std::string fault = item.fault(run_proposal(item, *candidate.made));
            BOOST_TEST(fault == "", engine->name()
                                        << ": " << text_of(item.problem) << ": " << fault);
          }
        }
      }
}

BOOST_AUTO_TEST_CASE(long_rows_go_to_the_online_engine) {
  const Tensor small = dense(KILN_DATA_FLOAT, {2, 96, 8, 8}),
               wide = dense(KILN_DATA_FLOAT, {1, 2000000, 1, 1});
  BOOST_TEST(proposal_of(forward_case(small, small).problem).first().kernel.engine == "softmax");
  const Proposal online =
      proposal_of(make_softmax_forward(KILN_SOFTMAX_FAST, KILN_SOFTMAX_MODE_CHANNEL, wide, wide));
  BOOST_TEST(online.first().kernel.engine == "softmax_online");
  if (device()->description().largest_cluster >= 8)
    BOOST_TEST(online.first().launch.shape.cluster >= 8u);
}

BOOST_AUTO_TEST_CASE(rows_add_up_to_one) {
  for (kilnSoftmaxAlgorithm_t algorithm : {KILN_SOFTMAX_FAST, KILN_SOFTMAX_ACCURATE}) {
    const Tensor t = dense(KILN_DATA_FLOAT, {2, 50, 3, 5});
    OperationCase item = forward_case(t, t, algorithm);
    item.fill_uniform(4, -30, 30);
    const HostTensor y = item.run_plan();
    for (std::int64_t n = 0; n < 2; ++n)
      for (std::int64_t pixel = 0; pixel < 15; ++pixel) {
        double sum = 0;
        for (std::int64_t c = 0; c < 50; ++c) sum += y.at((n * 50 + c) * 15 + pixel);
        BOOST_TEST(std::fabs(sum - 1) < 1e-5);
      }
  }
}

// softmax(x + c) = softmax(x). The test has small integers, whose sums and differences are exact.
BOOST_AUTO_TEST_CASE(a_shift_changes_nothing) {
  for (const char* engine : all_engines) {
    const Tensor t = dense(KILN_DATA_FLOAT, {2, 21, 3, 4});
    OperationCase item = forward_case(t, t);
    item.fill_integers(4, 20);
    OperationCase shifted = item;
    for (double& x : shifted["x"].values) x += 4096;
    BOOST_TEST(difference(item.run_plan(engine), shifted.run_plan(engine)) == "");
  }
}

BOOST_AUTO_TEST_CASE(finite_for_every_finite_input) {
  for (DataType type : all_types) {
    const double most = type == KILN_DATA_HALF     ? 65504
                        : type == KILN_DATA_DOUBLE ? std::numeric_limits<double>::max()
                        : type == KILN_DATA_FLOAT  ? double{std::numeric_limits<float>::max()}
                                                   : 0x1.fep127;
    const Tensor t = dense(type, {1, 4, 1, 2});
    for (kilnSoftmaxAlgorithm_t algorithm : algorithms)
      for (const char* engine : all_engines) {
        OperationCase item = forward_case(t, t, algorithm);
        // The rows: most, most, -most, 88; and -most, 0, 1, -104.
        item["x"].values = {most, -most, most, 0, -most, 1, 88, -104};
        const HostTensor got = item.run_plan(engine);
        for (std::size_t i = 0; i < got.values.size(); ++i) {
          const double value = got.values[i];
          if (algorithm != KILN_SOFTMAX_LOG) {
            BOOST_TEST((value >= 0 && value <= 1));
          } else {  // the logarithm is -2 most, which is below the type's range
            BOOST_TEST((value <= 0 && (std::isfinite(value) || item["x"].values[i] == -most)));
          }
        }
        BOOST_TEST(got.values[0] ==
                       (algorithm == KILN_SOFTMAX_LOG
                            ? reference::round_to_format(-std::log(2.0), reference::format_of(type))
                            : 0.5),
                   boost::test_tools::tolerance(1e-6));
      }
  }
}

BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const std::vector<std::vector<double>> rows{
      {nan, 1, 2, 3},  {1, 2, 3, nan},        {inf, 1, 2, 3},           {inf, -inf, inf, 3},
      {-inf, 1, 2, 3}, {-inf, -inf, -inf, 5}, {-inf, -inf, -inf, -inf}, {nan, nan, nan, nan}};
  for (kilnSoftmaxAlgorithm_t algorithm : algorithms)
    for (const char* engine : all_engines)
      for (const std::vector<double>& row : rows) {
        const Tensor t = dense(KILN_DATA_FLOAT, {1, 4, 1, 1});
        OperationCase item = forward_case(t, t, algorithm);
        item["x"].values = row;
        BOOST_TEST(check(item, engine) == "");
      }
  // A NaN in one row does not reach another.
  for (const char* engine : all_engines)
    for (bool backward : {false, true}) {
      const Tensor t = dense(KILN_DATA_FLOAT, {2, 6, 2, 4});
      OperationCase item = backward ? backward_case(t, t, t) : forward_case(t, t);
      item.fill_uniform(1);
      item.tensors[0].at(13) = nan;
      BOOST_TEST(check(item, engine) == "");
    }
}

// The gradient of sum(dy * softmax(x)) with respect to x against difference quotients.
BOOST_AUTO_TEST_CASE(gradients_are_differences) {
  constexpr double step = 1e-6;
  const Tensor t = dense(KILN_DATA_DOUBLE, {2, 5, 2, 3});
  for (kilnSoftmaxAlgorithm_t algorithm : algorithms)
    for (kilnSoftmaxMode_t mode : modes) {
      OperationCase forward = forward_case(t, t, algorithm, mode);
      forward.fill_uniform(1, -2, 2);
      OperationCase backward = backward_case(t, t, t, algorithm, mode);
      backward.fill_uniform(2);
      backward["y"].values = forward.run_plan().values;
      const HostTensor dx = backward.run_plan();
      for (std::size_t i : {0u, 7u, 23u, 59u}) {
        const auto objective = [&](double shift) {
          OperationCase moved = forward;
          moved["x"].values[i] += shift;
          const HostTensor y = moved.run_plan();
          double sum = 0;
          for (std::size_t j = 0; j < y.values.size(); ++j)
            sum += y.values[j] * backward["dy"].values[j];
          return sum;
        };
        const double slope = (objective(step) - objective(-step)) / (2 * step);
        BOOST_TEST(std::fabs(slope - dx.values[i]) < 1e-7);
      }
    }
}

BOOST_AUTO_TEST_CASE(in_place_and_empty) {
  const std::shared_ptr<Device> on = device();
  for (const char* engine : all_engines)
    for (const TensorDims& dims :
         {TensorDims{2, 10, 3, 4}, TensorDims{1, 3000, 1, 2}, TensorDims{0, 4, 2, 2}}) {
      if (dims[1] > 1000 && std::string(engine) == "softmax") continue;
      const Tensor t = dense(KILN_DATA_FLOAT, dims);
      OperationCase item = forward_case(t, t);
      item.fill_uniform(1);
      Plan plan(on, item.problem);
      plan.finalize({.grant = {.only_engine = engine}});
      const DeviceBuffer buffer(*on, item["x"].bytes());
      void* const operands[] = {buffer.address(), buffer.address()};
      plan.execute(operands, {}, nullptr);
      HostTensor got = item.result();
      got.read(buffer.read());
      BOOST_TEST(item.fault(got) == "");
    }
}

BOOST_AUTO_TEST_CASE(memory_aligned_to_elements_alone) {
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : layouts)
      for (const char* engine : all_engines) {
        const Tensor t = dense(type, {2, 24, 4, 4}, layout);
        OperationCase forward = forward_case(t, t);
        forward.fill_uniform(5, -3, 3);
        BOOST_TEST(forward.fault(run_shifted(forward, 1, engine)) == "");
        OperationCase backward = backward_case(t, t, t);
        backward.scalars.beta = 0.5;
        backward.fill_uniform(6);
        BOOST_TEST(backward.fault(run_shifted(backward, 1, engine)) == "");
        // The alignment does not change the order of operations, so results have the same bits.
        BOOST_TEST(difference(run_shifted(forward, 1, engine), forward.run_plan(engine)) == "");
      }
}

BOOST_AUTO_TEST_CASE(elements_far_apart) {
  constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements
  const Tensor t = dense(KILN_DATA_HALF, {2, 3, 2, 8});
  for (int axis : {0, 1, 2})
    for (const char* engine : all_engines) {
      OperationCase item = forward_case(t, t);
      item.fill_uniform(7, -2, 2);
      Tensor far = t;
      far.strides[axis] = beyond;
      for (bool output : {false, true}) {
        const Problem wide = make_softmax_forward(KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_CHANNEL,
                                                  output ? t : far, output ? far : t);
        BOOST_TEST(item.fault(run_wide(item, wide, engine)) == "");
      }
    }
}

BOOST_AUTO_TEST_CASE(the_same_bits_every_time) {
  for (const TensorDims& dims : {TensorDims{2, 96, 10, 10}, TensorDims{1, 64, 60, 60}}) {
    const Tensor t = dense(KILN_DATA_FLOAT, dims);
    OperationCase item =
        forward_case(t, t, KILN_SOFTMAX_ACCURATE,
                     dims[0] == 1 ? KILN_SOFTMAX_MODE_INSTANCE : KILN_SOFTMAX_MODE_CHANNEL);
    item.fill_uniform(5, -9, 9);
    const HostTensor first = item.run_plan();
    for (int again = 0; again < 3; ++again) BOOST_TEST(difference(item.run_plan(), first) == "");
  }
}

// Differences beyond the type's largest number: the logarithm is -infinity, and no result is NaN.
BOOST_AUTO_TEST_CASE(differences_beyond_the_type) {
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_DOUBLE})
    for (kilnSoftmaxAlgorithm_t algorithm : {KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_LOG})
      for (const char* engine : all_engines) {
        const Tensor t = dense(type, {1, 2, 1, 1});
        OperationCase item = forward_case(t, t, algorithm, KILN_SOFTMAX_MODE_CHANNEL);
        const double far = type == KILN_DATA_DOUBLE ? 1.7e308 : static_cast<double>(3e38F);
        item["x"].values = {far, -far};
        const HostTensor got = item.run_plan(engine);
        const bool log = algorithm == KILN_SOFTMAX_LOG;
        BOOST_TEST(got.at(0) == (log ? 0 : 1));
        BOOST_TEST(got.at(1) == (log ? -HUGE_VAL : 0));
      }
}

BOOST_AUTO_TEST_CASE(one_kernel_for_every_batch) {
  for (kilnTensorFormat_t layout : layouts)
    for (kilnSoftmaxMode_t mode : modes)
      for (const char* engine : all_engines) {
        const auto kernel = [&](std::int64_t n) {
          const Tensor t = dense(KILN_DATA_FLOAT, {n, 16, 9, 8}, layout);
          return proposal_of(make_softmax_forward(KILN_SOFTMAX_FAST, mode, t, t), engine)
              .first()
              .kernel;
        };
        BOOST_TEST((kernel(2) == kernel(7)));
        BOOST_TEST((kernel(1) == kernel(5000)));
      }
}

BOOST_AUTO_TEST_SUITE_END()
