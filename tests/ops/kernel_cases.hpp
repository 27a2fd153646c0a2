// Problems for tests that compile or read their kernels but do not execute them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engines/choice.hpp"
#include "problem/line/problem_line.hpp"

namespace test {

using namespace kiln;

struct Case {
  Problem problem;
  std::string arch;
  std::optional<Option> option{};  // none: the cost model's choice
};

// The gradient of a relu behind a normalization of a tensor like x.
inline EpilogueOperation behind_relu(const Tensor& x) {
  return {.kind = EpilogueOperation::Kind::gradient,
          .tensor = x,
          .activation = {KILN_ACTIVATION_RELU, 0}};
}

// Problems in one type and layout: forward convolutions, with every_pass also their gradients and
// all other operations. Convolutions have padding, so that bounds are checked, and numbers of
// filters for four widths of tiles.
inline std::vector<Problem> problems(DataType type, kilnTensorFormat_t layout, bool every_pass) {
  std::vector<Problem> out;
  for (const char* line :
       {"mb8ic64ih28oc128kh3ph1", "mb8ic64ih28oc96kh3ph1", "mb8ic64ih28oc64kh3ph1",
        "mb8ic64ih28oc32kh3ph1", "g64mb8ic64ih28oc64kh3ph1"}) {
    const ConvolutionOperands o =
        describe_convolution(parse_convolution_line(line), type, layout, KILN_CROSS_CORRELATION);
    out.emplace_back(make_convolution(o.spec, o.x, o.w, o.y));
    if (!every_pass) continue;
    out.emplace_back(make_convolution_wgrad(o.spec, o.x, o.y, o.w));
    out.emplace_back(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
  }
  const ConvolutionOperands o = describe_convolution(
      parse_convolution_line("mb8ic64ih28oc128kh3ph1sh2"), type, layout, KILN_CROSS_CORRELATION);
  out.emplace_back(make_convolution_dgrad(o.spec, o.w, o.y, o.x));
  out.emplace_back(make_convolution(
      o.spec, o.x, o.w, o.y, bias_activation_epilogue(&o.y, nullptr, {KILN_ACTIVATION_RELU, 0})));
  if (!every_pass) return out;
  out.emplace_back(
      make_convolution(o.spec, o.x, o.w, o.y, {{.kind = EpilogueOperation::Kind::moments}}));
  out.emplace_back(make_convolution_transposed(o.spec, o.y, o.w, o.x, {behind_relu(o.x)}));

  const ConvolutionOperands l = describe_convolution(parse_convolution_line("mb8ic16ih14oc16kh9"),
                                                     type, layout, KILN_CROSS_CORRELATION);
  for (const char* order : {layout == KILN_TENSOR_NCHW ? "pkct" : "pktc", "ptck", "npkct"}) {
    const Tensor weights = local_weights(l.w, l.y, order, "the order");
    out.emplace_back(make_local(l.spec, l.x, weights, nullptr, l.y));
    out.emplace_back(make_local_dgrad(l.spec, weights, l.y, l.x));
    out.emplace_back(make_local_wgrad(l.spec, l.x, l.y, weights));
  }
  PoolingSpec pool;
  pool.spatial = 2;
  pool.window = {3, 3};
  pool.stride = {2, 2};
  const Tensor& x = o.x;
  Tensor y = x, channels = x, other = x;
  y.dims = pooling_output_dims(pool, x);
  y.strides = dense_strides(layout, 4, y.dims);
  channels.dims = {1, x.dims[1], 1, 1};
  channels.strides = dense_strides(layout, 4, channels.dims);
  other.strides =
      dense_strides(layout == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW, 4, x.dims);
  out.emplace_back(make_pooling_forward(pool, x, y));
  out.emplace_back(make_pooling_backward(pool, y, &x, x));
  // The last windows extend beyond the padding, so divisors differ between windows.
  pool.mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  pool.ceil = true;
  Tensor averages = x;
  averages.dims = pooling_output_dims(pool, x);
  averages.strides = dense_strides(layout, 4, averages.dims);
  out.emplace_back(make_pooling_forward(pool, x, averages));
  out.emplace_back(make_pooling_backward(pool, averages, nullptr, x));
  for (kilnSoftmaxMode_t mode : {KILN_SOFTMAX_MODE_CHANNEL, KILN_SOFTMAX_MODE_INSTANCE}) {
    out.emplace_back(make_softmax_forward(KILN_SOFTMAX_ACCURATE, mode, x, x));
    out.emplace_back(make_softmax_backward(KILN_SOFTMAX_LOG, mode, x, x, x));
  }
  out.emplace_back(make_activation_forward({KILN_ACTIVATION_GELU_ERF, 0}, x, x));
  out.emplace_back(make_activation_backward({KILN_ACTIVATION_TANH, 0}, x, "yDesc", x, x));
  out.emplace_back(make_transform(x, other));
  out.emplace_back(make_add(channels, x));
  out.emplace_back(make_bias_gradient(x, channels));
  NormalizationSpec norm;
  norm.activation = make_activation({KILN_ACTIVATION_RELU});
  out.emplace_back(make_normalization_backward(norm, x, &x, x, &x, x));
  NormalizationSpec groups = norm;  // of half a vector, or of one
  groups.activation = make_activation({KILN_ACTIVATION_SILU});
  groups.statistics = KILN_NORMALIZATION_GROUP;
  groups.groups = x.dims[1] / 4;
  out.emplace_back(make_normalization_backward(groups, x, &x, x, &x, x));
  NormalizationSpec pixels = groups;
  pixels.statistics = KILN_NORMALIZATION_PIXEL;
  pixels.groups = 0;
  out.emplace_back(make_normalization_backward(pixels, x, nullptr, x, nullptr, x));
  // With channels last a thread has more registers' worth of statistics.
  if (layout == KILN_TENSOR_NHWC) {
    out.emplace_back(make_normalization_training(norm, x, &x, x));
    out.emplace_back(make_normalization_training(groups, x, &x, x));
    out.emplace_back(make_normalization_training(pixels, x, nullptr, x));
    if (type == KILN_DATA_FLOAT)
      out.emplace_back(make_normalization_combine(norm, type, 8, x.dims[1]));
  }
  return out;
}

// The kernels of layers that together have every tile as a candidate, with many channels and with
// few. Each kernel occurs once, with any split count.
inline std::vector<Case> every_tile(DataType type, kilnTensorFormat_t layout,
                                    const std::string& arch) {
  std::vector<Case> out;
  const auto add = [&](const Problem& problem, const std::string& only, std::size_t workspace = 0) {
    for (Option& option : all_candidates(problem, known_architecture(arch), workspace))
      if (option.name.parts == 1 && (only.empty() || only == option.name.engine))
        out.push_back({problem, arch, std::move(option)});
  };
  for (kilnMathMode_t math : {KILN_MATH_DEFAULT, KILN_MATH_TF32}) {
    if (math == KILN_MATH_TF32 && type != KILN_DATA_FLOAT) continue;
    const auto operands = [&](const char* line) {
      ConvolutionOperands o =
          describe_convolution(parse_convolution_line(line), type, layout, KILN_CROSS_CORRELATION);
      o.spec.math = math;
      return o;
    };
    const ConvolutionOperands many = operands("mb8ic128ih28oc128kh3ph1");
    add(make_convolution(many.spec, many.x, many.w, many.y), "");
    add(make_convolution_dgrad(many.spec, many.w, many.y, many.x), "");
    add(make_convolution_wgrad(many.spec, many.x, many.y, many.w), "");
    if (layout == KILN_TENSOR_NHWC)
      add(make_convolution(many.spec, many.x, many.w, many.y,
                           {{.kind = EpilogueOperation::Kind::moments}}),
          "dense_nhwc_wgmma", most_workspace);
    if (layout == KILN_TENSOR_NHWC && size_of(type) == 2)
      add(make_convolution_transposed(many.spec, many.y, many.w, many.x, {behind_relu(many.x)}),
          "dense_nhwc_wgmma", most_workspace);
    const ConvolutionOperands deep = operands("g96mb8ic96ih28oc96kh3ph1");
    if (layout == KILN_TENSOR_NHWC && size_of(type) == 2) {
      add(make_convolution(deep.spec, deep.x, deep.w, deep.y,
                           {{.kind = EpilogueOperation::Kind::moments}}),
          "depthwise_halo_nhwc_fma", most_workspace);
      add(make_convolution_transposed(deep.spec, deep.y, deep.w, deep.x, {behind_relu(deep.x)}),
          "depthwise_halo_nhwc_fma", most_workspace);
    }
    for (const char* line : {"mb8ic3ih128oc96kh11", "mb8ic3ih224oc64kh7ph3sh2"}) {
      const ConvolutionOperands few = operands(line);
      for (const char* engine : {"few_input_channels_mma", "few_input_channels_wgmma_swap"})
        add(make_convolution(few.spec, few.x, few.w, few.y), engine);
    }
    for (const char* line :
         {"mb8ic3ih224oc64kh7ph3sh2", "mb8ic3ih224oc64kh3ph1", "mb1ic128ih512oc3kh3ph1",
          "mb8ic3ih224oc96kh4sh4", "mb8ic3ih224oc768kh16sh16"}) {
      const ConvolutionOperands image = operands(line);
      add(make_convolution_wgrad(image.spec, image.x, image.y, image.w), "wgrad_few_channels_mma");
    }
    for (const char* line :
         {"g64mb8ic64ih56oc64kh3ph1", "g64mb8ic64ih56oc64kh3ph1sh2", "g64mb8ic64ih14oc64kh5ph2",
          "g64mb8ic64ih56oc64kh7ph3", "g64mb8ic64iw1000oc64kw31pw15"}) {
      const ConvolutionOperands channels = operands(line);
      add(make_convolution(channels.spec, channels.x, channels.w, channels.y), "depthwise_fma");
      add(make_convolution_dgrad(channels.spec, channels.w, channels.y, channels.x),
          "depthwise_fma");
      add(make_convolution_wgrad(channels.spec, channels.x, channels.y, channels.w),
          "wgrad_depthwise_fma");
    }
    if (layout == KILN_TENSOR_NCHW) {
      add(make_convolution(many.spec, many.x, many.w, many.y), "channels_last_copies",
          most_workspace);
      for (const char* line : {"mb8ic128ih28oc128kh1", "mb8ic136ih8oc136kh1"}) {
        const ConvolutionOperands dense = operands(line);
        add(make_convolution(dense.spec, dense.x, dense.w, dense.y), "dense_nchw_wgmma");
        add(make_convolution_dgrad(dense.spec, dense.w, dense.y, dense.x), "dense_nchw_wgmma");
        add(make_convolution_wgrad(dense.spec, dense.x, dense.y, dense.w),
            "wgrad_dense_nchw_wgmma");
      }
      // Columns that are shifted, loaded as they lie, and one alone; the last one's lines are
      // short.
      for (const char* line :
           {"mb8ic136ih32oc136kh3ph1", "mb1ic128id4ih32iw64oc128kd3kh3kw3pd1ph1pw8dh0dw7",
            "mb1ic128id8ih30iw52oc128kd3kh1kw1pd1ph0pw0", "mb8ic64ih16oc64kh3ph1"}) {
        const ConvolutionOperands rows = operands(line);
        add(make_convolution(rows.spec, rows.x, rows.w, rows.y), "dense_halo_nchw_wgmma",
            most_workspace);
        add(make_convolution_dgrad(rows.spec, rows.w, rows.y, rows.x), "dense_halo_nchw_wgmma",
            most_workspace);
      }
    }
    if (layout == KILN_TENSOR_NHWC) {
      for (const char* line :
           {"g32mb8ic64ih28oc64kh3ph1", "g16mb8ic64ih28oc64kh3ph1", "g8mb8ic64ih28oc64kh3ph1",
            "g4mb8ic64ih28oc64kh3ph1", "g16mb8ic64ih28oc64kh7ph3sh2"}) {
        const ConvolutionOperands groups = operands(line);
        for (const char* engine : {"grouped_nhwc_mma", "grouped_halo_nhwc_mma"}) {
          add(make_convolution(groups.spec, groups.x, groups.w, groups.y), engine);
          add(make_convolution_dgrad(groups.spec, groups.w, groups.y, groups.x), engine);
        }
      }
      // The last one's data gradient has phases without taps.
      for (const char* line :
           {"g16mb8ic64ih28oc64kh3ph1", "g32mb8ic32ih28oc128kh3ph1", "g64mb8ic64ih28oc64kh2sh4"}) {
        const ConvolutionOperands groups = operands(line);
        add(make_convolution(groups.spec, groups.x, groups.w, groups.y), "depthwise_nhwc_fma");
        add(make_convolution_dgrad(groups.spec, groups.w, groups.y, groups.x),
            "depthwise_nhwc_fma");
        add(make_convolution_wgrad(groups.spec, groups.x, groups.y, groups.w),
            "wgrad_depthwise_nhwc_fma");
      }
      for (const char* line : {"g64mb8ic64ih28oc64kh5ph2", "g96mb8ic96ih56oc96kh7ph3",
                               "g64mb8ic64ih56oc64kh31ph15", "g64mb8ic64iw500oc64kw31pw15"}) {
        const ConvolutionOperands channels = operands(line);
        for (const char* engine : {"depthwise_halo_nhwc_fma", "toeplitz_nhwc_mma"})
          add(make_convolution(channels.spec, channels.x, channels.w, channels.y), engine);
        for (const char* engine :
             {"wgrad_toeplitz_nhwc_mma", "wgrad_depthwise_nhwc_mma", "wgrad_depthwise_nhwc_fma"})
          add(make_convolution_wgrad(channels.spec, channels.x, channels.y, channels.w), engine);
      }
      // The second one's data gradient has phases.
      for (const char* line : {"g90mb8ic90ih28oc90kh3ph1", "g53mb8ic53ih56oc53kh5ph2sh2"}) {
        const ConvolutionOperands channels = operands(line);
        add(make_convolution(channels.spec, channels.x, channels.w, channels.y),
            "depthwise_rows_nhwc_fma");
        add(make_convolution_dgrad(channels.spec, channels.w, channels.y, channels.x),
            "depthwise_rows_nhwc_fma");
        add(make_convolution_wgrad(channels.spec, channels.x, channels.y, channels.w),
            "wgrad_depthwise_rows_nhwc_fma");
      }
      for (const char* line :
           {"g64mb8ic64ih28oc64kh5ph2", "g16mb8ic64ih28oc64kh3ph1", "g4mb8ic64ih28oc64kh3ph1sh2",
            "g32mb8ic32ih28oc128kh3ph1", "g32mb8ic32ih28oc32kh31ph15"}) {
        const ConvolutionOperands groups = operands(line);
        add(make_convolution_wgrad(groups.spec, groups.x, groups.y, groups.w),
            "wgrad_grouped_nhwc_mma");
      }
      for (const char* line :
           {"g4mb8ic128ih28oc128kh3ph1", "mb8ic128id8ih28iw28oc128kd3kh3kw3pd1ph1pw1"}) {
        const ConvolutionOperands dense = operands(line);
        add(make_convolution(dense.spec, dense.x, dense.w, dense.y), "dense_halo_nhwc_wgmma");
        add(make_convolution_dgrad(dense.spec, dense.w, dense.y, dense.x), "dense_nhwc_wgmma");
        add(make_convolution_wgrad(dense.spec, dense.x, dense.y, dense.w),
            "wgrad_dense_nhwc_wgmma");
      }
      for (const char* line :
           {"mb8ic3ih224oc64kh7ph3sh2", "mb8ic3ih224oc64kh3ph1", "mb1ic128ih512oc3kh3ph1",
            "mb8ic3ih224oc96kh4sh4", "mb8ic3ih224oc768kh16sh16", "mb8ic3ih299oc32kh3ph0sh2"}) {
        const ConvolutionOperands image = operands(line);
        add(make_convolution(image.spec, image.x, image.w, image.y), "few_input_channels_nhwc_mma");
        add(make_convolution_dgrad(image.spec, image.w, image.y, image.x),
            "few_input_channels_nhwc_mma");
      }
      const ConvolutionOperands few = operands("mb8ic3ih224oc64kh7ph3sh2");
      for (const char* engine : {"wgrad_nchw_mma", "wgrad_nchw_wgmma_swap"})
        add(make_convolution_wgrad(few.spec, few.x, few.y, few.w), engine);
    }
    const ConvolutionOperands linear = operands("mb8ic4096ih1oc4096kh1");
    for (const char* engine : {"few_rows_mma", "few_rows_fma"})
      add(make_convolution(linear.spec, linear.x, linear.w, linear.y), engine);
    for (const char* line :
         {"mb8ic3ih128oc96kh11", "mb8ic5ih64oc64kh11ph5", "mb8ic3ih64oc64kh3ph1",
          "mb8ic3ih200oc64kh9ph4", "mb8ic8ih64oc64kh8", "mb8ic3ih224oc64kh7ph3sh2",
          "mb8ic3ih224oc768kh16sh16", "mb8ic3id8ih112iw112oc64kd3kh7kw7pd1ph3pw3sd1sh2sw2"}) {
      const ConvolutionOperands few = operands(line);
      for (const char* engine : {"few_output_channels_mma", "few_output_channels_wgmma"})
        add(make_convolution_dgrad(few.spec, few.w, few.y, few.x), engine);
    }
  }
  return out;
}

}  // namespace test
