#include "cli/bench/suite.hpp"

#include <algorithm>

#include "cli/operation/read_line.hpp"
#include "codegen/embedded.hpp"
#include "core/error.hpp"
#include "problem/line/problem_line.hpp"

namespace kiln {
std::span<const EmbeddedFile> embedded_layers();  // layers/, by embed.cmake
}

namespace kiln::cli::bench {
namespace {

using Names = std::vector<std::string>;

const Names& chosen(const Names& given, const Names& otherwise) {
  return given.empty() ? otherwise : given;
}

bool wanted(const Selection& selection, const std::string& layer) {
  return selection.layers.empty() ||
         std::any_of(selection.layers.begin(), selection.layers.end(),
                     [&](const auto& part) { return layer.find(part) != std::string::npos; });
}

DataType type_named(const std::string& name) {
  DataType type{};
  if (!parse_name(name, type))
    fail(KILN_STATUS_BAD_PARAM, "--dt is ", name, "; expected f32, f64, f16 or bf16");
  return type;
}

kilnTensorFormat_t layout_named(const std::string& name) {
  return name == "nhwc" ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW;
}

std::string embedded_text(const std::string& suite) {
  for (const EmbeddedFile& file : embedded_layers())
    if (file.path == suite + ".txt") return std::string(file.text);
  fail(KILN_STATUS_INTERNAL_ERROR, "the program carries no layers of ", suite);
}

Problem convolution(const ConvolutionLine& line, const std::string& direction, DataType type,
                    kilnTensorFormat_t layout, const std::string& math) {
  ConvolutionOperands o = describe_convolution(line, type, layout, KILN_CROSS_CORRELATION);
  parse_name(math, o.spec.math);
  if (direction == "dgrad") return make_convolution_dgrad(o.spec, o.w, o.y, o.x);
  if (direction == "wgrad") return make_convolution_wgrad(o.spec, o.x, o.y, o.w);
  return make_convolution(o.spec, o.x, o.w, o.y);
}

// Whether the line is a convolution's entries alone, without a command and flags.
bool is_bare(const std::string& line) {
  return !line.starts_with('{') && line.substr(0, line.find('"')).find(' ') == std::string::npos;
}

// The layout in which the result is dense.
std::string layout_of(const Problem& problem) {
  const Operand result = operands_of(problem).back();
  const bool nchw = result.strides == dense_operand_strides(KILN_TENSOR_NCHW, result.dims);
  const bool nhwc = result.strides == dense_operand_strides(KILN_TENSOR_NHWC, result.dims);
  return nhwc && !nchw ? "nhwc" : nchw ? "nchw" : "";
}

// Adds the problems of a line in full, as they are.
void add_line(const Selection& selection, const std::string& suite, const std::string& text,
              std::vector<Case>& cases) {
  LineDefaults defaults;
  defaults.batches = selection.batches;
  for (ReadLine& line : read_line(text, defaults)) {
    const std::string name = line.name.empty() ? line_of(line.problem) : line.name;
    if (!wanted(selection, name)) continue;
    std::string direction, math;
    if (const auto* convolution = std::get_if<ConvolutionProblem>(&line.problem)) {
      direction = direction_names[static_cast<std::size_t>(convolution->pass)];
      math = name_of(convolution->math);
    }
    if (const auto* product = std::get_if<MatmulProblem>(&line.problem))
      math = name_of(product->math);
    const std::string layout = layout_of(line.problem);
    cases.push_back({suite, name, direction, math, layout, std::move(line.problem), {}});
  }
}

// Adds the layers of a text in every direction, type, layout and math mode; lines in full once.
void add_convolutions(const Selection& selection, const std::string& suite,
                      const std::string& place, const std::string& text, const Names& directions,
                      const std::vector<std::int64_t>& own_batches, std::vector<Case>& cases) {
  const std::vector<std::int64_t>& batches =
      selection.batches.empty() ? own_batches : selection.batches;
  static const Names f32{"f32"}, nchw{"nchw"}, default_math{"default"};
  struct Layer {
    std::string name;
    ConvolutionLine line;
  };
  std::vector<Layer> layers;
  for (const NumberedLine& numbered : problem_lines(text)) {
    try {
      if (!is_bare(numbered.text)) {
        add_line(selection, suite, numbered.text, cases);
        continue;
      }
      const ConvolutionLine line = parse_convolution_line(numbered.text);
      const std::string name = line.name.empty() ? numbered.text : line.name;
      if (wanted(selection, name)) layers.push_back({name, line});
    } catch (const Error& error) {
      fail(error.status(), place, ":", numbered.number, ": ", error.what());
    }
  }
  for (const std::string& type : chosen(selection.types, f32))
    for (const std::string& layout : chosen(selection.layouts, nchw))
      for (const std::string& math :
           type == "f32" ? chosen(selection.maths, default_math) : default_math)
        for (const std::string& direction : chosen(selection.directions, directions))
          for (const std::int64_t batch : batches)
            for (const Layer& layer : layers) {
              ConvolutionLine line = layer.line;
              if (batch > 0) line.batch = batch;
              cases.push_back(
                  {suite,
                   layer.name,
                   direction,
                   math,
                   layout,
                   convolution(line, direction, type_named(type), layout_named(layout), math),
                   {}});
            }
}

Tensor tensor(DataType type, kilnTensorFormat_t layout, const TensorDims& dims) {
  Tensor out;
  out.type = type;
  out.rank = 4;
  out.dims = dims;
  out.strides = dense_strides(layout, 4, dims);
  return out;
}

struct Item {
  std::string name;
  Problem problem;
  Scalars scalars;
};

std::vector<Item> memory_bound_items(DataType type, kilnTensorFormat_t layout,
                                     const TensorDims& dims) {
  const Tensor x = tensor(type, layout, dims);
  const Tensor other =
      tensor(type, layout == KILN_TENSOR_NCHW ? KILN_TENSOR_NHWC : KILN_TENSOR_NCHW, dims);
  const Tensor channels = tensor(type, layout, {1, dims[1], 1, 1});
  const Tensor one = tensor(type, layout, {1, 1, 1, 1});
  PoolingSpec pool;
  pool.spatial = 2;
  pool.window = {3, 3};
  pool.stride = {2, 2};
  const Tensor y = tensor(type, layout, pooling_output_dims(pool, x));
  PoolingSpec average = pool;
  average.mode = KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  const auto act = [&](kilnActivationMode_t mode) {
    return make_activation_forward({mode, 0}, x, x);
  };
  const auto act_bwd = [&](kilnActivationMode_t mode) {
    return make_activation_backward({mode, 0}, x, "saved", x, x);
  };
  constexpr auto channel = KILN_SOFTMAX_MODE_CHANNEL;
  constexpr auto image = KILN_SOFTMAX_MODE_INSTANCE;
  return {
      {"max pool 3x3/2", make_pooling_forward(pool, x, y), {}},
      {"max pool bwd", make_pooling_backward(pool, y, &x, x), {}},
      {"avg pool 3x3/2", make_pooling_forward(average, x, y), {}},
      {"avg pool bwd", make_pooling_backward(average, y, nullptr, x), {}},
      {"relu", act(KILN_ACTIVATION_RELU), {}},
      {"sigmoid", act(KILN_ACTIVATION_SIGMOID), {}},
      {"tanh", act(KILN_ACTIVATION_TANH), {}},
      {"gelu (erf)", act(KILN_ACTIVATION_GELU_ERF), {}},
      {"gelu (tanh)", act(KILN_ACTIVATION_GELU_TANH), {}},
      {"relu bwd", act_bwd(KILN_ACTIVATION_RELU), {}},
      {"tanh bwd", act_bwd(KILN_ACTIVATION_TANH), {}},
      {"gelu (erf) bwd", act_bwd(KILN_ACTIVATION_GELU_ERF), {}},
      {"softmax channels", make_softmax_forward(KILN_SOFTMAX_ACCURATE, channel, x, x), {}},
      {"softmax channels bwd", make_softmax_backward(KILN_SOFTMAX_ACCURATE, channel, x, x, x), {}},
      {"softmax image", make_softmax_forward(KILN_SOFTMAX_ACCURATE, image, x, x), {}},
      {"softmax image bwd", make_softmax_backward(KILN_SOFTMAX_ACCURATE, image, x, x, x), {}},
      {"log softmax image", make_softmax_forward(KILN_SOFTMAX_LOG, image, x, x), {}},
      {"add bias", make_add(channels, x), {.beta = 1}},
      {"copy", make_transform(x, x), {}},
      {"to the other layout", make_transform(x, other), {}},
      // The factor is -1, so that the data stay random however often they are scaled.
      {"scale", make_fill(x), {.alpha = 0, .beta = -1}},
      {"bias gradient", make_bias_gradient(x, channels), {}},
      {"sum of all", make_reduction(KILN_REDUCE_SUM, x, one), {}},
  };
}

// Adds memory-bound operations on tensors of two sizes: many times the L2 cache, and as small as
// those of a network's late layers.
void add_memory_bound(const Selection& selection, std::vector<Case>& cases) {
  static const Names types{"f32", "f16"}, layouts{"nchw", "nhwc"};
  for (const TensorDims& sizes : {TensorDims{128, 96, 118, 118}, TensorDims{16, 64, 28, 28}})
    for (const std::string& type : chosen(selection.types, types))
      for (const std::string& layout : chosen(selection.layouts, layouts))
        for (Item& item : memory_bound_items(type_named(type), layout_named(layout), sizes)) {
          const std::string name = cat(item.name, " ", sizes[1], "x", sizes[2], "x", sizes[3]);
          if (!selection.batches.empty() &&
              std::find(selection.batches.begin(), selection.batches.end(), sizes[0]) ==
                  selection.batches.end())
            continue;
          if (wanted(selection, name))
            cases.push_back(
                {"memory", name, "", "", layout, std::move(item.problem), item.scalars});
        }
}

}  // namespace

std::vector<Case> cases_of(const Selection& selection) {
  static const Names all = direction_names, forward{"fwd"}, usual{"paper", "latency", "memory"},
                     none;
  std::vector<Case> cases;
  for (const std::string& suite :
       chosen(selection.suites, selection.lines_from.empty() ? usual : none)) {
    if (suite == "memory") {
      add_memory_bound(selection, cases);
    } else if (suite == "latency") {
      // The problem is so small that only the host's time counts.
      const std::size_t first = cases.size();
      add_convolutions(selection, suite, suite, "mb1ic16ih14oc32kh3ph1n\"small convolution\"",
                       forward, {1}, cases);
      for (std::size_t i = first; i < cases.size(); ++i) cases[i].latency = true;
    } else {
      add_convolutions(
          selection, suite, suite, embedded_text(suite), suite == "paper" ? all : forward,
          suite == "paper" ? std::vector<std::int64_t>{128, 16} : std::vector<std::int64_t>{0},
          cases);
    }
  }
  if (!selection.lines_from.empty())
    add_convolutions(selection, "batch", selection.lines_from, selection.lines, forward, {0},
                     cases);
  return cases;
}

std::string describe(const Case& item) {
  return cat(item.suite, "  ", item.layer, "  ", item.math.empty() ? "" : item.math + "  ",
             text_of(item.problem));
}

DataType type_of(const Case& item) { return operands_of(item.problem).back().type; }

std::int64_t batch_of(const Case& item) {
  return std::visit(
      [](const auto& problem) -> std::int64_t {
        if constexpr (requires { problem.batch; }) {
          return problem.batch;
        } else if constexpr (requires { problem.conv; }) {
          return problem.conv.batch;
        } else {
          return problem.dims[0];
        }
      },
      item.problem);
}

}  // namespace kiln::cli::bench
