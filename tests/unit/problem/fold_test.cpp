// Folding tensors of many dimensions: they keep the same elements at the same addresses.
#include "problem/tensor/fold.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>

#include "problem/problem.hpp"
#include "problem_support.hpp"

using namespace kiln;
using test::fault_of;

namespace {

using Sizes = std::vector<std::int64_t>;

Tensor tensor_of(const Sizes& dims, const Sizes& strides) {
  Tensor out;
  out.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims.begin());
  std::copy(strides.begin(), strides.end(), out.strides.begin());
  return out;
}

Tensor dense(const Sizes& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW) {
  Tensor out = tensor_of(dims, dims);
  out.strides = dense_strides(format, out.rank, out.dims);
  return out;
}

Sizes first(const TensorDims& values, int rank) { return {values.begin(), values.begin() + rank}; }

// For every element of `full`: its offset in each tensor (tensors are broadcast where their size is
// 1), and its position along the first `kept` dimensions. Sorted.
std::vector<Sizes> elements(const std::vector<Tensor>& tensors, const Tensor& full, int kept) {
  std::vector<Sizes> out;
  std::int64_t count = 1;
  for (int i = 0; i < full.rank; ++i) count *= full.dims[i];
  for (std::int64_t number = 0; number < count; ++number) {
    Sizes at(static_cast<std::size_t>(full.rank)), seen;
    std::int64_t rest = number;
    for (int i = full.rank; i-- > 0; rest /= full.dims[i]) at[i] = rest % full.dims[i];
    for (int i = 0; i < kept; ++i) seen.push_back(at[i]);
    for (const Tensor& tensor : tensors) {
      std::int64_t address = 0;
      for (int i = 0; i < full.rank; ++i)
        if (tensor.dims[i] != 1) address += at[i] * tensor.strides[i];
      seen.push_back(address);
    }
    out.push_back(seen);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fold)

BOOST_AUTO_TEST_CASE(up_to_five_dimensions_stay) {
  for (const Sizes& dims : {Sizes{7}, Sizes{3, 4}, Sizes{1, 1, 1}, Sizes{2, 3, 4, 5, 6}}) {
    const Tensor t = dense(dims, KILN_TENSOR_NHWC);
    BOOST_TEST((folded({t, t}, 1, Fold::any) == std::vector<Tensor>{t, t}));
  }
}

BOOST_AUTO_TEST_CASE(dense_tensors_are_a_batch_of_runs) {
  const Tensor t = dense({2, 3, 4, 5, 6, 7, 8, 9});
  BOOST_TEST((folded({t, t}, 1, Fold::any)[0] == dense({2, 3 * 4 * 5 * 6 * 7 * 8 * 9})));
  BOOST_TEST((folded({t, t}, 1, Fold::space)[1] == dense({2, 3, 4 * 5 * 6 * 7 * 8 * 9})));
  const Tensor last = dense({2, 3, 4, 5, 6, 7}, KILN_TENSOR_NHWC);
  const Tensor row = folded({last, last}, 1, Fold::space)[0];
  BOOST_TEST(first(row.dims, row.rank) == (Sizes{2, 3, 4 * 5 * 6 * 7}));
  BOOST_TEST(first(row.strides, row.rank) == (Sizes{3 * 840, 1, 3}));
  BOOST_TEST((folded({last, last}, 1, Fold::image)[0] == dense({2, 3 * 840})));
}

BOOST_AUTO_TEST_CASE(broadcast_and_empty_tensors) {
  const Tensor y = dense({2, 3, 1, 4, 5, 1, 6}), x = dense({1, 3, 1, 1, 1, 1, 1});
  const std::vector<Tensor> out = folded({x, y}, 1, Fold::any);
  BOOST_TEST(first(out[0].dims, out[0].rank) == (Sizes{1, 3, 1}));
  BOOST_TEST((out[1] == dense({2, 3, 120})));
  const Tensor none = dense({0, 3, 4, 5, 6, 7});
  BOOST_TEST((folded({none, none}, 1, Fold::any)[1].dims[0] == 0));
}

BOOST_AUTO_TEST_CASE(what_is_left_is_told_and_refused) {
  // The tensors have different orders of dimensions, so none can be joined.
  const Tensor x = dense({2, 3, 2, 3, 2, 3}),
               y = tensor_of({2, 3, 2, 3, 2, 3}, {1, 2, 6, 12, 36, 72});
  BOOST_TEST(fault_of([&] {
               folded({x, y}, 1, Fold::any);
             }) ==
             "the tensors have 6 dimensions, of which 6 are left once those that are contiguous "
             "with each other in every tensor are joined; expected at most 5");
  // Another dimension takes the place of a batch of one, unless the batch has to stay apart.
  const Tensor x1 = dense({1, 3, 2, 3, 2, 3}),
               y1 = tensor_of({1, 3, 2, 3, 2, 3}, {1, 1, 3, 6, 18, 36});
  BOOST_TEST(folded({x1, y1}, 1, Fold::any)[0].rank == 5);
  BOOST_TEST(fault_of([&] { folded({x1, y1}, 1, Fold::image); }).starts_with("the tensors have 6"));
}

BOOST_AUTO_TEST_CASE(elements_stay_where_they_are) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int compared = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const int rank = draw(6, KILN_DIM_MAX);
    Sizes dims;
    for (int i = 0; i < rank; ++i) dims.push_back(draw(1, i % 3 + 1));
    // The tensors' orders of dimensions differ little. Some have gaps, and inputs are broadcast.
    std::vector<Tensor> tensors;
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    if (draw(0, 1) == 0) std::shuffle(order.begin(), order.end(), random);
    for (int t = 0; t < 3; ++t) {
      std::vector<int> own = order;
      if (draw(0, 1) == 0) std::swap(own[draw(0, rank - 1)], own[draw(0, rank - 1)]);
      Sizes sizes = dims, strides(dims.size());
      for (int i = 0; t < 2 && i < rank; ++i)
        if (draw(0, 5) == 0) sizes[i] = 1;
      std::int64_t next = 1;
      for (int i = rank; i-- > 0;) {
        strides[own[i]] = next;
        next = next * sizes[own[i]] + (draw(0, 9) == 0 ? 1 : 0);
      }
      tensors.push_back(tensor_of(sizes, strides));
    }
    const Fold fold = std::array{Fold::any, Fold::image, Fold::space}[draw(0, 2)];
    const int kept = fold == Fold::any ? 0 : fold == Fold::image ? 1 : 2;
    std::vector<Tensor> out;
    try {
      out = folded(tensors, 2, fold);
    } catch (const Error& error) {
      BOOST_TEST((error.status() == KILN_STATUS_NOT_SUPPORTED));
      ++refused;
      continue;
    }
    BOOST_TEST_REQUIRE(out[2].rank <= operand_rank);
    BOOST_TEST_REQUIRE((elements(out, out[2], kept) == elements(tensors, tensors[2], kept)));
    ++compared;
  }
  BOOST_TEST(compared > 1000);
  BOOST_TEST(refused > 20);
}

