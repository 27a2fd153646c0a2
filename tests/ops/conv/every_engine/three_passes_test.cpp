// The three passes of a convolution against the reference and against each other; gradients by
// differences; the fused epilogue.
#include <boost/test/unit_test.hpp>

#include "ops/conv/forward_case.hpp"
#include "ops/placed_case.hpp"
#include "ops/random_tensors.hpp"

BOOST_AUTO_TEST_SUITE(three_passes)

namespace {

using namespace test;

ConvolutionOperands random_operands(RandomProblems& random, DataType type) {
  for (;;) {
    ConvolutionLine line;
    line.rank = static_cast<int>(random.among(1, 3));
    line.groups = random.coin() ? 1 : random.among(2, 4);
    line.batch = random.among(1, 3);
    line.in_channels = line.groups * random.among(1, 7);
    line.out_channels = line.groups * random.among(1, 9);
    bool legal = true;
    for (int i = 3 - line.rank; i < 3; ++i) {
      line.in[i] = random.among(1, 9);
      line.filter[i] = random.among(1, 4);
      line.stride[i] = random.among(1, 3);
      line.dilation[i] = random.among(1, 3);
      line.pad_before[i] = random.among(-1, 4);
      line.pad_after[i] = random.among(-1, 4);
      line.out[i] = output_size(line.in[i], line.pad_before[i], line.pad_after[i], line.filter[i],
                                line.stride[i], line.dilation[i]);
      legal = legal && line.out[i] >= 1;
    }
    if (!legal) continue;
    return describe_convolution(line, type, random.coin() ? KILN_TENSOR_NCHW : KILN_TENSOR_NHWC,
                                random.coin() ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION);
  }
}

double dot(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.operand.count(); ++i) sum += a.at(i) * b.at(i);
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_problems_on_every_engine) {
  RandomProblems random(1);
  for (int turn = 0; turn < turns(20, 120); ++turn) {
    const ConvolutionOperands operands = random_operands(random, random.type());
    const Problem dgrad = make_convolution_dgrad(operands.spec, operands.w, operands.y, operands.x);
    const Problem wgrad = make_convolution_wgrad(operands.spec, operands.x, operands.y, operands.w);
    for (const Problem& problem : {dgrad, wgrad}) {
      OperationCase item(problem);
      item.scalars = random.scalars();
      item.fill_uniform(random.seed());
      BOOST_TEST(check(item) == "");
      const bool is_dgrad = problem == dgrad;
      BOOST_TEST(check(item, is_dgrad ? "direct" : "wgrad_direct") == "");
    }
  }
}

