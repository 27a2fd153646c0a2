// NaN and infinities in the operands of every engine, pass and layout: outputs whose products have
// one are those of the reference, and no other output changes. One planted NaN differs from an
// infinity only in the last bit, so it becomes an infinity if f32 is cut to 11 bits.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <optional>

#include "ops/conv/every_engine/every_engine.hpp"
#include "ops/conv/tensor_core_case.hpp"

BOOST_AUTO_TEST_SUITE(non_finite)

namespace {

using namespace test;

constexpr double infinity = std::numeric_limits<double>::infinity();

// The value for image, row or channel `number`: one of four by turns.
double planted(std::int64_t number) {
  const double values[] = {least_nan(), std::nan(""), infinity, -infinity};
  return values[number % 4];
}

// Problems with padding, odd sizes, strides and groups, such that every engine takes one of them.
constexpr const char* lines[] = {"mb4ic16ih9iw10oc24kh3ph1", "mb4ic3ih13iw12oc24kh5ph2",
                                 "mb4ic24ih9iw10oc3kh3ph1",  "g2mb4ic32ih9iw10oc48kh3ph1sh2sw2",
                                 "g8mb4ic8ih9iw10oc8kh3ph1", "g8mb4ic32ih9iw10oc32kh3ph1"};
constexpr Arithmetic all_arithmetics[] = {with_f64[0], with_f64[1],
                                          with_f64[2], with_f64[3],
                                          with_f64[4], {KILN_DATA_FLOAT, KILN_MATH_STRICT}};

// Puts the four values into `tensor`, by turns along one axis (0 or 1): one into the middle of each
// slice, or with `border` one into its first corner and the next one into its last.
void plant(HostTensor& tensor, int axis, bool border) {
  const Dims& dims = tensor.operand.dims;
  const auto put = [&](std::int64_t slice, double value, const auto& place_along) {
    std::int64_t index = 0;
    for (int k = 0; k < operand_rank; ++k) {
      const std::int64_t place = k == axis       ? slice
                                 : k == 1 - axis ? (slice * 5 + 1) % dims[k]
                                                 : place_along(dims[k]);
      index = index * dims[k] + place;
    }
    tensor.at(index) = value;
  };
  for (std::int64_t i = 0; i < std::min<std::int64_t>(dims[axis], 4); ++i) {
    if (border) {
      put(i, planted(i), [](std::int64_t) { return 0; });
      put(i, planted(i + 1), [](std::int64_t size) { return size - 1; });
    } else {
      put(i, planted(i), [](std::int64_t size) { return size / 2; });
    }
  }
}

// The axis along which slices of an operand contribute to different outputs.
int axis_of(ConvolutionPass pass, std::string_view operand) {
  if (pass == ConvolutionPass::wgrad) return 1;  // a channel of x, a filter of dy
  return operand == "w" && pass == ConvolutionPass::dgrad ? 1 : 0;
}

// Engines that multiply padding like any element, so their results follow the definition.
bool skips_nothing(const std::string& engine) {
  return engine == "direct" || engine == "wgrad_direct" || engine == "depthwise_fma" ||
         engine == "wgrad_implicit_gemm_fma";
}

// Whether a kernel reads a NaN whose upper 19 bits are those of an infinity as that infinity. In
// TF32 it does, unless it checks its sums (src/engines/conv/tile/checked_sums.hpp).
bool reads_least_nan_as_infinity(const Option& option, const Arithmetic& arithmetic) {
  if (arithmetic.math != KILN_MATH_TF32) return false;
  bool tensor_cores = false, checked = false;
  for (const Constant& constant : option.choice.proposal.first().kernel.constants) {
    tensor_cores |= constant.name == "PROMOTE";  // only these kernels promote sums
    checked |= constant.name == "CHECKED" && std::get<bool>(constant.value);
  }
  return tensor_cores && !checked;
}
OperationCase with_infinity_for_least_nan(OperationCase item) {
  for (HostTensor& tensor : item.tensors)
    for (double& value : tensor.values)
      if (std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(least_nan()))
        value = infinity;
  return item;
}

// A case of integers in which no element of the operands is zero.
OperationCase whole_numbers(const ConvolutionProblem& problem) {
  OperationCase item = integers_of(problem, 5);
  for (int i = 0; i < 2; ++i)
    for (double& value : item.tensors[i].values) value = value == 0 ? 1 : value;
  return item;
}

// Cases of a problem, and the reference's results.
struct Cases {
  std::vector<OperationCase> items;
  std::vector<std::vector<reference::Expected>> expected;