BOOST_AUTO_TEST_CASE(problems_of_any_rank_read_back) {
  const Tensor a = dense({2, 3, 4, 5, 6, 7, 8}), c = dense({2, 1, 1, 1, 6, 7, 8});
  const ReductionProblem sum = make_reduction(KILN_REDUCE_SUM, a, c);
  BOOST_TEST(text_of(sum) == "tensor --op reduce_sum 2x60x336:2x1x336");
  BOOST_TEST(text_of(Problem(make_fill(dense({9})))) == "tensor --op fill 9");
  BOOST_TEST(text_of(Problem(make_transform(dense({3, 4}), tensor_of({3, 4}, {1, 3})))) ==
             "tensor --op copy --y-strides 1:3 3x4");
  BOOST_TEST(text_of(Problem(make_softmax_forward(KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_CHANNEL,
                                                  a, a))) == "softmax 2x3x6720");
  BOOST_TEST(fault_of([&] {
               make_softmax_forward(KILN_SOFTMAX_ACCURATE, KILN_SOFTMAX_MODE_CHANNEL, dense({9}),
                                    dense({9}));
             }) ==
             "yDesc has 1 dimension; expected at least 2, of which the second is the channels");
  BOOST_TEST(fault_of([&] { make_bias_gradient(dense({9}), dense({1})); }) ==
             "dyDesc has 1 dimension; expected at least 2, of which the second is the channels");
}

BOOST_AUTO_TEST_SUITE_END()
