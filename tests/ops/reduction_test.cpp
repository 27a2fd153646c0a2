// Reductions over any dimensions, in any layout; the bias gradient; special values.
#include "engines/reduction/reduction.hpp"

#include <boost/test/unit_test.hpp>

#include "placed_case.hpp"
#include "random_tensors.hpp"

BOOST_AUTO_TEST_SUITE(reduction)

namespace {

using namespace test;

const std::vector<kilnReduceTensorOp_t> operations = all_of<kilnReduceTensorOp_t>();
constexpr kilnTensorFormat_t layouts[] = {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC};

Tensor dense(DataType type, const TensorDims& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(format, 4, dims);
  return out;
}

OperationCase bias_case(DataType type, const TensorDims& dims,
                        kilnTensorFormat_t layout = KILN_TENSOR_NCHW) {
  return OperationCase(
      make_bias_gradient(dense(type, dims, layout), dense(type, {1, dims[1], 1, 1})));
}

Proposal proposal_of(const Problem& problem) {
  std::vector<EngineRefusal> refusals;
  return choose(problem, device()->description(), {}, refusals);
}

}  // namespace

BOOST_AUTO_TEST_CASE(any_dimensions) {
  RandomProblems random(1);
  for (int turn = 0; turn < turns(50, 250); ++turn) {
    const int rank = static_cast<int>(random.among(3, 5));
    const TensorDims dims = random.sizes(rank);
    TensorDims kept = dims;
    for (int i = 0; i < rank; ++i)
      if (random.coin()) kept[i] = 1;
    const DataType type = random.type();
    const auto op = operations[static_cast<std::size_t>(turn) % operations.size()];
    OperationCase item(
        make_reduction(op, random.tensor(type, rank, dims), random.tensor(type, rank, kept)));
    item.scalars = random.scalars();
    item.fill_uniform(random.seed());
    BOOST_TEST(check(item) == "");
  }
}

// All 16 choices of the reduced dimensions, with small integers, whose sums are exact.
BOOST_AUTO_TEST_CASE(every_choice_of_dimensions) {
  for (kilnTensorFormat_t layout : layouts)
    for (int choice = 0; choice < 16; ++choice) {
      const TensorDims dims{3, 8, 5, 12};
      TensorDims kept = dims;
      for (int i = 0; i < 4; ++i)
        if (choice >> i & 1) kept[i] = 1;
      OperationCase item(make_reduction(KILN_REDUCE_SUM, dense(KILN_DATA_FLOAT, dims, layout),
                                        dense(KILN_DATA_FLOAT, kept, layout)));
      item.fill_integers(static_cast<unsigned>(choice), 9);
      BOOST_TEST(difference(item.run_plan(), item.expected()) == "");
    }
}

// An element of a broadcast input counts as often as it is addressed.
BOOST_AUTO_TEST_CASE(strides_of_zero) {
  for (int axis = 0; axis < 4; ++axis)
    for (kilnReduceTensorOp_t op : operations) {
      Tensor a = dense(KILN_DATA_FLOAT, {2, 8, 4, 12});
      a.strides[axis] = 0;
      OperationCase item(make_reduction(op, a, dense(KILN_DATA_FLOAT, {1, 8, 1, 1})));
      item.fill_uniform(4);
      BOOST_TEST(check(item) == "");
    }
}

// Sums of one term to tens of thousands, along the contiguous dimension and across it.
BOOST_AUTO_TEST_CASE(any_number_of_terms) {
  for (kilnTensorFormat_t layout : layouts)
    for (std::int64_t width : {1, 2, 3, 4, 7, 8, 31, 33, 64, 100, 257, 1000, 4096, 40001})
      for (kilnReduceTensorOp_t op : {KILN_REDUCE_SUM, KILN_REDUCE_MAX}) {
        OperationCase item(make_reduction(op, dense(KILN_DATA_FLOAT, {2, 12, 1, width}, layout),
                                          dense(KILN_DATA_FLOAT, {2, 12, 1, 1}, layout)));
        item.fill_uniform(static_cast<unsigned>(width));
        BOOST_TEST(check(item) == "");
      }
}

// Sums that are long enough for the blocks of a cluster to share them.
BOOST_AUTO_TEST_CASE(bias_gradients) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : layouts)
      for (const TensorDims& dims :
           {TensorDims{4, 96, 24, 26}, TensorDims{16, 10, 31, 7}, TensorDims{3, 1, 5, 5},
            TensorDims{1, 64, 9, 9}, TensorDims{200, 3, 2, 2}})
        for (double beta : {0.0, 1.0}) {
          if (!share.takes(cat(dims[0], " ", dims[1]), type, layout, beta)) continue;
          OperationCase item = bias_case(type, dims, layout);
          item.scalars.beta = beta;
          item.fill_uniform(3);
          BOOST_TEST(check(item) == "");
        }
}

