#include "engines/stand_in/stand_in_kernels.hpp"

#include <algorithm>
#include <string>

#include "engines/stand_in/stand_in_dense.hpp"
#include "engines/stand_in/stand_in_direct.hpp"
#include "engines/stand_in/stand_in_gemm.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln {
namespace {

// A convolution that is asked about. It is large enough for every tile.
struct Example {
  const char* line;
  ConvolutionPass pass;
  kilnTensorFormat_t layout = KILN_TENSOR_NHWC;
  bool bias = false;
};
constexpr Example examples[] = {
    {"mb16ic256ih14oc256kh3ph1", ConvolutionPass::fprop},
    {"mb16ic256ih14oc256kh3ph1", ConvolutionPass::fprop, KILN_TENSOR_NHWC, true},
    {"mb16ic256ih14oc256kh3ph1", ConvolutionPass::dgrad},
    {"mb16ic256ih14oc256kh3sh2ph1", ConvolutionPass::dgrad},
    {"mb16ic256ih14oc256kh3sh3ph1", ConvolutionPass::dgrad},
    {"mb16ic256ih14oc256kh3ph1", ConvolutionPass::wgrad},
    {"mb4ic256id8ih14oc256kd3kh3pd1ph1", ConvolutionPass::fprop},
    {"mb4ic256id8ih14oc256kd3kh3pd1ph1", ConvolutionPass::fprop, KILN_TENSOR_NHWC, true},
    {"mb4ic256id8ih14oc256kd3kh3pd1ph1", ConvolutionPass::dgrad},
    {"mb4ic256id8ih14oc256kd3kh3sd2sh2pd1ph1", ConvolutionPass::dgrad},
    {"mb4ic256id8ih14oc256kd3kh3pd1ph1", ConvolutionPass::wgrad},
    // A filter of one tap in NCHW has the output rows of a data gradient contiguous.
    {"mb4ic256ih14oc192kh1", ConvolutionPass::dgrad, KILN_TENSOR_NCHW},
    {"mb4ic256ih14oc512kh1", ConvolutionPass::dgrad, KILN_TENSOR_NCHW},
    {"mb4ic256ih14oc2048kh1", ConvolutionPass::dgrad, KILN_TENSOR_NCHW},
    {"mb4ic256ih14oc9216kh1", ConvolutionPass::dgrad, KILN_TENSOR_NCHW},
};

// Problems with sums of different lengths, because tensor cores promote sums according to length.
struct Length {
  const char* plain;
  const char* strided;
};
constexpr Length lengths[] = {{"mb1ic32ih10oc32kh3ph1", "mb1ic32ih10oc32kh3sh2ph1"},
                              {"mb4ic64ih10oc64kh3ph1", "mb4ic128ih10oc128kh3sh2ph1"},
                              {"mb16ic256ih14oc256kh3ph1", "mb16ic512ih14oc512kh3sh2ph1"},
                              {"mb64ic1024ih28oc1024kh3ph1", "mb64ic2560ih28oc2560kh3sh2ph1"}};

std::vector<Example> all_examples() {
  std::vector<Example> all(std::begin(examples), std::end(examples));
  for (const kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
    for (const Length& length : lengths) {
      for (const ConvolutionPass pass :
           {ConvolutionPass::fprop, ConvolutionPass::dgrad, ConvolutionPass::wgrad})
        all.push_back({length.plain, pass, layout});
      all.push_back({length.strided, ConvolutionPass::dgrad, layout});
    }
  return all;
}

struct Arithmetic {
  DataType type, result;
  kilnMathMode_t math;
};
constexpr Arithmetic arithmetics[] = {
    {KILN_DATA_FLOAT, KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
    {KILN_DATA_FLOAT, KILN_DATA_FLOAT, KILN_MATH_TF32},
    {KILN_DATA_DOUBLE, KILN_DATA_DOUBLE, KILN_MATH_DEFAULT},
    {KILN_DATA_HALF, KILN_DATA_HALF, KILN_MATH_DEFAULT},
    {KILN_DATA_BFLOAT16, KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT},
    {KILN_DATA_HALF, KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
    {KILN_DATA_BFLOAT16, KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
};

ConvolutionProblem problem_of(const Example& example, const Arithmetic& arithmetic) {
  ConvolutionOperands o =
      describe_convolution(parse_convolution_line(example.line), arithmetic.type, example.layout,
                           KILN_CROSS_CORRELATION);
  o.spec.math = arithmetic.math;
  switch (example.pass) {
    case ConvolutionPass::fprop: o.y.type = arithmetic.result; break;
    case ConvolutionPass::dgrad: o.x.type = arithmetic.result; break;
    case ConvolutionPass::wgrad: o.w.type = arithmetic.result; break;
  }
  switch (example.pass) {
    case ConvolutionPass::dgrad: return make_convolution_dgrad(o.spec, o.w, o.y, o.x);
    case ConvolutionPass::wgrad: return make_convolution_wgrad(o.spec, o.x, o.y, o.w);
    case ConvolutionPass::fprop: break;
  }
  Tensor bias = o.y;
  bias.dims = {1, o.y.dims[1], 1, 1, 1};
  bias.strides = dense_strides(example.layout, bias.rank, bias.dims);
  return make_convolution(o.spec, o.x, o.w, o.y,
                          bias_activation_epilogue(nullptr, example.bias ? &bias : nullptr,
                                                   {KILN_ACTIVATION_IDENTITY, 0}));
}

}  // namespace

std::vector<KernelSpec> stand_in_kernels(const DeviceDescription& device) {
  const StandInDenseEngine dense;
  const StandInGemmEngine gemm;
  const StandInDirectEngine direct;
  const StandInWgradDenseEngine wgrad_dense;
  const StandInWgradGemmEngine wgrad_gemm;
  const StandInWgradDirectEngine direct_wgrad;
  const Engine* const asked[] = {&dense, &gemm, &direct, &wgrad_dense, &wgrad_gemm, &direct_wgrad};
  const std::vector<Example> all = all_examples();
  std::vector<KernelSpec> kernels;
  const auto add = [&](KernelSpec& kernel) {
    if (std::ranges::find(kernels, kernel) == kernels.end()) kernels.push_back(std::move(kernel));
  };
  for (const Arithmetic& arithmetic : arithmetics)
    for (const Example& example : all) {
      const Problem problem = problem_of(example, arithmetic);
      for (const Engine* engine : asked) {
        if (!engine->is_for(problem)) continue;
        auto answer = ask(*engine, problem, device);
        auto* const candidates = std::get_if<std::vector<Candidate>>(&answer);
        if (candidates == nullptr) continue;
        for (Candidate& candidate : *candidates) {
          Proposal proposal = engine->make(problem, device, std::move(candidate));
          for (Step& step : proposal.steps) add(step.kernel);
        }
      }
    }
  return kernels;
}

}  // namespace kiln
