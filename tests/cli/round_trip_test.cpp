// A problem's text is the problem: what logs and --json print is read back as it was, whatever the
// operation.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "cli/operation/read_line.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"
#include "support/problem_lists.hpp"

using namespace kiln;       // NOLINT(google-build-using-namespace)
using namespace kiln::cli;  // NOLINT(google-build-using-namespace)

namespace {

Problem read_back(const std::string& text) { return read_one(text, {}).problem; }

void check(const Problem& problem) {
  const std::string text = text_of(problem);
  BOOST_TEST_CONTEXT(text) {
    try {
      const Problem again = read_back(text);
      BOOST_TEST((again == problem), "it is read as " << text_of(again));
      BOOST_TEST(text_of(again) == text);
    } catch (const Error& error) {
      BOOST_TEST(false, error.what());
    }
  }
}

Tensor tensor(DataType type, const std::vector<std::int64_t>& dims,
              const std::vector<std::int64_t>& strides = {}) {
  Tensor out;
  out.type = type;
  out.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), out.dims.begin());
  out.strides = dense_strides(KILN_TENSOR_NCHW, out.rank, out.dims);
  if (!strides.empty()) std::copy(strides.begin(), strides.end(), out.strides.begin());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(round_trip)

BOOST_AUTO_TEST_CASE(every_line_of_the_problem_lists) {
  const std::pair<const char*, const char*> lists[] = {
      {"conv", "small"},         {"conv", "paper"},     {"conv", "alexnet"},
      {"conv", "resnet50"},      {"conv", "backward"},  {"local", "local"},
      {"pool", "pooling"},       {"act", "activation"}, {"softmax", "softmax"},
      {"norm", "normalization"}, {"tensor", "tensor"},  {"tensor", "reduction"}};
  for (const auto& [command, list] : lists) {
    std::ostringstream text;
    text << std::ifstream(problem_list_path(std::string(list) + ".txt")).rdbuf();
    const auto lines = problem_lines(text.str());
    BOOST_TEST(lines.size() >= 5u);
    for (const auto& [number, line] : lines) {
      BOOST_TEST_CONTEXT(list << ".txt:" << number) { check(read_back(cat(command, " ", line))); }
    }
  }
}

BOOST_AUTO_TEST_CASE(types_and_layouts_of_the_command_line) {
  const std::pair<const char*, const char*> lines[] = {
      {"conv", "--dir dgrad g2mb3_ic4ih9iw7_oc6_kh3kw2_sh2ph1"},
      {"conv", "--bias --residual --act elu --coef 0.1 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--act silu --residual-last mb3_ic4ih9_oc6_kh3"},
      {"conv", "--bias --bias-stride 3 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--bias --bias-stride 0 --dir dgrad mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dir dgrad --bias --residual --act relu mb3_ic4ih9_oc6_kh3sh2"},
      {"conv", "--dt f16:f16:f32 mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dt bf16:f32:bf16 --dir wgrad mb3_ic4ih9_oc6_kh3"},
      {"conv", "--dir bgrad mb3_ic4ih9_oc6_kh3"},
      {"local", "--bias element mb3_ic4ih9_oc6_kh3"},
      {"local", "--bias 1x6x1x7 --weights nctkp mb3_ic4ih9_oc6_kh3"},
      {"local", "--dir wgrad --weights ptck g2mb3_ic4ih9iw7_oc6_kh3kw2_sh2ph1"},
      {"local", "--dir dgrad --weights npkct mb1_ic4iw9_oc6_kw3"},
      {"pool", "--dir bwd --nan ignore mb3ic5_id9_kd2"},
      {"act", "--dir bwd --act softplus 2x3x4"},
      {"softmax", "--over image --algorithm fast 2x3x4x5x6"},
      {"norm", "--residual --act clip --coef -1 --coef2 2 --epsilon 1e-3 2x3x4x5"},
      {"norm", "--dir bwd --residual --frozen --no-affine 2x3x4"},
      {"tensor", "--op reduce_norm2 2x3x4x5:1x3x4x1"},
      {"tensor", "--op mul 2x3x4x5:1x3x1x1:2x3x4x5"}};
  for (const auto& [command, line] : lines) {
    for (const std::string& type : type_names) {
      for (const std::string& layout : layout_names) {
        LineDefaults defaults;
        defaults.types = {type};
        defaults.layouts = {layout};
        check(read_one(cat(command, " ", line), defaults).problem);
      }
    }
  }
}

