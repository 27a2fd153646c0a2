// The double-precision reference against an implementation that shares nothing with it: oneDNN's
// f32 convolution, on the problem lists' small problems and on random ones.
#define BOOST_TEST_MODULE reference_onednn
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <dnnl.hpp>
#include <fstream>
#include <random>
#include <sstream>

#include "core/error.hpp"
#include "problem/problem_line.hpp"
#include "reference/reference.hpp"

using kiln::ConvolutionLine;
using kiln::ConvolutionProblem;

namespace {

using Memory = dnnl::memory;
using Dims = Memory::dims;

// The dense row-major memory of dnnl that holds `values`.
Memory wrap(const dnnl::engine& engine, const Dims& dims, std::vector<float>& values) {
  Dims strides(dims.size());
  Memory::dim next = 1;
  for (std::size_t i = dims.size(); i-- > 0; next *= dims[i]) strides[i] = next;
  return Memory({dims, Memory::data_type::f32, strides}, engine, values.data());
}

// oneDNN 3 describes a primitive in one step, 2 in two.
template <class... Arguments>
dnnl::convolution_forward::primitive_desc describe(const dnnl::engine& engine,
                                                   const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments...};
#else
  return {dnnl::convolution_forward::desc(arguments...), engine};
#endif
}

// oneDNN's cross-correlation of dense x (N, C, space) and w (g, K/g, C/g, space).
std::vector<float> onednn_forward(const ConvolutionLine& line, std::vector<float> x,
                                  std::vector<float> w) {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto space = [&](const kiln::Spatial& sizes, std::int64_t offset = 0) {
    Dims dims;
    for (int i = 3 - line.rank; i < 3; ++i) dims.push_back(sizes[i] + offset);
    return dims;
  };
  const auto tensor = [&](Dims dims, const kiln::Spatial& sizes) {
    for (auto size : space(sizes)) dims.push_back(size);
    return dims;
  };
  const Dims y_dims = tensor({line.batch, line.out_channels}, line.out);
  std::int64_t y_size = 1;
  for (auto size : y_dims) y_size *= size;
  std::vector<float> y(y_size);

  const Memory x_memory = wrap(engine, tensor({line.batch, line.in_channels}, line.in), x);
  const Memory w_memory =
      wrap(engine,
           tensor({line.groups, line.out_channels / line.groups, line.in_channels / line.groups},
                  line.filter),
           w);
  const Memory y_memory = wrap(engine, y_dims, y);

  const auto description =
      describe(engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
               x_memory.get_desc(), w_memory.get_desc(), y_memory.get_desc(), space(line.stride),
               space(line.dilation, -1), space(line.pad_before), space(line.pad_after));
  dnnl::stream stream(engine);
  dnnl::convolution_forward(description)
      .execute(stream,
               {{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_WEIGHTS, w_memory}, {DNNL_ARG_DST, y_memory}});
  stream.wait();
  return y;
}

// Dense filters with every tap mirrored in space.
std::vector<float> flipped(const std::vector<float>& w, std::int64_t taps) {
  std::vector<float> out(w);
  for (auto begin = out.begin(); begin != out.end(); begin += taps) {
    std::reverse(begin, begin + taps);
  }
  return out;
}

// The same elements in the order that `strides` give to dims (5 each).
std::vector<float> rearranged(const std::vector<float>& dense, const kiln::Operand& operand) {
  std::vector<float> out(dense.size());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(dense.size()); ++i)
    out[operand.offset(i)] = dense[i];
  return out;
}

// oneDNN knows no negative padding. Up to stride - 1 elements after the last one read make no
// difference, so that many may be added to the padding.
bool make_known_to_onednn(ConvolutionLine& line) {
  for (int i = 0; i < 3; ++i) {
    if (line.pad_after[i] < 0)
      line.pad_after[i] = std::min(line.pad_after[i] + line.stride[i] - 1, std::int64_t{0});
    if (line.pad_before[i] < 0 || line.pad_after[i] < 0) return false;
  }
  return line.batch > 0;
}

