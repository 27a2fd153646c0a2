// The double-precision reference against oneDNN's f32 convolution, an implementation that shares no
// code with it, on the small problems of the lists and on random ones.
#define BOOST_TEST_MODULE reference_onednn
#include <fstream>
#include <sstream>

#include "onednn_convolution.hpp"

using kiln::ConvolutionLine;
using kiln::ConvolutionProblem;
using onednn::wrap;

namespace {

// oneDNN's cross-correlation.
std::vector<float> onednn_forward(const ConvolutionLine& line, std::vector<float> x,
                                  std::vector<float> w) {
  std::vector<float> y(onednn::count(onednn::y_layout(line)));
  onednn::execute(
      dnnl::convolution_forward(onednn::describe_fprop(line, dnnl::prop_kind::forward_inference)),
      {{DNNL_ARG_SRC, wrap(onednn::x_layout(line), x)},
       {DNNL_ARG_WEIGHTS, wrap(onednn::w_layout(line), w)},
       {DNNL_ARG_DST, wrap(onednn::y_layout(line), y)}});
  return y;
}

// Compares both modes and both layouts of a line, at most `samples` evenly spread outputs of each.
void compare(const ConvolutionLine& line, onednn::Random& random, std::int64_t samples = 1 << 30) {
  const std::vector<float> x = random.values(onednn::count(onednn::x_layout(line)));
  const std::vector<float> w = random.values(onednn::count(onednn::w_layout(line)));
  for (kilnConvolutionMode_t mode : {KILN_CROSS_CORRELATION, KILN_CONVOLUTION}) {
    const std::vector<float> y =
        onednn_forward(line, x, mode == KILN_CONVOLUTION ? onednn::flipped(line, w) : w);
    std::vector<std::int64_t> indices;
    const auto count = static_cast<std::int64_t>(y.size());
    for (std::int64_t i = 0; i < count; i += std::max<std::int64_t>(1, count / samples)) {
      indices.push_back(i);
    }
    for (kilnTensorFormat_t layout : {KILN_TENSOR_NCHW, KILN_TENSOR_NHWC}) {
      const ConvolutionProblem problem = make_convolution(line, KILN_DATA_FLOAT, layout, mode);
      const std::vector<kiln::Operand> operands = operands_of(problem);
      const auto x_values = onednn::rearranged(x, operands[0]),
                 w_values = onednn::rearranged(w, operands[1]);
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
  onednn::Random random(1);
  int compared = 0;
  for (const auto& [number, line] : kiln::problem_lines(text.str())) {
    ConvolutionLine parsed = kiln::parse_convolution_line(line);
    if (!onednn::make_known_to_onednn(parsed)) continue;
    compare(parsed, random);
    ++compared;
  }
  BOOST_TEST(compared >= 150);
}

BOOST_AUTO_TEST_CASE(random_problems) {
  onednn::Random random(2);
  for (int i = 0; i < 150; ++i) compare(onednn::random_line(random), random);
}

// The paper's layers with two images, whose sums have thousands of terms.
BOOST_AUTO_TEST_CASE(the_papers_layers) {
  std::ostringstream text;
  text << std::ifstream(KILN_LAYERS "/paper.txt").rdbuf();
  onednn::Random random(3);
  int compared = 0;
  for (const auto& [number, line] : kiln::problem_lines(text.str())) {
    ConvolutionLine parsed = kiln::parse_convolution_line(line);
    parsed.batch = 2;
    compare(parsed, random, 500);
    ++compared;
  }
  BOOST_TEST(compared == 5);
}