// Problems that come from the C API alone: strides that no layout has.
BOOST_AUTO_TEST_CASE(problems_of_any_strides) {
  constexpr auto f32 = KILN_DATA_FLOAT, f16 = KILN_DATA_HALF;
  const Tensor y = tensor(f32, {2, 3, 4, 5}), channel = tensor(f32, {1, 3, 1, 1});
  check(make_fill(tensor(f16, {0, 3, 4}, {1, 2, 3})));
  check(make_fill(tensor(f16, {1, 3, 4}, {0, 4, 1})));
  check(make_transform(tensor(f16, {2, 3, 4, 5}, {1, 2, 40, 7}), y));
  check(make_add(channel, y));
  check(make_add(tensor(f32, {2, 3, 4, 5}, {0, 1, 0, 0}), y));
  // Another type, and broadcast by strides of 0.
  check(make_transform(tensor(f16, {2, 3, 4, 5}, {0, 1, 0, 0}), y));
  check(make_transform(tensor(f16, {2, 3, 4, 5}, {0, 0, 0, 0}), y));
  check(make_binary(KILN_OP_TENSOR_MIN, tensor(f32, {2, 3, 4, 5}, {0, 20, 5, 1}), channel, y));
  check(make_activation_forward({KILN_ACTIVATION_ELU, 1e-3},
                                tensor(f32, {2, 3, 4, 5}, {0, 0, 0, 1}), y));
  check(make_activation_forward({KILN_ACTIVATION_CLIP, -HUGE_VAL, 6}, y, y));
  check(make_activation_forward({KILN_ACTIVATION_POW, -0.1, 1e-3}, y, y));
  check(make_activation_backward({KILN_ACTIVATION_HARD_SIGMOID, 0.2, 0.5}, y, "xDesc", y, y));
  for (const kilnOpTensorOp_t op : all_of<kilnOpTensorOp_t>())
    check(make_binary(op, y, channel, y));
  for (const kilnReduceTensorOp_t op : all_of<kilnReduceTensorOp_t>())
    check(make_reduction(op, y, channel));
  check(make_activation_backward({KILN_ACTIVATION_SILU, 0}, y, "xDesc",
                                 tensor(f32, {2, 3, 4, 5}, {0, 1, 3, 0}), y));
  check(make_softmax_backward(KILN_SOFTMAX_LOG, KILN_SOFTMAX_MODE_INSTANCE, y,
                              tensor(f32, {2, 3, 4, 5}, {100, 1, 30, 4}), y));
  check(make_reduction(KILN_REDUCE_MEAN, tensor(f32, {2, 3, 4, 5}, {0, 1, 0, 3}), channel));
  check(make_reduction(KILN_REDUCE_MAX, y, y));
  check(make_bias_gradient(y, channel));
  const Tensor spaced = tensor(f32, {2, 3, 4, 5}, {100, 1, 30, 4});
  check(make_normalization_training({}, y, &spaced, spaced));
  check(make_normalization_backward({}, spaced, nullptr, y, nullptr, y));
  check(make_normalization_moments(spaced));
  check(make_normalization_combine({}, KILN_DATA_BFLOAT16, 4, 3));
  // Weights of each pixel's own: padded, of each image, broadcast along the filters, of one image.
  ConvolutionSpec spec;
  spec.spatial = 2;
  const Tensor x = tensor(f32, {2, 3, 5, 5}), out = tensor(f32, {2, 4, 3, 3});
  const Tensor bias = tensor(f32, {1, 4, 1, 3}, {0, 7, 0, 2});
  check(make_local(spec, x, tensor(f32, {3, 3, 4, 3, 3, 3}, {400, 120, 30, 9, 3, 1}), &bias, out));
  check(make_local(spec, x, tensor(f32, {2, 3, 3, 4, 3, 3, 3}, {900, 300, 90, 0, 27, 9, 3}),
                   nullptr, out));
  check(make_local_wgrad(spec, tensor(f32, {1, 3, 5, 5}), tensor(f32, {1, 4, 3, 3}),
                         tensor(f32, {1, 3, 3, 4, 3, 3, 3})));
  check(make_local_dgrad(spec, tensor(f32, {1, 3, 3, 4, 3, 3, 3}), out, x));
}

BOOST_AUTO_TEST_SUITE_END()
