// Tests the comparison behind every command's --check: the reference's own values pass, and small
// errors that a kernel could make fail.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "cli/operation/compare.hpp"
#include "cli/operation/random_fill.hpp"
#include "cli/operation/read_line.hpp"
#include "reference/element.hpp"
#include "reference/reference.hpp"

using namespace kiln;       // NOLINT(google-build-using-namespace)
using namespace kiln::cli;  // NOLINT(google-build-using-namespace)

namespace {

using Bytes = std::vector<std::byte>;

Problem problem_of(const std::string& text) { return read_one(text, {}).problem; }

struct Case {
  Problem problem;
  Scalars scalars;
  std::vector<Bytes> memory;

  explicit Case(const std::string& text, Scalars s = {}) : problem(problem_of(text)), scalars(s) {
    std::uint64_t seed = 1;
    for (const Operand& operand : operands_of(problem))
      memory.push_back(operand.written && scalars.beta == 0
                           ? poisoned_operand(operand, operand.type)
                           : random_operand(operand, operand.type, seed++));
  }

  Operand result() const { return operands_of(problem).back(); }

  // The memory of the result after the reference computed the problem `computed` exactly.
  Bytes after(const Problem& computed, const std::vector<Bytes>& inputs) const {
    const Operand out = result();
    Bytes bytes = memory.back();
    std::vector<const void*> operands;
    for (const Bytes& each : inputs) operands.push_back(each.data());
    std::vector<std::int64_t> indices(static_cast<std::size_t>(out.count()));
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
    const auto expected = reference::expect(computed, scalars, operands, indices, 2);
    reference::with_element(out.type, [&](auto zero) {
      using T = decltype(zero);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const T value = reference::from_double<T>(expected[i].value);
        std::memcpy(bytes.data() + static_cast<std::size_t>(out.offset(indices[i])) * sizeof value,
                    &value, sizeof value);
      }
    });
    return bytes;
  }

  std::string complaint(const Bytes& bytes) const {
    return compare(problem, scalars, memory, bytes, 3).complaint();
  }

  // The inputs without the largest element of an operand.
  std::vector<Bytes> without_largest(std::size_t index) const {
    const Operand operand = operands_of(problem)[index];
    const std::size_t size = size_of(operand.type);
    std::vector<Bytes> inputs = memory;
    std::int64_t largest = 0;
    double most = -HUGE_VAL;
    for (std::int64_t i = 0; i < operand.count(); ++i) {
      const double value =
          reference::read_element(operand.type, inputs[index].data(), operand.offset(i));
      if (value <= most) continue;
      most = value;
      largest = operand.offset(i);
    }
    std::memset(inputs[index].data() + static_cast<std::size_t>(largest) * size, 0, size);
    return inputs;
  }
};

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

const Scalars blend{-1.5, 0.75, 0.5};

// Problems of every operation and pass, with inputs for which a single lost element must be
// noticed.
const char* const texts[] = {
    "conv --bias --residual --act leaky_relu --coef 0.5 mb2_ic40ih7_oc5_kh3ph1",
    "conv --dir dgrad --dt f16 mb2_ic5ih9_oc40_kh3sh2ph1",
    "conv --dir wgrad mb3_ic5ih9_oc6_kh3ph1",
    "conv --dir bgrad --dt bf16 mb2_ic5ih9_oc6_kh3ph1",
    "pool --mode max mb2ic3_ih9_kh3sh2ph1",
    "pool --mode avg_include --dt f16 mb2ic3_ih9_kh3sh2ph1",
    "pool --dir bwd --mode avg_exclude mb2ic3_ih9_kh3sh1ph1",
    "pool --dir bwd mb2ic3_ih9_kh3sh2ph1",
    "act --act gelu_tanh 2x3x5x7",
    "act --dir bwd --act elu --coef 0.5 --dt f64 2x3x5x7",
    "softmax 2x500x1x1",
    "softmax --algorithm log --over image 2x10x7x7",
    "softmax --dir bwd --dt f16 2x20x3x3",
    "softmax --dir bwd --algorithm log 2x20x3x3",
    "norm --dir inference --residual --act tanh 2x3x5x7",
    "norm --dir apply --dt f16 2x3x5x7",
    "tensor --op copy --dt f32:f16 2x3x5x7",
    "tensor --op add 2x3x5x7:1x3x1x1:2x3x5x7",
    "tensor --op mul --dt bf16 2x3x5x7",
    "tensor --op max 2x3x5x7",
    "tensor --op reduce_sum 2x100x10x10:2x1x1x1",
    "tensor --op reduce_mean --dt f64 2x100x10x10:2x1x1x1",
    "tensor --op reduce_norm2 2x100x10x10:2x1x1x1"};

}  // namespace

BOOST_AUTO_TEST_SUITE(compare_operations)

BOOST_AUTO_TEST_CASE(right_results_pass) {
  for (const char* text : texts) {
    for (const Scalars& scalars : {Scalars{}, blend}) {
      const Case item(text, scalars);
      const std::string complaint = item.complaint(item.after(item.problem, item.memory));
      BOOST_TEST(complaint == "", text << ": " << complaint);
    }
  }
}