// A single running sum in f32 would lose small terms: beside 2^24, 1 has no effect.
BOOST_AUTO_TEST_CASE(small_terms_are_not_lost) {
  OperationCase item(make_reduction(KILN_REDUCE_SUM, dense(KILN_DATA_FLOAT, {1, 1, 1, 1 << 18}),
                                    dense(KILN_DATA_FLOAT, {1, 1, 1, 1})));
  for (double& value : item["a"].values) value = 1;
  item["a"].values[0] = 0x1p24;
  const double want = 0x1p24 + (1 << 18) - 1;
  BOOST_TEST(std::fabs(item.run_plan().values[0] - want) < 0.002 * (1 << 18));
}

BOOST_AUTO_TEST_CASE(the_same_bits_every_time) {
  for (kilnTensorFormat_t layout : layouts) {
    OperationCase item = bias_case(KILN_DATA_FLOAT, {16, 24, 40, 40}, layout);
    item.fill_uniform(5);
    const HostTensor first = item.run_plan();
    for (int again = 0; again < 3; ++again) BOOST_TEST(difference(item.run_plan(), first) == "");
  }
}

// Blocks write partial sums to the workspace, and a second step adds them up.
BOOST_AUTO_TEST_CASE(two_steps) {
  DeviceDescription large = device()->description();  // so large that few results do not fill it
  large.multiprocessors = 132;
  large.largest_cluster = 1;
  const ReductionEngine engine;
  int checked = 0;
  const auto try_all = [&](OperationCase item) {
    auto answer = engine.candidates(item.problem, large);
    for (Candidate& candidate : std::get<std::vector<Candidate>>(answer)) {
      if (candidate.workspace == 0) continue;
      ++checked;
      BOOST_TEST(candidate.workspace <= most_workspace);
      const Proposal& proposal = *candidate.made;
      const HostTensor first = run_proposal(item, proposal);
      const std::string fault = item.fault(first);
      BOOST_TEST(fault == "", text_of(item.problem) << ": " << fault);
      BOOST_TEST(difference(run_proposal(item, proposal), first) == "");
    }
  };
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : layouts)
      for (const TensorDims& kept :
           {TensorDims{1, 1, 1, 1}, TensorDims{1, 12, 1, 1}, TensorDims{3, 1, 1, 1}}) {
        OperationCase item(make_reduction(KILN_REDUCE_SUM, dense(type, {3, 12, 31, 57}, layout),
                                          dense(type, kept, layout)));
        item.scalars = {.alpha = 0.5, .beta = kept[1] == 1 ? 0.0 : 2.0};
        item.fill_uniform(static_cast<unsigned>(type));
        try_all(std::move(item));
      }
  // Rows of a block that hold the channels of several pixels.
  for (DataType type : all_types)
    for (std::int64_t channels : {12, 40}) {
      OperationCase item(make_reduction(KILN_REDUCE_SUM,
                                        dense(type, {3, channels, 32, 52}, KILN_TENSOR_NHWC),
                                        dense(type, {1, channels, 1, 1})));
      item.scalars = {.alpha = 0.5, .beta = 2.0};
      item.fill_uniform(static_cast<unsigned>(channels));
      try_all(std::move(item));
    }
  for (kilnReduceTensorOp_t op : operations) {
    OperationCase item(make_reduction(op, dense(KILN_DATA_FLOAT, {2, 12, 31, 57}),
                                      dense(KILN_DATA_FLOAT, {1, 1, 1, 1})));
    item.fill_uniform(7);
    try_all(std::move(item));
  }
  BOOST_TEST(checked >= 20);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity) {
  for (kilnTensorFormat_t layout : layouts)
    for (kilnReduceTensorOp_t op : operations)
      for (double special : {std::nan(""), HUGE_VAL, -HUGE_VAL})
        for (std::int64_t place : {0, 100, 431}) {
          OperationCase item(make_reduction(op, dense(KILN_DATA_FLOAT, {2, 3, 8, 9}, layout),
                                            dense(KILN_DATA_FLOAT, {2, 3, 1, 1}, layout)));
          item.fill_uniform(9);
          item["a"].at(place) = special;
          BOOST_TEST(check(item) == "");
        }
}