  explicit Cases(std::vector<OperationCase> all) : items(std::move(all)) {
    for (const OperationCase& item : items) expected.push_back(item.expected_elements());
  }
};

// Runs the items of `cases` and compares the results with those that `of` expects.
void check_engine(const Cases& cases, const Cases& of, const Option& option) {
  for (std::size_t i = 0; i < cases.items.size(); ++i) {
    const HostTensor got = run_proposal(cases.items[i], option.choice.proposal);
    const std::string fault = skips_nothing(option.name.engine)
                                  ? difference(got, of.items[i].values_of(of.expected[i], nullptr))
                                  : of.items[i].exact_fault(got, of.expected[i]);
    BOOST_TEST(fault.empty(), text_of(cases.items[i].problem) << ", " << describe(option.name)
                                                              << ", case " << i << ": " << fault);
  }
}

// Cases with values in the middle and at the borders of each operand, and one with values in both,
// whose result is scaled and added to its previous content.
std::vector<OperationCase> cases_of(const ConvolutionProblem& problem) {
  std::vector<OperationCase> items;
  for (int operand = 0; operand < 2; ++operand)
    for (const bool border : {false, true}) {
      OperationCase item = whole_numbers(problem);
      plant(item.tensors[operand], axis_of(problem.pass, item.tensors[operand].operand.name),
            border);
      items.push_back(std::move(item));
    }
  OperationCase both = whole_numbers(problem);
  for (int operand = 0; operand < 2; ++operand)
    plant(both.tensors[operand], axis_of(problem.pass, both.tensors[operand].operand.name),
          operand == 0);
  both.tensors.back().fill_integers(11, 2);
  both.scalars = {.alpha = 2, .beta = -1};
  items.push_back(std::move(both));
  return items;
}

// Checks each engine once per pass and layout, and its kernel also at a split count above one.
// share: the host device runs one case in this many.
void check(const Arithmetic& arithmetic, std::size_t least_engines, unsigned share = 1) {
  kiln_test::ShareOfCases taken = share_of_cases(share);
  std::set<std::string> engines, cutting, keeping;
  for (const ConvolutionPass pass :
       {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      std::set<std::string> seen;
      for (const char* line : lines) {
        const ConvolutionProblem problem = problem_in(line, arithmetic, layout, pass);
        std::optional<Cases> cases, cut;  // cut: with operands cut to 11 bits
        std::set<std::string> here;
        for (const Option& option : one_of_each(problem, true, [&](const Option& each) {
               return seen.count(each.name.engine) == 0;
             })) {
          here.insert(option.name.engine);
          if (!taken.takes(option.name.engine, pass, layout)) continue;
          if (!cases) cases.emplace(cases_of(problem));
          const bool cuts = reads_least_nan_as_infinity(option, arithmetic);
          if (cuts && !cut) {
            std::vector<OperationCase> items;
            for (const OperationCase& item : cases->items)
              items.push_back(with_infinity_for_least_nan(item));
            cut.emplace(std::move(items));
          }
          (cuts ? cutting : keeping).insert(option.name.engine);
          check_engine(*cases, cuts ? *cut : *cases, option);
        }
        seen.merge(here);
      }
      engines.merge(seen);
    }
  BOOST_TEST(engines.size() >= least_engines, engines.size() << " engines");
  if (arithmetic.math != KILN_MATH_TF32) return;
  BOOST_TEST(!cutting.empty());
  BOOST_TEST(keeping.count("implicit_gemm_mma") + keeping.count("halo_nchw_mma") == 2U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(f32_default) { check(all_arithmetics[0], has_warpgroups() ? 17 : 10); }
BOOST_AUTO_TEST_CASE(f32_tf32) { check(all_arithmetics[1], has_warpgroups() ? 17 : 10); }
BOOST_AUTO_TEST_CASE(f32_strict) { check(all_arithmetics[5], 5); }
BOOST_AUTO_TEST_CASE(f16) { check(all_arithmetics[2], has_warpgroups() ? 17 : 12, 3); }
BOOST_AUTO_TEST_CASE(bf16) { check(all_arithmetics[3], has_warpgroups() ? 17 : 12, 4); }
BOOST_AUTO_TEST_CASE(f64) { check(all_arithmetics[4], 8, 3); }

// An element that is cut to 11 bits keeps its exponent. A subnormal one may lose all bits below
// 2^-136.
BOOST_AUTO_TEST_CASE(subnormal_numbers_in_tf32) {
  for (const int power : {-126, -130, -134, -140})
    for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      const ConvolutionProblem problem = problem_in(lines[0], all_arithmetics[1], layout);
      OperationCase item(problem);
      item.fill_uniform(7);
      scale_f32(item["x"], power);
      scale_f32(item["w"], 110);
      for (const Option& option : one_of_each(problem, false, [](const Option&) { return true; })) {
        const std::string fault = item.fault(run_proposal(item, option.choice.proposal));
        BOOST_TEST(fault.empty(),
                   "x 2^" << power << ", " << describe(option.name) << ": " << fault);
      }
    }
}

// alpha = 0 multiplies as any other number: what is not finite becomes NaN, all else what beta
// makes of y.
BOOST_AUTO_TEST_CASE(alpha_0_multiplies) {
  for (const Arithmetic& arithmetic : {all_arithmetics[0], all_arithmetics[1]})
    for (const ConvolutionPass pass :
         {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad}) {
      const ConvolutionProblem problem = problem_in(lines[0], arithmetic, KILN_TENSOR_NCHW, pass);
      OperationCase item = whole_numbers(problem);
      plant(item.tensors[0], axis_of(pass, item.tensors[0].operand.name), false);
      item.tensors.back().fill_integers(11, 2);
      item.scalars = {.alpha = 0, .beta = 3};
      for (const Option& option : one_of_each(problem, false, [](const Option&) { return true; })) {
        const HostTensor got = run_proposal(item, option.choice.proposal);
        const bool cuts = reads_least_nan_as_infinity(option, arithmetic);
        const std::string fault =
            (cuts ? with_infinity_for_least_nan(item) : item).exact_fault(got);
        BOOST_TEST(fault.empty(), text_of(problem)
                                      << ", " << describe(option.name) << ": " << fault);
        BOOST_TEST(std::any_of(got.values.begin(), got.values.end(),
                               [](double value) { return std::isnan(value); }));
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