BOOST_AUTO_TEST_CASE(one_lost_element_of_any_input_fails) {
  for (const char* text : texts) {
    // Where beta reads a residual, it is an input too.
    const bool residual = contains(text, "--residual");
    const Case item(text, residual ? blend : Scalars{});
    for (std::size_t i = 0; i + 1 < item.memory.size(); ++i) {
      const std::string complaint =
          item.complaint(item.after(item.problem, item.without_largest(i)));
      BOOST_TEST(contains(complaint, "times the error allowed"),
                 text << ", operand " << i << ": " << complaint);
    }
  }
}

BOOST_AUTO_TEST_CASE(another_operation_fails) {
  const std::pair<const char*, const char*> pairs[] = {
      {"act --act gelu_erf 2x3x5x7", "act --act gelu_tanh 2x3x5x7"},
      {"act --act relu 2x3x5x7", "act --act leaky_relu --coef 0.01 2x3x5x7"},
      {"act --dir bwd --act sigmoid 2x3x5x7", "act --dir bwd --act tanh 2x3x5x7"},
      {"softmax 2x30x5x7", "softmax --over image 2x30x5x7"},
      {"softmax 2x30x5x7", "softmax --algorithm log 2x30x5x7"},
      {"pool --mode avg_include mb2ic3_ih9_kh3sh2ph1",
       "pool --mode avg_exclude mb2ic3_ih9_kh3sh2ph1"},
      {"pool --mode max mb2ic3_ih9_kh3sh2ph1", "pool --mode avg_include mb2ic3_ih9_kh3sh2ph1"},
      {"pool mb2ic3_ih9oh9_kh3ph1", "pool mb2ic3_ih9oh9_kh2ph0"},
      {"conv --dir dgrad mb2_ic5ih9_oc6_kh3ph1",
       "conv --dir dgrad --mode conv mb2_ic5ih9_oc6_kh3ph1"},
      {"conv --dir wgrad mb2_ic5ih9_oc6_kh3ph1",
       "conv --dir wgrad --mode conv mb2_ic5ih9_oc6_kh3ph1"},
      {"conv --act relu mb2_ic5ih9_oc6_kh3ph1", "conv mb2_ic5ih9_oc6_kh3ph1"},
      {"norm --dir inference 2x3x5x7", "norm --dir apply 2x3x5x7"},
      {"tensor --op min 2x3x5x7", "tensor --op max 2x3x5x7"},
      {"tensor --op copy 2x5x5x5", "tensor --op copy --layout nhwc:nchw 2x5x5x5"},
      {"tensor --op reduce_mean 2x3x5x7:2x1x1x1", "tensor --op reduce_sum 2x3x5x7:2x1x1x1"},
      {"tensor --op reduce_max 2x3x5x7:2x1x1x1", "tensor --op reduce_min 2x3x5x7:2x1x1x1"}};
  for (const auto& [asked, done] : pairs) {
    const Case item(asked);
    const std::string complaint = item.complaint(item.after(problem_of(done), item.memory));
    BOOST_TEST(contains(complaint, "times the error allowed"),
               asked << " done as " << done << ": " << complaint);
  }
}

// A maximum's gradient at another tap of its window, in one window of many.
BOOST_AUTO_TEST_CASE(a_gradient_at_the_wrong_tap_fails) {
  const Case item("pool --dir bwd mb2ic3_ih9_kh3sh3");
  Bytes bytes = item.after(item.problem, item.memory);
  auto* const dx = reinterpret_cast<float*>(bytes.data());
  std::size_t at = 0;
  while (dx[at] == 0) ++at;
  std::swap(dx[at], dx[at % 3 == 2 ? at - 1 : at + 1]);
  BOOST_TEST(contains(item.complaint(bytes), "dx[0,0,0,0,"));
}

BOOST_AUTO_TEST_CASE(beta_that_is_left_out_fails) {
  for (const char* text : texts) {
    const Case item(text, blend);
    Case without = item;
    without.scalars.beta = 0;
    const Bytes bytes = without.after(item.problem, item.memory);
    BOOST_TEST(contains(item.complaint(bytes), "times the error allowed"), text);
  }
}

BOOST_AUTO_TEST_CASE(outputs_not_written_and_gaps_written_over_are_found) {
  for (const char* text :
       {"act --y-strides 200:40:8:1 2x3x5x7", "softmax --y-strides 200:40:8:1 2x3x5x7",
        "pool --y-strides 200:40:8:1 mb2ic3_ih5iw7_kh1",
        "tensor --op copy --y-strides 200:40:8:1 2x3x5x7",
        "tensor --op reduce_sum --c-strides 200:40:8:1 2x3x5x7:2x3x5x1",
        "conv --dir dgrad --x-strides 200:40:8:1 mb2_ic3ih5iw7_oc2_kh1",
        "conv --dir wgrad --w-strides 200:40:8:1 mb2_ic3ih9iw9_oc2_kh5kw5"}) {
    const Case item(text);
    const Bytes right = item.after(item.problem, item.memory);
    BOOST_TEST(item.complaint(right) == "", text);
    const std::size_t last =
        static_cast<std::size_t>(item.result().offset(item.result().count() - 1));
    Bytes missing = right;
    std::memcpy(missing.data() + 4 * last, item.memory.back().data() + 4 * last, 4);
    BOOST_TEST(contains(item.complaint(missing), "1 of "), text);
    BOOST_TEST(contains(item.complaint(missing), "outputs were never written"), text);
    Bytes stray = right;
    std::memset(stray.data() + std::size_t{4} * 39, 0, 4);  // between two channels
    BOOST_TEST(item.complaint(stray) == "1 elements between the outputs were written over", text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