// <conv(x), dy> = <x, dgrad(dy)> = <w, wgrad(x, dy)>
BOOST_AUTO_TEST_CASE(the_passes_are_adjoint) {
  RandomProblems random(2);
  for (int turn = 0; turn < turns(12, 60); ++turn) {
    const ConvolutionOperands o = random_operands(random, KILN_DATA_DOUBLE);
    OperationCase fprop(make_convolution(o.spec, o.x, o.w, o.y));
    OperationCase dgrad(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
    OperationCase wgrad(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    fprop.fill_uniform(random.seed());
    dgrad.fill_uniform(random.seed());
    dgrad["w"] = fprop["w"];
    wgrad["x"].values = fprop["x"].values;
    wgrad["dy"].values = dgrad["dy"].values;
    const double forward = dot(fprop.run_plan(), dgrad["dy"]);
    const double data = dot(fprop["x"], dgrad.run_plan());
    const double filter = dot(fprop["w"], wgrad.run_plan());
    const double size = std::sqrt(dot(fprop["x"], fprop["x"]) * dot(fprop["w"], fprop["w"]) *
                                  dot(dgrad["dy"], dgrad["dy"])) +
                        1e-300;
    BOOST_TEST(std::fabs(forward - data) / size < 1e-12);
    BOOST_TEST(std::fabs(forward - filter) / size < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(gradients_are_differences) {
  constexpr double step = 1e-5;
  RandomProblems random(3);
  for (int turn = 0; turn < turns(4, 10); ++turn) {
    const ConvolutionOperands o = random_operands(random, KILN_DATA_DOUBLE);
    OperationCase fprop(make_convolution(o.spec, o.x, o.w, o.y));
    fprop.fill_uniform(random.seed());
    OperationCase dgrad(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
    dgrad.fill_uniform(random.seed());
    dgrad["w"] = fprop["w"];
    OperationCase wgrad(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    wgrad["x"].values = fprop["x"].values;
    wgrad["dy"].values = dgrad["dy"].values;
    for (const char* name : {"x", "w"}) {
      const HostTensor gradient = name[0] == 'x' ? dgrad.run_plan() : wgrad.run_plan();
      const std::int64_t place = random.among(0, gradient.operand.count() - 1);
      const auto objective = [&](double shift) {
        OperationCase moved = fprop;
        moved[name].at(place) += shift;
        return dot(moved.run_plan(), dgrad["dy"]);
      };
      const double slope = (objective(step) - objective(-step)) / (2 * step);
      BOOST_TEST(std::fabs(slope - gradient.at(place)) < 1e-7);
    }
  }
}

// A filter gradient with operands that are only aligned to their elements has another kernel. A
// plan for aligned operands refuses such an operand.
BOOST_AUTO_TEST_CASE(channels_last_operands_aligned_to_an_element) {
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_BFLOAT16}) {
    const ConvolutionOperands o =
        describe_convolution(parse_convolution_line("mb2ic32ih8iw8oc32kh3ph1"), type,
                             KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
    ConvolutionProblem problem = make_convolution_wgrad(o.spec, o.x, o.y, o.w);
    OperationCase item(problem);
    item.fill_integers(3, 2);
    BOOST_CHECK_EXCEPTION(run_shifted(item, 1, "wgrad_nhwc_mma"), Error, [](const Error& e) {
      return std::string(e.what()).find("expected a multiple of 16") != std::string::npos;
    });
    problem.alignment = static_cast<std::int64_t>(size_of(type));
    OperationCase unaligned(problem);
    unaligned.fill_integers(3, 2);
    BOOST_TEST(difference(run_shifted(unaligned, 1), unaligned.expected()) == "");
    BOOST_CHECK_EXCEPTION(unaligned.run_plan("wgrad_nhwc_mma"), Error, [](const Error& e) {
      return std::string(e.what()).find("expected 16, which are copied at a time") !=
             std::string::npos;
    });
  }
}

// 3xTF32: an infinity is multiplied by the lo parts of numbers whose lo part is zero.
BOOST_AUTO_TEST_CASE(nan_and_infinity_in_channels_last) {
  for (DataType type : {KILN_DATA_FLOAT, KILN_DATA_HALF, KILN_DATA_BFLOAT16})
    for (kilnMathMode_t math : {KILN_MATH_DEFAULT, KILN_MATH_TF32}) {
      ConvolutionOperands o =
          describe_convolution(parse_convolution_line("mb2ic16ih8iw8oc24kh3ph0"), type,
                               KILN_TENSOR_NHWC, KILN_CROSS_CORRELATION);
      o.spec.math = type == KILN_DATA_FLOAT ? math : KILN_MATH_DEFAULT;
      OperationCase item(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
      item.fill_integers(7, 2);
      replace_zeros(item);
      item["x"].at(20) = std::nan("");
      item["x"].at(300) = std::numeric_limits<double>::infinity();
      item["x"].at(1100) = -std::numeric_limits<double>::infinity();
      item["dy"].at(777) = std::numeric_limits<double>::infinity();
      BOOST_TEST(difference(item.run_plan("wgrad_nhwc_mma"), item.expected()) == "",
                 name_of(type) << " math " << static_cast<int>(math));
    }
}

// All phases of a strided gradient, including those without a tap.
BOOST_AUTO_TEST_CASE(strides_and_dilations) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const char* line :
       {"mb2ic5ih9oc6kh1sh2", "mb2ic5ih11oc6kh3sh3ph1", "mb2ic5ih12oc6kh4sh2dh1ph2",
        "mb2ic5ih13oc6kh2sh4dh2ph1", "mb1ic8ih30oc8kh3sh2dh3ph4", "mb2ic6ih7oc6kh3sh5ph2"})
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
      for (kilnConvolutionMode_t mode : {KILN_CONVOLUTION, KILN_CROSS_CORRELATION}) {
        const ConvolutionOperands o =
            describe_convolution(parse_convolution_line(line), KILN_DATA_FLOAT, layout, mode);
        OperationCase item(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
        item.fill_integers(2, 3);
        for (const char* engine : {"implicit_gemm_fma", "direct"})
          if (share.takes(line, layout, mode, engine))
            BOOST_TEST(difference(item.run_plan(engine), item.expected()) == "",
                       line << " " << engine);
      }
}

// Few output channels a group: depthwise filters, and the gradient of an image.
BOOST_AUTO_TEST_CASE(sliding_windows) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  for (const char* line : {"mb2ic3ih20iw35oc9kh5ph0", "mb1ic2ih9oc4kh3ph1", "g6mb2ic6ih11oc6kh3ph1",
                           "g4mb2ic12ih40oc8kh4kw7ph2pw0", "mb1ic4ih5iw140oc7kh1kw2",
                           "g3mb2ic3ih9iw24oc3kh3ph1", "g2mb1ic4ih1iw200oc2kh1kw16pw7",
                           "g2mb2ic2ih10iw30oc2kh3ph2dh1dw2", "g5mb3ic5ih15iw16oc5kh3ph1sh2sw2",
                           "g2mb2ic2ih13iw40oc4kh5ph2sh2", "mb3ic2ih10iw9oc6kh3ph0sh2sw1"})
    for (DataType type : all_types)
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC})
        for (kilnConvolutionMode_t mode : {KILN_CONVOLUTION, KILN_CROSS_CORRELATION}) {
          if (!share.takes(line, type, layout, mode)) continue;
          const ConvolutionOperands o =
              describe_convolution(parse_convolution_line(line), type, layout, mode);
          OperationCase item(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
          item.fill_integers(3, 2);
          BOOST_TEST(difference(item.run_plan("depthwise_fma"), item.expected()) == "", line);
          if (o.y.dims[1] / o.spec.groups > 4) continue;
          OperationCase forward(make_convolution(o.spec, o.x, o.w, o.y));
          forward.scalars.beta = 2;
          forward.fill_integers(4, 2);
          BOOST_TEST(difference(forward.run_plan("depthwise_fma"), forward.expected()) == "", line);
        }
}

// Forward passes with strides and long rows: tiles of one row, a few and many; rows that are copied
// and stored by 16 bytes, by fewer, and by single elements; with a residual.
BOOST_AUTO_TEST_CASE(sliding_windows_forward) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  std::size_t turn = 0;
  for (const char* line :
       {"g3mb2ic3ih17iw24oc3kh3ph1sh2sw2", "g2mb2ic4ih16iw30oc2kh5ph2sh2sw2",
        "g4mb2ic4iw520oc4kw31pw15", "g4mb1ic4iw133oc8kw9pw4sw2", "g2mb2ic2ih7oc2kh3ph1dh1dw1",
        "g2mb3ic2ih14oc2kh3ph1", "mb1ic6ih40iw32oc3kh3ph1sh3sw2"})
    for (DataType type : all_types)
      for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
        if (type == KILN_DATA_DOUBLE &&
            std::string_view(line).find("kw31") != std::string_view::npos)
          continue;  // the sums do not fit in registers
        if (!share.takes(line, type, layout)) continue;
        const ConvolutionOperands o = describe_convolution(parse_convolution_line(line), type,
                                                           layout, KILN_CROSS_CORRELATION);
        const bool fused = turn++ % 3 == 0;
        OperationCase item(fused ? make_convolution(o.spec, o.x, o.w, o.y,
                                                    bias_activation_epilogue(
                                                        &o.y, nullptr, {KILN_ACTIVATION_RELU, 0}))
                                 : make_convolution(o.spec, o.x, o.w, o.y));
        item.scalars.beta = turn % 2 == 0 ? 2 : 0;
        item.fill_integers(4, 2);
        BOOST_TEST(difference(item.run_plan("depthwise_fma"), item.expected()) == "", line);
      }
}

BOOST_AUTO_TEST_CASE(a_filter_gradient_over_nothing_is_zero) {
  const auto check_zero = [](const char* line, kilnTensorFormat_t layout, const char* engine) {
    const ConvolutionOperands o = describe_convolution(
        parse_convolution_line(line), KILN_DATA_FLOAT, layout, KILN_CROSS_CORRELATION);
    const OperationCase item(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    for (double value : item.run_plan(engine).values) BOOST_TEST(value == 0);
  };
  for (const char* engine : {"wgrad_implicit_gemm_fma", "wgrad_direct"})
    check_zero("mb0ic5ih9oc6kh3", KILN_TENSOR_NCHW, engine);
  check_zero("mb0ic8ih20oc16kh3", KILN_TENSOR_NHWC, "wgrad_nhwc_mma");
}

BOOST_AUTO_TEST_CASE(the_epilogue_adds_and_activates) {
  kiln_test::ShareOfCases share = share_of_cases(1);
  RandomProblems random(6);
  for (const kilnActivationMode_t mode : all_of<kilnActivationMode_t>())
    for (int kind = 0; kind < 4; ++kind) {
      if (!share.takes(mode, kind)) continue;
      const ConvolutionOperands o = random_operands(random, random.type());
      const int rank = o.y.rank;
      TensorDims one_a_filter{1, o.y.dims[1], 1, 1, 1};
      const Tensor bias = random.tensor(o.y.type, rank, one_a_filter);
      const Tensor z = random.tensor(o.y.type, rank, o.y.dims);
      OperationCase item(
          make_convolution(o.spec, o.x, o.w, o.y,
                           bias_activation_epilogue(kind & 1 ? &z : nullptr,
                                                    kind & 2 ? &bias : nullptr, {mode, 0.75, 2})));
      item.scalars = random.scalars();
      item.fill_uniform(random.seed());
      BOOST_TEST(check(item) == "");
      BOOST_TEST(check(item, "direct") == "");
    }
}

BOOST_AUTO_TEST_SUITE_END()