// The norm does not overflow or underflow if only the squares do. Elements have all magnitudes,
// alone and beside each other, different in each channel.
BOOST_AUTO_TEST_CASE(norms_of_any_size) {
  for (DataType type : all_types) {
    const bool narrow = type == KILN_DATA_HALF, wide = type == KILN_DATA_DOUBLE;
    const double large = wide     ? 1e200
                         : narrow ? 3e4
                                  : 1e20,
                 small = wide     ? 1e-200
                         : narrow ? 1e-7
                                  : 1e-25;
    const double least = std::ldexp(1.0, wide ? -1070 : narrow ? -23 : -130);
    for (kilnTensorFormat_t layout : layouts)
      for (std::int64_t width : {4, 4099}) {  // rows of one thread, and rows that blocks share
        OperationCase item(make_reduction(KILN_REDUCE_NORM2, dense(type, {1, 8, 1, width}, layout),
                                          dense(type, {1, 8, 1, 1}, layout)));
        const double sizes[8][2] = {{large, large}, {small, small}, {large, small}, {least, least},
                                    {0, 0},         {small, least}, {1, large},     {1, small}};
        HostTensor& a = item["a"];
        for (std::int64_t c = 0; c < 8; ++c)
          for (std::int64_t i = 0; i < width; ++i)
            a.at(c * width + i) = reference::round_to_format(
                sizes[c][i % 2] * (i % 3 == 0 ? -1 : 1), reference::format_of(type));
        if (narrow && width > 4) item.scalars.alpha = 0x1p-8;  // so that f16 can represent it
        BOOST_TEST(check(item) == "");
      }
  }
}

BOOST_AUTO_TEST_CASE(nothing_but_infinity) {
  for (double special : {HUGE_VAL, -HUGE_VAL})
    for (kilnReduceTensorOp_t op : {KILN_REDUCE_MAX, KILN_REDUCE_MIN}) {
      OperationCase item(make_reduction(op, dense(KILN_DATA_FLOAT, {1, 3, 3, 3}),
                                        dense(KILN_DATA_FLOAT, {1, 3, 1, 1})));
      for (double& value : item["a"].values) value = special;
      for (double value : item.run_plan().values) BOOST_TEST(value == special);
    }
}

BOOST_AUTO_TEST_CASE(the_sum_of_nothing_is_zero) {
  for (kilnReduceTensorOp_t op :
       {KILN_REDUCE_SUM, KILN_REDUCE_NORM2, KILN_REDUCE_NORM1, KILN_REDUCE_MUL}) {
    OperationCase item(make_reduction(op, dense(KILN_DATA_FLOAT, {0, 3, 8, 9}),
                                      dense(KILN_DATA_FLOAT, {1, 3, 1, 1})));
    const HostTensor got = item.run_plan();
    for (std::int64_t i = 0; i < 3; ++i) BOOST_TEST(got.at(i) == (op == KILN_REDUCE_MUL ? 1 : 0));
    item.scalars.beta = 0.5;
    item.fill_uniform(1);
    BOOST_TEST(check(item) == "");
  }
  // Without results there is nothing to write.
  OperationCase none(make_reduction(KILN_REDUCE_MAX, dense(KILN_DATA_FLOAT, {0, 3, 8, 9}),
                                    dense(KILN_DATA_FLOAT, {0, 3, 1, 1})));
  BOOST_TEST(proposal_of(none.problem).first().launch.empty);
  BOOST_TEST(check(none) == "");
}

BOOST_AUTO_TEST_CASE(memory_aligned_to_elements_alone) {
  for (DataType type : all_types)
    for (kilnTensorFormat_t layout : layouts) {
      OperationCase item = bias_case(type, {3, 24, 8, 12}, layout);
      item.fill_uniform(6);
      BOOST_TEST(item.fault(run_shifted(item, 1)) == "");
    }
}

BOOST_AUTO_TEST_CASE(elements_far_apart) {
  constexpr std::int64_t beyond = (std::int64_t{1} << 31) + 640;  // elements
  const Tensor a = dense(KILN_DATA_HALF, {2, 3, 2, 8}), c = dense(KILN_DATA_HALF, {1, 3, 1, 1}),
               d = dense(KILN_DATA_HALF, {2, 1, 2, 1});
  for (int axis : {0, 1, 2})
    for (const Tensor& out : {c, d}) {
      OperationCase item(make_reduction(KILN_REDUCE_SUM, a, out));
      item.fill_uniform(7);
      Tensor far = a;
      far.strides[axis] = beyond;
      BOOST_TEST(item.fault(run_wide(item, make_reduction(KILN_REDUCE_SUM, far, out))) == "");
      if (out.dims[axis] == 1) continue;
      far = out;
      far.strides[axis] = beyond;
      BOOST_TEST(item.fault(run_wide(item, make_reduction(KILN_REDUCE_SUM, a, far))) == "");
    }
}

BOOST_AUTO_TEST_CASE(one_kernel_for_every_batch) {
  const auto kernel = [&](std::int64_t n, bool keep, kilnTensorFormat_t layout) {
    return proposal_of(make_reduction(KILN_REDUCE_SUM,
                                      dense(KILN_DATA_FLOAT, {n, 16, 9, 8}, layout),
                                      dense(KILN_DATA_FLOAT, {keep ? n : 1, 16, 1, 1})))
        .first()
        .kernel;
  };
  for (kilnTensorFormat_t layout : layouts) {
    BOOST_TEST((kernel(2, false, layout) == kernel(7, false, layout)));
    BOOST_TEST((kernel(1, false, layout) == kernel(5000, false, layout)));
    BOOST_TEST((kernel(2, true, layout) == kernel(7, true, layout)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
