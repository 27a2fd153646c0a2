// The text that the compiler gets for a problem.
#include <boost/test/unit_test.hpp>
#include <string>

#include "codegen/source.hpp"
#include "engines/choice.hpp"
#include "problem/line/problem_line.hpp"

namespace {

using namespace kiln;

Proposal propose(const std::string& line, DataType type = KILN_DATA_FLOAT,
                 kilnTensorFormat_t layout = KILN_TENSOR_NCHW,
                 kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  const ConvolutionProblem problem =
      make_convolution(parse_convolution_line(line), type, layout, mode);
  std::vector<EngineRefusal> refusals;
  return choose(problem, known_architecture("sm_90a"), {}, refusals);
}

std::string source(const std::string& line) {
  return generate_source(propose(line).first().kernel, KILN_DEVICE_CUDA);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(codegen)

BOOST_AUTO_TEST_CASE(the_text_is_self_contained) {
  for (kilnDeviceKind_t kind : {KILN_DEVICE_CUDA, KILN_DEVICE_HOST}) {
    const std::string text = generate_source(propose("mb4ic8ih16oc32kh3ph1").first().kernel, kind);
    BOOST_TEST(!contains(text, "#include \""));
    BOOST_TEST(!contains(text, "#pragma once"));
  }
}

BOOST_AUTO_TEST_CASE(constants_and_divisors_stand_in_the_text) {
  const std::string text = source("mb4ic8ih58oc32kh3ph0");
  BOOST_TEST(contains(text, "constexpr int CHANNELS = 8;"));
  BOOST_TEST(contains(text, "constexpr int FILTER_R[] = {3};"));
  BOOST_TEST(contains(text, "constexpr unsigned DIV_Q = 56, DIV_Q_MUL = 0x"));
  BOOST_TEST(contains(text, "// n / 56 == "));
  BOOST_TEST(contains(text, "using element_t = float;"));
}

BOOST_AUTO_TEST_CASE(a_new_batch_size_is_the_same_kernel) {
  // All batch sizes of a range have the same kernel (engines/choice.hpp).
  for (const auto& [less, more] : {std::pair{"mb13", "mb24"}, std::pair{"mb97", "mb4096"}}) {
    const Proposal few = propose(std::string(less) + "ic64ih14oc128kh3ph1");
    const Proposal many = propose(std::string(more) + "ic64ih14oc128kh3ph1");
    BOOST_TEST((few.first().kernel == many.first().kernel));
    BOOST_TEST(generate_source(few.first().kernel, KILN_DEVICE_CUDA) ==
               generate_source(many.first().kernel, KILN_DEVICE_CUDA));
    BOOST_TEST(few.first().launch.shape.grid[0] != many.first().launch.shape.grid[0]);
  }
}

BOOST_AUTO_TEST_CASE(anything_else_is_another_kernel) {
  const std::string base = source("mb2ic8ih16oc32kh3ph1");
  for (const char* other :
       {"mb2ic9ih16oc32kh3ph1", "mb2ic8ih17oc32kh3ph1", "mb2ic8ih16oc33kh3ph1",
        "mb2ic8ih16oc32kh5ph2", "mb2ic8ih16oc32kh3ph0", "mb2ic8ih16oc32kh3sh2ph1",
        "mb2ic8ih16oc32kh3dh1ph2", "g2mb2ic8ih16oc32kh3ph1"})
    BOOST_TEST(source(other) != base, other);
}

BOOST_AUTO_TEST_CASE(a_flipped_filter_walks_backwards) {
  const auto constant = [](const Proposal& proposal, const std::string& name) {
    for (const Constant& item : proposal.first().kernel.constants)
      if (item.name == name) {
        const auto* phases = std::get_if<std::vector<std::int64_t>>(&item.value);
        return phases != nullptr ? phases->front() : std::get<std::int64_t>(item.value);
      }
    throw std::runtime_error("no constant " + name);
  };
  const Proposal flipped =
      propose("mb2ic8ih16oc32kh3ph1", KILN_DATA_FLOAT, KILN_TENSOR_NCHW, KILN_CONVOLUTION);
  BOOST_TEST(constant(flipped, "STEP_H") == -1);
  BOOST_TEST(constant(flipped, "ORIGIN_H") == 1);  // (3 - 1) * 1 - 1
}

BOOST_AUTO_TEST_CASE(constants_print_one_a_line) {
  const std::string text = print_constants(propose("mb4ic8ih58oc32kh3ph0").first().kernel);
  BOOST_TEST(contains(text, "DIV_Q = 56  (n / 56 == mulhi(n, 0x"));
  BOOST_TEST(contains(text, "TILE_K = 8\n"));
}

BOOST_AUTO_TEST_CASE(macros_stand_in_the_text_and_in_no_list) {
  KernelSpec spec = propose("mb4ic8ih58oc32kh3ph0").first().kernel;
  spec.constants.push_back({"OPERANDS(c)", MacroText{"\"+f\"((c)[0])"}, ""});
  BOOST_TEST(
      contains(generate_source(spec, KILN_DEVICE_CUDA), "\n#define OPERANDS(c) \"+f\"((c)[0])\n"));
  BOOST_TEST(!contains(print_constants(spec), "OPERANDS"));
}

BOOST_AUTO_TEST_SUITE_END()
