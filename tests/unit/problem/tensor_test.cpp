// Tensors: dense strides, spans, and whether a tensor overlaps itself.
#include "problem/tensor/tensor.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <random>
#include <set>

using namespace kiln;

namespace {

Tensor tensor(int rank, const TensorDims& dims, const TensorDims& strides) {
  Tensor out;
  out.rank = rank;
  out.dims = dims;
  out.strides = strides;
  return out;
}

// Whether the tensor overlaps itself, found by visiting every element.
bool overlaps_by_enumeration(const Tensor& t) {
  std::set<std::int64_t> seen;
  TensorDims index{};
  for (;;) {
    std::int64_t offset = 0;
    for (int i = 0; i < t.rank; ++i) offset += index[i] * t.strides[i];
    if (!seen.insert(offset).second) return true;
    int i = t.rank - 1;
    while (i >= 0 && ++index[i] == t.dims[i]) index[i--] = 0;
    if (i < 0) return false;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tensors)

BOOST_AUTO_TEST_CASE(spans) {
  BOOST_TEST(span_elements(tensor(4, {2, 3, 5, 7}, {105, 35, 7, 1})) == 210);
  BOOST_TEST(span_elements(tensor(4, {2, 3, 5, 7}, {0, 1000, 7, 1})) == 2000 + 28 + 6 + 1);
  BOOST_TEST(span_elements(tensor(3, {0, 3, 5}, {15, 5, 1})) == 0);
  BOOST_TEST(span_elements(tensor(3, {1, 1, 1}, {7, 7, 7})) == 1);
}

BOOST_AUTO_TEST_CASE(overlap_agrees_with_enumeration) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int overlapping = 0, disjoint = 0;
  for (int round = 0; round < 20000; ++round) {
    Tensor t;
    t.rank = static_cast<int>(draw(3, 5));
    for (int i = 0; i < t.rank; ++i) {
      t.dims[i] = draw(1, 4);
      t.strides[i] = draw(0, round % 2 == 0 ? 40 : 400);
    }
    const bool expected = overlaps_by_enumeration(t);
    (expected ? overlapping : disjoint) += 1;
    BOOST_TEST_REQUIRE(overlaps_itself(t) == expected);
  }
  BOOST_TEST(overlapping > 2000);
  BOOST_TEST(disjoint > 2000);
}

BOOST_AUTO_TEST_CASE(overlap_of_large_tensors_is_quick) {
  const std::int64_t big = std::int64_t{1} << 15;
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(!overlaps_itself(tensor(5, {big, big, 8, 8, 8}, {big * 512, 512, 64, 8, 1})));
  BOOST_TEST(overlaps_itself(tensor(5, {big, big, 8, 8, 8}, {big * 511, 512, 64, 8, 1})));
  // There are so many combinations that the search gives up, so the tensor counts as overlapping.
  BOOST_TEST(overlaps_itself(
      tensor(5, {big, big, big, big, big},
             {1000003 * big, 1000033 * big, 1000037 * big, 1000039 * big, 1000081 * big})));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  BOOST_TEST(elapsed.count() < 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
