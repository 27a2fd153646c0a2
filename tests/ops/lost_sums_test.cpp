// f32 in three products where a sum comes out as NaN or infinite and need not be: it is added up
// once more by its definition (kernel_sources/conv/scaled_sums.cuh), in every engine, whoever
// shares a reduction.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "engines/choice.hpp"
#include "tensor_core_case.hpp"

namespace {

using namespace test;

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_in_three_products(const Proposal& proposal) {
  return std::any_of(proposal.kernel.constants.begin(), proposal.kernel.constants.end(),
                     [](const Constant& constant) {
                       const bool* const split = std::get_if<bool>(&constant.value);
                       return constant.name == "SPLIT" && split != nullptr && *split;
                     });
}

// Of each engine in three products the best tile, in one part and in several: one kernel.
std::vector<Option> one_of_each(const ConvolutionProblem& problem) {
  std::vector<Option> some;
  std::map<std::string, std::string> tiles;
  std::set<std::pair<std::string, bool>> seen;
  for (Option& option : all_candidates(problem, device()->description())) {
    const auto& [engine, tile, parts] = option.name;
    if (!is_in_three_products(option.choice.proposal)) continue;
    if (tiles.try_emplace(engine, tile).first->second != tile) continue;
    if (seen.emplace(engine, parts > 1).second) some.push_back(std::move(option));
  }
  return some;
}

// Both operands are at least 1; `change` is told them.
template <class Change>
std::set<std::string> check_engines(const Change& change) {
  constexpr Arithmetic f32{KILN_DATA_FLOAT, KILN_MATH_DEFAULT};
  std::set<std::string> engines;
  for (const char* line : {"mb2ic16ih9iw10oc24kh3ph1", "mb2ic3ih13iw12oc24kh5ph0",
                           "mb2ic24ih9iw10oc3kh3ph0", "g2mb2ic32ih9iw10oc48kh3ph1sh2sw2"})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (const ConvolutionPass pass :
           {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad}) {
        const ConvolutionProblem problem = problem_in(line, f32, layout, pass);
        OperationCase item = integers_of(problem, 5);
        for (int i = 0; i < 2; ++i)
          for (double& value : item.tensors[i].values) value = value == 0 ? 1 : value;
        change(item.tensors[0], item.tensors[1]);
        item.tensors.back().fill_integers(11, 2);
        item.scalars = {.alpha = 2, .beta = -1};
        const HostTensor want = item.expected();
        for (const Option& option : one_of_each(problem)) {
          const std::string fault = difference(run_proposal(item, option.choice.proposal), want);
          BOOST_TEST(fault.empty(), text_of(problem)
                                        << ", " << describe(option.name) << ": " << fault);
          engines.insert(option.name.engine);
        }
      }
  return engines;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lost_sums)

// Those of padding meet neither: a sum is of the taps that lie in the source.
BOOST_AUTO_TEST_CASE(nan_and_infinity_go_where_they_are_read) {
  const std::set<std::string> engines = check_engines([](HostTensor& a, HostTensor& b) {
    a.values[20 % a.values.size()] = std::nan("");
    a.values[a.values.size() / 2] = infinity;
    b.values[b.values.size() - 7] = -infinity;
  });
  BOOST_TEST(engines.size() >= (has_warpgroups() ? 13 : 8), engines.size() << " engines");
}

// Numbers whose products f32 has, but not those of the scaled ones.
BOOST_AUTO_TEST_CASE(large_numbers) {
  check_engines([](HostTensor& a, HostTensor& b) {
    for (HostTensor* tensor : {&a, &b})
      for (double& value : tensor->values) value *= 0x1p50;
  });
}

BOOST_AUTO_TEST_SUITE_END()
