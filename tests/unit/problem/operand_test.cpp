// Operands in memory: which have gaps, and which have the same places.
#include "problem/tensor/operand.hpp"

#include <boost/test/unit_test.hpp>
#include <random>

#include "problem_support.hpp"

using namespace kiln;
using test::tensor;

namespace {

// Whether the operand has gaps, found by visiting every element of its span.
bool has_gaps(const Operand& operand) {
  std::vector<bool> seen(static_cast<std::size_t>(operand.span()));
  for (std::int64_t i = 0; i < operand.count(); ++i)
    seen[static_cast<std::size_t>(operand.offset(i))] = true;
  return std::find(seen.begin(), seen.end(), false) != seen.end();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(operands)

BOOST_AUTO_TEST_CASE(contiguous_tensors_have_no_gaps) {
  const auto contiguous = [](const TensorDims& strides) {
    Tensor t = tensor(4, {2, 3, 4, 5});
    t.strides = strides;
    return make_operand("", t).contiguous();
  };
  BOOST_TEST(contiguous({60, 20, 5, 1}));
  BOOST_TEST(contiguous({60, 1, 15, 3}));
  BOOST_TEST(contiguous({1, 2, 6, 24}));
  BOOST_TEST(contiguous({0, 20, 5, 1}));  // all images are the same memory
  BOOST_TEST(contiguous({0, 0, 0, 0}));
  BOOST_TEST(!contiguous({61, 20, 5, 1}));
  BOOST_TEST(!contiguous({60, 20, 5, 0}));
  BOOST_TEST(!contiguous({0, 0, 0, 2}));
  BOOST_TEST(make_operand("", tensor(3, {0, 3, 4})).contiguous());
}

BOOST_AUTO_TEST_CASE(contiguous_agrees_with_enumeration) {
  std::mt19937 random(3);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int contiguous = 0;
  for (int round = 0; round < 20000; ++round) {
    Tensor t = tensor(3, {draw(1, 4), draw(1, 4), draw(1, 4)});
    t.strides = {draw(0, 16), draw(0, 4), draw(0, 4)};
    const Operand operand = make_operand("", t);
    // A tensor with gaps is never contiguous. One that overlaps itself may be either.
    if (!operand.contiguous()) continue;
    ++contiguous;
    BOOST_TEST_REQUIRE(!has_gaps(operand));
  }
  BOOST_TEST(contiguous > 500);
}

BOOST_AUTO_TEST_CASE(the_same_places) {
  const Tensor t = tensor(4, {1, 3, 4, 5});
  const auto same = [&](const Tensor& other) {
    return make_operand("", t).same_places(make_operand("", other));
  };
  BOOST_TEST(same(t));
  BOOST_TEST(!same(tensor(4, {1, 3, 4, 5}, KILN_TENSOR_NHWC)));
  BOOST_TEST(!same(tensor(4, {1, 3, 4, 5}, KILN_TENSOR_NCHW, KILN_DATA_HALF)));
  BOOST_TEST(!same(tensor(4, {1, 3, 4, 1})));
  Tensor other = t;
  other.strides[0] = 1000;  // has no effect, because there is one image
  BOOST_TEST(same(other));
  other.strides[1] = 0;
  BOOST_TEST(!same(other));
}

BOOST_AUTO_TEST_SUITE_END()