std::vector<float> random_values(std::mt19937& random, std::int64_t count) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// Both modes and both layouts of one line; at most `samples` outputs of each, evenly spread.
void compare(const ConvolutionLine& line, std::mt19937& random, std::int64_t samples = 1 << 30) {
  const std::int64_t taps = line.filter[0] * line.filter[1] * line.filter[2];
  const std::int64_t group_in = line.in_channels / line.groups;
  const std::vector<float> x =
      random_values(random, line.batch * line.in_channels * line.in[0] * line.in[1] * line.in[2]);
  const std::vector<float> w = random_values(random, line.out_channels * group_in * taps);

  for (kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
    const std::vector<float> y =
        onednn_forward(line, x, mode == KILN_CONVOLUTION ? flipped(w, taps) : w);
    std::vector<std::int64_t> indices;
    const auto count = static_cast<std::int64_t>(y.size());
    for (std::int64_t i = 0; i < count; i += std::max<std::int64_t>(1, count / samples)) {
      indices.push_back(i);
    }
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      const ConvolutionProblem problem = make_convolution(line, KILN_DATA_FLOAT, layout, mode);
      const std::vector<kiln::Operand> operands = operands_of(problem);
      const auto x_values = rearranged(x, operands[0]), w_values = rearranged(w, operands[1]);
      const void* const memory[] = {x_values.data(), w_values.data(), nullptr};
      const auto expected = kiln::reference::expect(problem, {}, memory, indices, 2);
      double worst = 0;
      std::int64_t where = -1;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        const double ratio =
            std::fabs(y[indices[i]] - expected[i].value) / (expected[i].allowed + 1e-300);
        if (ratio > worst) {
          worst = ratio;
          where = indices[i];
        }
      }
      BOOST_TEST_INFO(to_line(problem) << ": output " << where);
      BOOST_TEST(worst <= 1.0);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(small_problems) {
  std::ostringstream text;
  text << std::ifstream(KILN_PROBLEMS "/small.txt").rdbuf();
  std::mt19937 random(1);
  int compared = 0;
  for (const auto& [number, line] : kiln::problem_lines(text.str())) {
    ConvolutionLine parsed = kiln::parse_convolution_line(line);
    if (!make_known_to_onednn(parsed)) continue;
    compare(parsed, random);
    ++compared;
  }
  BOOST_TEST(compared >= 150);
}

BOOST_AUTO_TEST_CASE(random_problems) {
  std::mt19937 random(2);
  const auto among = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int compared = 0;
  while (compared < 150) {
    ConvolutionLine line;
    line.rank = static_cast<int>(among(1, 3));
    line.groups = among(0, 1) ? 1 : among(2, 6);
    line.batch = among(1, 3);
    line.in_channels = line.groups * among(1, 6);
    line.out_channels = line.groups * among(1, 6);
    bool legal = true;
    for (int i = 3 - line.rank; i < 3; ++i) {
      line.in[i] = among(1, 11);
      line.filter[i] = among(1, 4);
      line.stride[i] = among(1, 3);
      line.dilation[i] = among(1, 3);
      line.pad_before[i] = among(0, 4);
      const std::int64_t room = line.in[i] + line.pad_before[i] + among(0, 4) -
                                ((line.filter[i] - 1) * line.dilation[i] + 1);
      legal = legal && room >= 0;
      line.out[i] = room / line.stride[i] + 1;
    }
    if (!legal) continue;
    line = kiln::parse_convolution_line(print_convolution_line(line));
    if (!make_known_to_onednn(line)) continue;
    compare(line, random);
    ++compared;
  }
}

// The paper's layers at a batch of two: sums of thousands of terms.
BOOST_AUTO_TEST_CASE(the_papers_layers) {
  std::ostringstream text;
  text << std::ifstream(KILN_PROBLEMS "/paper.txt").rdbuf();
  std::mt19937 random(3);
  int compared = 0;
  for (const auto& [number, line] : kiln::problem_lines(text.str())) {
    ConvolutionLine parsed = kiln::parse_convolution_line(line);
    parsed.batch = 2;
    compare(parsed, random, 500);
    ++compared;
  }
  BOOST_TEST(compared == 5);
}
