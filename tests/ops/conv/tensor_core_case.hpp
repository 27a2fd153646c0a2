// Convolutions on the tensor cores in all arithmetics, on small integers, whose sums are exact in
// all of them.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "core/text.hpp"
#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "engines/engine.hpp"
#include "forward_case.hpp"

namespace test {

struct Arithmetic {
  DataType type;
  kilnMathMode_t math;
};
inline std::string text_of(const Arithmetic& arithmetic) {
  return cat(name_of(arithmetic.type), " math ", static_cast<int>(arithmetic.math));
}
inline constexpr Arithmetic arithmetics[] = {{KILN_DATA_FLOAT, KILN_MATH_DEFAULT},
                                             {KILN_DATA_FLOAT, KILN_MATH_TF32},
                                             {KILN_DATA_HALF, KILN_MATH_DEFAULT},
                                             {KILN_DATA_BFLOAT16, KILN_MATH_DEFAULT}};

// The arithmetics of engines that also take f64.
inline constexpr Arithmetic with_f64[] = {arithmetics[0],
                                          arithmetics[1],
                                          arithmetics[2],
                                          arithmetics[3],
                                          {KILN_DATA_DOUBLE, KILN_MATH_DEFAULT}};
inline const Arithmetic& in_turn(int turn) {
  return with_f64[static_cast<std::size_t>(turn) % std::size(with_f64)];
}

// Whether the device has wgmma: a Hopper GPU, or the host device.
inline bool has_warpgroups() {
  const DeviceDescription& description = device()->description();
  return description.kind == KILN_DEVICE_HOST || description.arch == "sm_90a";
}

// A precondition of suites whose engines need TMA: a GPU of sm_90 or later, or the host device.
inline boost::test_tools::assertion_result has_copy_engine(boost::unit_test::test_unit_id) {
  const DeviceDescription& description = device()->description();
  return description.kind == KILN_DEVICE_HOST || description.compute_capability >= 90;
}

// Why the engine or rewrite refuses a problem on the device; "" if it takes it.
inline std::string refusal_of(const Method& method, const ConvolutionProblem& problem) {
  const auto answer = ask(method, problem, Chooser(device()->description()));
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? std::string() : refusal->reason;
}

inline ConvolutionProblem problem_in(const char* line, const Arithmetic& arithmetic,
                                     kilnTensorFormat_t layout,
                                     ConvolutionPass pass = ConvolutionPass::fprop,
                                     kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  ConvolutionOperands o =
      describe_convolution(parse_convolution_line(line), arithmetic.type, layout, mode);
  o.spec.math = arithmetic.math;
  switch (pass) {
    case ConvolutionPass::dgrad: return make_convolution_dgrad(o.spec, o.w, o.y, o.x);
    case ConvolutionPass::wgrad: return make_convolution_wgrad(o.spec, o.x, o.y, o.w);
    default: return make_convolution(o.spec, o.x, o.w, o.y);
  }
}

// A forward problem with a bias, a residual in `z_layout`, and relu.
inline ConvolutionProblem fused_in(const char* line, const Arithmetic& arithmetic,
                                   kilnTensorFormat_t layout, kilnTensorFormat_t z_layout) {
  const ConvolutionOperands o = describe_convolution(parse_convolution_line(line), arithmetic.type,
                                                     layout, KILN_CROSS_CORRELATION);
  Tensor z = o.y, bias = o.y;
  z.strides = dense_strides(z_layout, 4, z.dims);
  bias.dims = {1, o.y.dims[1], 1, 1};
  bias.strides = dense_strides(z_layout, 4, bias.dims);
  ConvolutionProblem problem = make_convolution(
      o.spec, o.x, o.w, o.y, bias_activation_epilogue(&z, &bias, {KILN_ACTIVATION_RELU, 0}));
  problem.math = arithmetic.math;
  return problem;
}

inline OperationCase integers_of(const ConvolutionProblem& problem, unsigned seed = 1) {
  OperationCase item(problem);
  for (std::size_t i = 0; i + 1 < item.tensors.size(); ++i)
    item.tensors[i].fill_integers(seed + static_cast<unsigned>(i), 2);
  return item;
}

inline void check_integers(const OperationCase& item, const char* engine) {
  const std::string fault = item.exact_fault(item.run_plan(engine));
  BOOST_TEST(fault.empty(), engine << ", " << text_of(item.problem) << ": " << fault);
}

// A forward pass of one square image by square filters without padding.
struct SquareForward {
  std::size_t channels, size, filters, taps;
};

// The result by sequential fused multiply-adds in f32.
inline std::vector<double> fused_forward(const SquareForward& of, const std::vector<double>& x,
                                         const std::vector<double>& w) {
  const std::size_t out = of.size - of.taps + 1;
  std::vector<double> sums;
  for (std::size_t k = 0; k < of.filters; ++k)
    for (std::size_t p = 0; p < out; ++p)
      for (std::size_t q = 0; q < out; ++q) {
        float sum = 0;
        for (std::size_t c = 0; c < of.channels; ++c)
          for (std::size_t r = 0; r < of.taps; ++r)
            for (std::size_t s = 0; s < of.taps; ++s)
              sum = std::fma(
                  static_cast<float>(x[(c * of.size + p + r) * of.size + q + s]),
                  static_cast<float>(w[((k * of.channels + c) * of.taps + r) * of.taps + s]), sum);
        sums.push_back(sum);
      }
  return sums;
}

// Checks that the error of 3xTF32 against f64 is no larger than that of fused multiply-adds, for
// numbers of all magnitudes: subnormal operands, products and sums, and sums that are computed
// again. With in_one, also checks that the error of TF32 is larger.
inline void check_error_of_three_products(const char* engine, const SquareForward& of,
                                          kilnTensorFormat_t layout = KILN_TENSOR_NCHW,
                                          bool in_one = true) {
  struct Scales {
    int x, w;  // powers of two
  };
  const std::string line =
      cat("mb1ic", of.channels, "ih", of.size, "oc", of.filters, "kh", of.taps);
  const auto item_in = [&](kilnMathMode_t math, Scales scales) {
    OperationCase item(problem_in(line.c_str(), {KILN_DATA_FLOAT, math}, layout));
    item.fill_uniform(11);
    scale_f32(item["x"], scales.x);
    scale_f32(item["w"], scales.w);
    return item;
  };
  for (const Scales& scales : {Scales{0, 0},
                               {-122, 0},
                               {-136, 0},
                               {0, -126},
                               {-140, 60},
                               {-68, -68},
                               {100, -100},
                               {45, 45}}) {
    OperationCase item = item_in(KILN_MATH_DEFAULT, scales);
    const HostTensor want = item.expected();
    const auto error = [&](const std::vector<double>& got) {
      return relative_rms(got, want.values, scales.x + scales.w);
    };
    const double ours = error(item.run_plan(engine).values);
    const double fused = error(fused_forward(of, item["x"].values, item["w"].values));
    // Sums that are computed again have another order than the fused multiply-adds.
    BOOST_TEST(ours <= fused * (scales.x + scales.w > 64 ? 1.5 : 1.01),
               engine << " " << line << ", x 2^" << scales.x << ", w 2^" << scales.w << ": " << ours
                      << ", fused " << fused);
    if (in_one && scales.x == 0 && scales.w == 0)
      BOOST_TEST(error(item_in(KILN_MATH_TF32, scales).run_plan(engine).values) > 1e-5,
                 "tf32 is as good as f32");
  }
}

}  // namespace test
