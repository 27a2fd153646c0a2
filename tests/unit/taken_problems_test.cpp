// Which layers each engine of convolutions takes. Suites that ask every engine pass over what an
// engine refuses, so an engine that begins to refuse a layer is caught here.
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "engines/engine.hpp"
#include "problem/line/problem_line.hpp"

namespace {

using namespace kiln;

// The layers by the names that the table uses.
const std::map<std::string, const char*> layers{
    {"3x3", "mb8ic64ih28oc128kh3ph1"},
    {"1x1", "mb8ic64ih28oc128kh1"},
    {"strided", "mb8ic64ih28oc128kh3ph1sh2"},
    {"volume", "mb2ic64id8ih14iw14oc64kd3kh3kw3pd1ph1pw1"},
    {"rows", "mb8ic70ih32oc90kh3ph1"},  // rows of multiples of 16 bytes, in 16 bits
    {"frames", "mb2ic64id8ih14iw16oc64kd3kh3kw3pd1ph1pw1"},
    {"depths", "mb2ic64id8ih14iw20oc64kd3kh1kw1pd1ph0pw0"},
    {"uneven", "mb8ic70ih28oc90kh3ph1"},      // channels in no multiple of 16 bytes
    {"image", "mb8ic3ih112oc64kh7ph3sh2"},    // reads an image
    {"patches", "mb8ic3ih224oc768kh16sh16"},  // windows that do not overlap
    {"to-image", "mb8ic64ih56oc3kh3ph1"},     // makes an image
    {"few-rows", "mb8ic256ih1oc256kh1"},      // of a linear layer
    {"groups", "g16mb8ic64ih28oc64kh3ph1"},   // 4 channels each
    {"strided-groups", "g3mb8ic72ih28oc72kh3ph1sh2"},
    {"depthwise", "g64mb8ic64ih28oc64kh3ph1"},
    {"depthwise-narrow", "g53mb8ic53ih28oc53kh3ph1"},
    {"depthwise-volume", "g64mb2ic64id8ih14iw14oc64kd3kh3kw3pd1ph1pw1"},
    {"depthwise13", "g64mb8ic64ih28oc64kh13ph6"}};

struct Type {
  DataType type;
  kilnMathMode_t math;
};
const std::map<std::string, Type> types{{"f16", {KILN_DATA_HALF, KILN_MATH_DEFAULT}},
                                        {"bf16", {KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}},
                                        {"tf32", {KILN_DATA_FLOAT, KILN_MATH_TF32}},
                                        {"f32", {KILN_DATA_FLOAT, KILN_MATH_DEFAULT}},
                                        {"strict", {KILN_DATA_FLOAT, KILN_MATH_STRICT}},
                                        {"f64", {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT}}};

const std::map<std::string, kilnTensorFormat_t> layouts{{"nchw", KILN_TENSOR_NCHW},
                                                        {"nhwc", KILN_TENSOR_NHWC}};

// An engine takes, on an H200, every layer in every type, layout and pass of its row.
struct Row {
  const char *engine, *passes, *layouts, *types, *layers;
};
constexpr const char* half = "f16 bf16";
constexpr const char* fast = "f16 bf16 tf32";
constexpr const char* tensor_core = "f16 bf16 tf32 f32";
constexpr const char* tensor_core_64 = "f16 bf16 tf32 f32 f64";
constexpr const char* copied = "f16 bf16 tf32 f32 strict";
constexpr const char* every_type = "f16 bf16 tf32 f32 strict f64";
constexpr const char* every_layer =
    "3x3 1x1 strided volume uneven image patches to-image groups depthwise depthwise13";
constexpr const char* dense = "3x3 1x1 strided volume";
constexpr const char* ungrouped = "3x3 1x1 strided volume uneven image patches";

// clang-format off
const Row rows[] = {
    {"dense_nhwc_wgmma", "fwd dgrad", "nhwc", fast, dense},
    {"dense_nchw_wgmma", "fwd dgrad", "nchw", fast, "1x1"},
    {"dense_halo_nhwc_wgmma", "fwd dgrad", "nhwc", fast, "3x3 volume"},
    {"dense_halo_nchw_wgmma", "fwd dgrad", "nchw", half, "rows frames depths"},
    {"channels_last_copies", "fwd dgrad", "nchw", copied, every_layer},
    {"channels_last_copies", "fwd dgrad", "nhwc", copied, "uneven"},
    {"patches_nhwc", "fwd dgrad", "nhwc", every_type, "patches"},
    {"stride_phases", "dgrad", "nhwc", half, "strided-groups"},
    {"halo_nhwc_wgmma", "fwd dgrad", "nhwc", fast, "3x3 1x1"},
    {"halo_nhwc_wgmma_swap", "fwd dgrad", "nhwc", "f32", "3x3"},
    {"halo_nhwc_wgmma_swap", "fwd", "nhwc", "f32", "strided"},
    {"halo_nhwc_mma", "fwd dgrad", "nhwc", tensor_core, "3x3"},
    {"halo_nhwc_mma", "fwd", "nhwc", tensor_core, "strided"},
    {"halo_nhwc_mma", "fwd dgrad", "nhwc", fast, "1x1"},
    {"halo_nchw_wgmma", "fwd dgrad", "nchw", tensor_core, "3x3 uneven"},
    {"halo_nchw_wgmma_swap", "fwd dgrad", "nchw", "tf32 f32", "3x3 uneven"},
    {"halo_nchw_wgmma_swap", "fwd", "nchw", "tf32 f32", "strided"},
    {"halo_nchw_mma", "fwd dgrad", "nchw", tensor_core_64, "3x3 uneven"},
    {"halo_nchw_mma", "fwd", "nchw", tensor_core_64, "strided"},
    {"few_input_channels_nhwc_mma", "fwd", "nhwc", half, "image"},
    {"few_input_channels_nhwc_mma", "dgrad", "nhwc", half, "to-image"},
    {"few_input_channels_mma", "fwd", "nchw nhwc", tensor_core, "image"},
    {"few_input_channels_mma", "dgrad", "nchw nhwc", fast, "to-image"},
    {"few_input_channels_wgmma_swap", "fwd", "nchw nhwc", tensor_core, "image"},
    {"few_input_channels_wgmma_swap", "dgrad", "nchw nhwc", fast, "to-image"},
    {"few_output_channels_mma", "dgrad", "nchw nhwc", tensor_core_64, "1x1 strided image patches"},
    {"few_output_channels_mma", "fwd", "nchw nhwc", tensor_core_64, "to-image"},
    {"few_output_channels_mma", "fwd dgrad", "nchw", tensor_core_64, "depthwise13"},
    {"few_output_channels_wgmma", "dgrad", "nchw nhwc", tensor_core, "1x1 strided image patches"},
    {"few_output_channels_wgmma", "fwd", "nchw nhwc", tensor_core, "to-image"},
    {"few_output_channels_wgmma", "fwd dgrad", "nchw", tensor_core, "depthwise13"},
    {"few_rows_mma", "fwd", "nchw nhwc", half, "few-rows"},
    {"few_rows_fma", "fwd", "nchw nhwc", "tf32 f32 strict", "few-rows"},
    {"implicit_gemm_mma", "fwd dgrad", "nchw nhwc", tensor_core_64, "3x3 strided volume uneven"},
    {"implicit_gemm_mma", "fwd", "nchw nhwc", tensor_core_64, "image patches"},
    {"implicit_gemm_mma", "dgrad", "nchw nhwc", tensor_core_64, "1x1"},
    {"implicit_gemm_fma", "fwd dgrad", "nchw nhwc", every_type, "3x3 1x1 strided volume uneven groups"},
    {"implicit_gemm_fma", "fwd", "nchw nhwc", every_type, "image patches"},
    {"implicit_gemm_fma", "dgrad", "nchw nhwc", every_type, "to-image"},
    {"grouped_halo_nhwc_mma", "fwd dgrad", "nhwc", half, "groups"},
    {"grouped_nhwc_mma", "fwd dgrad", "nhwc", half, "groups"},
    {"toeplitz_nhwc_mma", "fwd dgrad", "nhwc", half, "depthwise depthwise13"},
    {"depthwise_halo_nhwc_fma", "fwd dgrad", "nhwc", copied, "depthwise depthwise13"},
    {"depthwise_nhwc_fma", "fwd dgrad", "nhwc", every_type, "groups depthwise depthwise13 depthwise-narrow"},
    {"depthwise_rows_nhwc_fma", "fwd dgrad", "nhwc", every_type, "depthwise-narrow depthwise-volume"},
    {"depthwise_fma", "fwd dgrad", "nchw nhwc", every_type, "groups depthwise depthwise13"},
    {"depthwise_fma", "fwd", "nchw nhwc", every_type, "to-image"},
    {"direct", "fwd dgrad", "nchw nhwc", every_type, every_layer},
    {"stand_in_dense", "fwd dgrad", "nhwc", fast, dense},
    {"stand_in_gemm", "fwd dgrad", "nchw nhwc", tensor_core_64, "3x3 strided volume uneven"},
    {"stand_in_gemm", "fwd", "nchw nhwc", tensor_core_64, "image patches"},
    {"stand_in_direct", "fwd", "nchw nhwc", every_type, every_layer},
    {"stand_in_direct", "dgrad", "nchw nhwc", every_type, "3x3 1x1 strided volume groups depthwise"},

    {"wgrad_dense_nhwc_wgmma", "wgrad", "nhwc", tensor_core, dense},
    {"wgrad_dense_nhwc_wgmma", "wgrad", "nhwc", "tf32 f32", "groups"},
    {"wgrad_dense_nchw_wgmma", "wgrad", "nchw", fast, "1x1"},
    {"wgrad_channels_last_copies", "wgrad", "nchw", copied, every_layer},
    {"wgrad_channels_last_copies", "wgrad", "nhwc", copied, "uneven"},
    {"wgrad_channels_first_copies", "wgrad", "nhwc", "tf32 f32 strict", "depthwise depthwise13"},
    {"wgrad_patches_nhwc", "wgrad", "nhwc", every_type, "patches"},
    {"wgrad_few_channels_mma", "wgrad", "nchw nhwc", tensor_core, "image patches to-image"},
    {"wgrad_nhwc_mma", "wgrad", "nhwc", tensor_core, dense},
    {"wgrad_nchw_mma", "wgrad", "nchw", tensor_core_64, "3x3 1x1 strided uneven image"},
    {"wgrad_nchw_mma", "wgrad", "nhwc", tensor_core_64, "image"},
    {"wgrad_nchw_wgmma_swap", "wgrad", "nchw", tensor_core, "3x3 1x1 strided uneven image"},
    {"wgrad_nchw_wgmma_swap", "wgrad", "nhwc", tensor_core, "image"},
    {"wgrad_implicit_gemm_mma", "wgrad", "nchw nhwc", tensor_core_64, ungrouped},
    {"wgrad_implicit_gemm_fma", "wgrad", "nchw nhwc", every_type, ungrouped},
    {"wgrad_implicit_gemm_fma", "wgrad", "nchw nhwc", every_type, "groups"},
    {"wgrad_depthwise_fma", "wgrad", "nchw", every_type, "groups depthwise depthwise13"},
    {"wgrad_depthwise_nhwc_fma", "wgrad", "nhwc", every_type, "groups depthwise depthwise-narrow"},
    {"wgrad_depthwise_rows_nhwc_fma", "wgrad", "nhwc", every_type, "depthwise-narrow depthwise-volume"},
    {"wgrad_depthwise_nhwc_mma", "wgrad", "nhwc", half, "groups depthwise"},
    {"wgrad_grouped_nhwc_mma", "wgrad", "nhwc", half, "groups depthwise depthwise13"},
    {"wgrad_toeplitz_nhwc_mma", "wgrad", "nhwc", half, "depthwise depthwise13"},
    {"wgrad_direct", "wgrad", "nchw nhwc", every_type, every_layer},
    {"stand_in_wgrad_dense", "wgrad", "nhwc", fast, dense},
    {"stand_in_wgrad_gemm", "wgrad", "nchw nhwc", tensor_core_64, ungrouped},
    {"stand_in_wgrad_direct", "wgrad", "nchw nhwc", every_type, every_layer},
};
// clang-format on

std::vector<std::string> words(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

Problem problem_of(const char* line, const Type& type, kilnTensorFormat_t layout,
                   const std::string& pass, bool result_of_f32 = false) {
  ConvolutionOperands o =
      describe_convolution(parse_convolution_line(line), type.type, layout, KILN_CROSS_CORRELATION);
  o.spec.math = type.math;
  if (result_of_f32) (pass == "fwd" ? o.y : pass == "dgrad" ? o.x : o.w).type = KILN_DATA_FLOAT;
  if (pass == "fwd") return make_convolution(o.spec, o.x, o.w, o.y);
  if (pass == "dgrad") return make_convolution_dgrad(o.spec, o.w, o.y, o.x);
  BOOST_TEST_REQUIRE(pass == "wgrad");
  return make_convolution_wgrad(o.spec, o.x, o.y, o.w);
}

const Method* method_named(const std::string& name) {
  for (const Method* method : methods())
    if (method->name() == name) return method;
  return nullptr;
}

void check(const Row& row, bool result_of_f32 = false) {
  const DeviceDescription device = known_architecture("h200");
  const Method* const method = method_named(row.engine);
  BOOST_TEST_REQUIRE(method != nullptr, "no engine " << row.engine);
  for (const std::string& pass : words(row.passes))
    for (const std::string& layout : words(row.layouts))
      for (const std::string& type : words(row.types))
        for (const std::string& layer : words(row.layers)) {
          const Problem problem =
              problem_of(layers.at(layer), types.at(type), layouts.at(layout), pass, result_of_f32);
          std::string reason;
          if (!method->is_for(problem)) {
            reason = "is not for this pass";
          } else {
            const auto answer = ask(*method, problem, Chooser(device));
            if (const auto* refusal = std::get_if<Refusal>(&answer)) reason = refusal->reason;
          }
          BOOST_TEST(reason.empty(), row.engine << " refuses " << layer << " " << pass << " "
                                                << layout << " " << type << ": " << reason);
        }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(taken_problems)

BOOST_AUTO_TEST_CASE(each_engine_takes_what_its_rows_say) {
  for (const Row& row : rows) check(row);
}

// The rows of engines whose result may be f32 where the other tensors are f16 or bf16.
BOOST_AUTO_TEST_CASE(results_of_f32) {
  const Row mixed[] = {
      {"implicit_gemm_mma", "fwd dgrad", "nchw nhwc", half, "3x3 strided uneven"},
      {"implicit_gemm_fma", "fwd dgrad", "nchw nhwc", half, "3x3 strided uneven groups"},
      {"patches_nhwc", "fwd dgrad", "nhwc", half, "patches"},
      {"few_rows_mma", "fwd", "nchw nhwc", half, "few-rows"},
      {"direct", "fwd dgrad", "nchw nhwc", half, every_layer},
      {"wgrad_dense_nhwc_wgmma", "wgrad", "nhwc", half, dense},
      {"wgrad_dense_nchw_wgmma", "wgrad", "nchw", half, "1x1"},
      {"wgrad_few_channels_mma", "wgrad", "nchw nhwc", half, "image to-image"},
      {"wgrad_nhwc_mma", "wgrad", "nhwc", half, dense},
      {"wgrad_patches_nhwc", "wgrad", "nhwc", half, "patches"},
      {"wgrad_implicit_gemm_mma", "wgrad", "nchw nhwc", half, ungrouped},
      {"wgrad_implicit_gemm_fma", "wgrad", "nchw nhwc", half, "3x3 groups"},
      {"wgrad_direct", "wgrad", "nchw nhwc", half, every_layer},
  };
  for (const Row& row : mixed) check(row, true);
}

BOOST_AUTO_TEST_CASE(every_engine_of_convolutions_has_a_row) {
  std::set<std::string> named;
  for (const Row& row : rows) named.insert(row.engine);
  const Type f32 = types.at("f32");
  for (const char* pass : {"fwd", "dgrad", "wgrad"})
    for (const Method* method : methods())
      if (method->is_for(problem_of(layers.at("3x3"), f32, KILN_TENSOR_NCHW, pass)))
        BOOST_TEST(named.contains(method->name()), method->name());
}

BOOST_AUTO_TEST_SUITE_END()
